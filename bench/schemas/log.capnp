@0xe1d5a09b36c8f247;
# A vehicle's log: one event, a wide union of structs, some tiny and some large.

struct Event {
  time @0 :UInt64;
  valid @1 :Bool;
  union {
    frames @2 :List(Frame);
    wheels @3 :Wheels;
    gyroscope @4 :Motion;
    accelerometer @5 :Motion;
    position @6 :Position;
    engine @7 :Engine;
    battery @8 :Battery;
    steering @9 :Steering;
    brakes @10 :Brakes;
    doors @11 :Doors;
    camera @12 :Camera;
    radar @13 :Radar;
    path @14 :Path;
    plan @15 :Plan;
    thermal @16 :Thermal;
    network @17 :Network;
    note @18 :Text;
    heartbeat @19 :Void;
    driver @20 :Driver;
    alert @21 :Alert;
    control @22 :Control;
    calibration @23 :Calibration;
    raw @24 :Data;
  }
}

struct Frame {
  address @0 :UInt32;
  busTime @1 :UInt16;
  data @2 :Data;
  bus @3 :UInt8;
}

struct Wheels {
  frontLeft @0 :Float32;
  frontRight @1 :Float32;
  rearLeft @2 :Float32;
  rearRight @3 :Float32;
  pulses @4 :List(UInt32);
}

struct Motion {
  stamp @0 :UInt64;
  x @1 :Float32;
  y @2 :Float32;
  z @3 :Float32;
  status @4 :UInt8;
}

struct Position {
  latitude @0 :Float64;
  longitude @1 :Float64;
  altitude @2 :Float64;
  speed @3 :Float32;
  heading @4 :Float32;
  velocity @5 :List(Float32);
  source @6 :Source;

  enum Source {
    satellite @0;
    odometry @1;
    fused @2;
  }
}

struct Engine {
  speed @0 :Float32;
  torque @1 :Float32;
  temperatures @2 :List(Float32);
  gear @3 :Int8;
  running @4 :Bool;
}

struct Battery {
  voltage @0 :Float32;
  current @1 :Float32;
  cells @2 :List(Float32);
}

struct Steering {
  angle @0 :Float32;
  rate @1 :Float32;
  torque @2 :Float32;
  driverTorque @3 :Float32;
  pressed @4 :Bool;
}

struct Brakes {
  pressure @0 :Float32;
  pressed @1 :Bool;
  held @2 :Bool;
}

struct Doors {
  open @0 :List(Bool);
  locked @1 :Bool;
}

struct Camera {
  frame @0 :UInt32;
  exposure @1 :Float32;
  gain @2 :Float32;
  start @3 :UInt64;
  end @4 :UInt64;
  transform @5 :List(Float32);
}

struct Radar {
  tracks @0 :List(Track);

  struct Track {
    id @0 :UInt32;
    distance @1 :Float32;
    lateral @2 :Float32;
    speed @3 :Float32;
    measured @4 :Bool;
  }
}

struct Path {
  x @0 :List(Float32);
  y @1 :List(Float32);
  z @2 :List(Float32);
}

struct Plan {
  speeds @0 :List(Float32);
  accelerations @1 :List(Float32);
  stop @2 :Bool;
}

struct Thermal {
  cores @0 :List(Float32);
  fan @1 :UInt16;
}

struct Network {
  interface @0 :Text;
  strength @1 :Int8;
  sent @2 :UInt64;
  received @3 :UInt64;
}

struct Driver {
  face @0 :List(Float32);
  attentive @1 :Bool;
  awareness @2 :Float32;
}

struct Alert {
  title @0 :Text;
  text @1 :Text;
  severity @2 :UInt8;
}

struct Control {
  acceleration @0 :Float64;
  steer @1 :Float64;
  brake @2 :Float64;
  gas @3 :Float64;
  enabled @4 :Bool;
  curvature @5 :Float64;
  rolls @6 :List(Float32);
}

struct Calibration {
  matrix @0 :List(Float32);
  spread @1 :List(Float32);
  percent @2 :Int8;
}
