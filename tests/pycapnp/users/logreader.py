"""openpilot's LogReader: a decompressed log whose last message is cut, sorted, filtered, saved."""

import os

import capnp

cars = capnp.load(os.path.join(os.path.dirname(__file__), "cars.capnp"))
KINDS = ["carState", "can", "carControl", "modelV2", "logMessage", "sendcan", "spare3"]


def write_log(count):
    parts = []
    for n in range(count):
        kind = KINDS[n % len(KINDS)]
        event = cars.Event.new_message(logMonoTime=(n * 7919) % count, valid=n % 5 != 0)
        if kind in ("can", "sendcan"):
            frames = event.init(kind, 6)
            for k in range(6):
                frames[k].address, frames[k].dat, frames[k].src = 100 + k, b"\0\1\2\3\4\5\6\7", k
        elif kind == "logMessage":
            event.logMessage = f"message {n}"
        else:
            part = event.init(kind)
            if kind in ("carState", "spare3"):
                part.vEgo, part.aEgo, part.canValid, part.gear = n, 0.5, True, "drive"
            elif kind == "carControl":
                part.enabled = True
            else:
                part.frameId = n
        parts.append(event.to_bytes())
    return b"".join(parts)


def read_log(data):
    events = []
    try:
        for event in cars.Event.read_multiple_bytes(data):
            events.append(event)
    except capnp.KjException:
        pass
    events.sort(key=lambda event: event.logMonoTime)
    return events


def only_union_types(events):
    for event in events:
        try:
            event.which()
            yield event
        except capnp.KjException:
            pass


def main(scale):
    data = write_log(700 * scale)
    events = list(only_union_types(read_log(data[:-3])))
    counts = {}
    for event in events:
        counts[event.which()] = counts.get(event.which(), 0) + 1
    speed = sum(
        event.carState.vEgo + event.carState.aEgo + event.carState.canValid
        for event in events if event.which() == "carState"
    )
    frames = sum(
        frame.address + len(frame.dat) + frame.src
        for event in events if event.which() in ("can", "sendcan")
        for frame in getattr(event, event.which())
    )
    saved = b"".join(event.as_builder().to_bytes() for event in events[:50])
    again = [event.to_dict() for event in cars.Event.read_multiple_bytes(saved)]
    for event in again:
        for frame in event.get("can", event.get("sendcan", [])):
            frame["dat"] = frame["dat"].hex()
    texts = [event.logMessage for event in events if event.which == "logMessage"][:5]
    return [len(events), counts, speed, frames, saved.hex(), again, texts]
