"""openpilot's processes: build events, publish bytes, read them, copy actuators each step."""

import os
import pickle

import capnp

capnp.remove_import_hook()
cars = capnp.load(os.path.join(os.path.dirname(__file__), "cars.capnp"))


def new_message(service, size=None, **kwargs):
    event = cars.Event.new_message(valid=True, logMonoTime=kwargs.pop("time", 0), **kwargs)
    if service is not None:
        if size is None:
            try:
                event.init(service)
            except capnp.lib.capnp.KjException:
                event.init(service, 0)
        else:
            event.init(service, size)
    return event


def event_from_bytes(data):
    with cars.Event.from_bytes(data, traversal_limit_in_words=2**64 - 1) as message:
        return message


def car_state(step):
    event = new_message("carState", time=step)
    state = event.carState
    state.vEgo = step * 0.25
    state.aEgo = 0.5
    state.gear = "drive" if step % 3 else cars.Gear.park
    state.wheelSpeeds.fl = state.wheelSpeeds.fr = 1.5
    state.cruise = {"enabled": bool(step % 2), "speed": 30}
    state.buttons = [cars.CarState.Button(type="left", pressed=True)]
    state.name = f"car {step}"
    return event


def control(state, step):
    event = new_message("carControl", time=step)
    command = event.carControl
    command.enabled = state.cruise.enabled
    command.actuators.gas = min(1.0, state.vEgo / 100)
    pid = command.state.init("pid")
    pid.p, pid.i = 0.5, 0.125
    actuators = command.actuators.as_reader().as_builder()
    actuators.steer = -0.25
    command.actuators = actuators
    return event


def model(step):
    event = new_message("modelV2", time=step)
    made = event.modelV2
    made.frameId = step
    made.position = cars.Model.Xyz.new_message(
        x=[0.5 * n for n in range(33)], y=[0.0] * 33, z=[1.0] * 33
    )
    lanes = made.init("lanes", 4)
    for n in range(4):
        lanes[n].y = [n + 0.25 * k for k in range(33)]
    return event


def main(scale):
    results = []
    checks = 0
    for step in range(40 * scale):
        state = event_from_bytes(car_state(step).to_bytes())
        assert state.which() == "carState" and state.which == "carState"
        car = getattr(state, state.which())
        gears = {"drive": 1, "park": 2}
        checks += gears[car.gear] + (car.gear == cars.Gear.park) + car.buttons[0].pressed
        command = control(car, step).as_reader()
        answer = event_from_bytes(command.as_builder().to_bytes())
        assert answer.carControl.state.which() == "pid"
        checks += answer.carControl.enabled + round(answer.carControl.actuators.steer * 4)
        if step % 4 == 0:
            seen = event_from_bytes(model(step).to_bytes()).modelV2
            checks += int(sum(list(seen.lanes[3].y))) + len(seen.position.x)
        if step % 20 == 0:
            again = pickle.loads(pickle.dumps(answer))
            can = new_message("can", 3, time=step)
            for n, frame in enumerate(can.can):
                frame.address, frame.dat, frame.src = n, b"12345678", 128
            results.append([
                state.to_dict(), answer.to_dict(verbose=True), again.carControl.to_dict(),
                str(car), sorted(cars.CarState.schema.fields.keys()), can.to_bytes().hex(),
                isinstance(car, capnp._DynamicStructReader),
            ])
    try:
        new_message("nonsense")
    except (capnp.lib.capnp.KjException, AttributeError):
        checks += 1
    return [checks, results]
