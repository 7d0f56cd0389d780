@0xc3f6a1d0b2e4f611;
# A log of a car: a wide union of structs, as openpilot's `Event`.

enum Gear { unknown @0; park @1; drive @2; reverse @3; }

struct CanFrame { address @0 :UInt32; busTime @1 :UInt16; dat @2 :Data; src @3 :UInt8; }

struct CarState {
  vEgo @0 :Float32; aEgo @1 :Float32; steeringAngle @2 :Float32; brake @3 :Float32;
  gas @4 :Float32; brakePressed @5 :Bool; gasPressed @6 :Bool; gear @7 :Gear;
  buttons @8 :List(Button); wheelSpeeds @9 :WheelSpeeds; canValid @10 :Bool; name @11 :Text;
  cruise @12 :Cruise;
  struct Button { type @0 :Kind; pressed @1 :Bool; enum Kind { unknown @0; left @1; right @2; } }
  struct WheelSpeeds { fl @0 :Float32; fr @1 :Float32; rl @2 :Float32; rr @3 :Float32; }
  struct Cruise { enabled @0 :Bool; speed @1 :Float32; }
}

struct Control {
  enabled @0 :Bool; active @1 :Bool; actuators @2 :Actuators;
  state :union { pid :group { p @3 :Float32; i @4 :Float32; } off @5 :Void; }
  struct Actuators { gas @0 :Float32; brake @1 :Float32; steer @2 :Float32; }
}

struct Model {
  frameId @0 :UInt32; position @1 :Xyz; velocity @2 :Xyz; lanes @3 :List(Xyz); raw @4 :Data;
  struct Xyz { x @0 :List(Float32); y @1 :List(Float32); z @2 :List(Float32); }
}

struct Init { version @0 :Text; params @1 :List(Entry); struct Entry { key @0 :Text; value @1 :Data; } }

struct Event {
  logMonoTime @0 :UInt64;
  valid @1 :Bool = true;
  union {
    init @2 :Init;
    can @3 :List(CanFrame);
    carState @4 :CarState;
    carControl @5 :Control;
    modelV2 @6 :Model;
    sendcan @7 :List(CanFrame);
    logMessage @8 :Text;
    spare0 @9 :CarState; spare1 @10 :CarState; spare2 @11 :CarState; spare3 @12 :CarState;
    spare4 @13 :Control; spare5 @14 :Control; spare6 @15 :Control; spare7 @16 :Control;
  }
}
