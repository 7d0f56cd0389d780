"""The values and messages that every peer reads and writes: seeded, the same in each process.

Messages are made once by `write_messages` (by pycapnp where it is installed, else by capnwire) into
a directory that the workers share; values are plain Python, made again by each worker.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import random
import struct
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).with_name("schemas")
EVENTS = 89_749
QUICK_EVENTS = 9_000
FRAMES_PER_EVENT = 60
SPARSE_FIELDS = ("f3", "f50", "f111", "f200", "f255")

SMALL: dict[str, Any] = {
    "id": 81_985_529_216_486_895,
    "name": "Ada Lovelace.",
    "email": "ada@analytical.engine",
    "age": 36,
    "active": True,
}


@functools.cache
def rows(count: int = 1000) -> dict[str, Any]:
    rng = random.Random(7)
    return {
        "rows": [
            {"id": i, "name": f"user-{i}", "score": round(rng.random() * 100, 3)}
            for i in range(count)
        ]
    }


@functools.cache
def sparse() -> dict[str, int]:
    rng = random.Random(11)
    return {f"f{i}": rng.randrange(2**31) for i in range(256)}


@functools.cache
def blob(size_bytes: int = 32 * 1024) -> bytes:
    return random.Random(13).randbytes(size_bytes)


@functools.cache
def nums(count: int = 1_000_000) -> list[float]:
    rng = random.Random(17)
    return [rng.random() for _ in range(count)]


@functools.cache
def shorts() -> list[int]:
    rng = random.Random(19)
    return [rng.randrange(-(2**15), 2**15) for _ in range(8192)]


def _floats(rng: random.Random, count: int) -> list[float]:
    # Quarters: exact in Float32, so that all peers agree without rounding.
    return [rng.randrange(-4000, 4000) / 4 for _ in range(count)]


def event(index: int, rng: random.Random) -> dict[str, Any]:
    """One log event as a dict; every 15th holds 60 frames, as a bus dump does."""
    base: dict[str, Any] = {"time": 1_000_000_000 + index * 667_000, "valid": index % 50 != 3}
    if index % 15 == 0:
        base["frames"] = [
            {
                "address": rng.randrange(2048),
                "busTime": rng.randrange(65536),
                "data": rng.randbytes(8),
                "bus": rng.randrange(4),
            }
            for _ in range(FRAMES_PER_EVENT)
        ]
        return base
    f = functools.partial(_floats, rng)
    kind = index % 22
    if kind in (1, 12):
        a, b, c, d = f(4)
        base["wheels"] = {
            "frontLeft": a, "frontRight": b, "rearLeft": c, "rearRight": d,
            "pulses": [rng.randrange(10**6) for _ in range(4)],
        }
    elif kind in (0, 2):
        x, y, z = f(3)
        base["gyroscope" if kind else "accelerometer"] = {
            "stamp": index, "x": x, "y": y, "z": z, "status": 1,
        }
    elif kind == 3:
        base["position"] = {
            "latitude": 48.25, "longitude": 11.5, "altitude": 512.0, "speed": 13.5,
            "heading": 90.25, "velocity": f(3), "source": "fused",
        }
    elif kind == 4:
        base["engine"] = {
            "speed": 2100.5, "torque": 80.25, "temperatures": f(8), "gear": 4, "running": True,
        }
    elif kind == 5:
        base["battery"] = {"voltage": 12.5, "current": -3.25, "cells": f(216)}
    elif kind in (6, 13):
        a, b, c, d = f(4)
        base["steering"] = {
            "angle": a, "rate": b, "torque": c, "driverTorque": d, "pressed": index % 2 == 0,
        }
    elif kind == 7:
        base["brakes"] = {"pressure": 1.25, "pressed": True, "held": False}
    elif kind == 8:
        base["doors"] = {"open": [False, True, False, False], "locked": False}
    elif kind == 9:
        base["camera"] = {
            "frame": index, "exposure": 0.25, "gain": 2.5, "start": index * 3, "end": index * 4,
            "transform": f(9),
        }
    elif kind == 10:
        base["radar"] = {
            "tracks": [
                {"id": i, "distance": d, "lateral": -d, "speed": 0.5, "measured": True}
                for i, d in enumerate(f(16))
            ]
        }
    elif kind == 11:
        base["path"] = {"x": f(99), "y": f(99), "z": f(99)}
    elif kind == 14:
        base["plan"] = {"speeds": f(51), "accelerations": f(51), "stop": False}
    elif kind == 15:
        base["thermal"] = {"cores": f(8), "fan": 1200}
    elif kind == 16:
        base["network"] = {
            "interface": "wlan0", "strength": -61, "sent": index * 7, "received": index * 9,
        }
    elif kind == 17:
        if index % 2:
            base["note"] = f"event {index} was written by the recorder"
        else:
            base["heartbeat"] = None
    elif kind == 18:
        base["driver"] = {"face": f(42), "attentive": True, "awareness": 0.75}
    elif kind == 19:
        base["alert"] = {"title": "Take over", "text": "The lane ends in 200 m", "severity": 2}
    elif kind == 20:
        a, b, c, d, e = f(5)
        base["control"] = {
            "acceleration": a, "steer": b, "brake": c, "gas": d, "enabled": True,
            "curvature": e, "rolls": f(33),
        }
    elif index % 44 == 21:
        base["calibration"] = {"matrix": f(12), "spread": f(3), "percent": 99}
    else:
        base["raw"] = rng.randbytes(600)
    return base


def event_kind(value: dict[str, Any]) -> str:
    return next(name for name in value if name not in ("time", "valid"))


@functools.cache
def log_summary(count: int) -> dict[str, Any]:
    """What a reader of the log should have found, without keeping the log."""
    rng = random.Random(23)
    kinds: dict[str, int] = {}
    frames = total = 0
    for index in range(count):
        value = event(index, rng)
        kind = event_kind(value)
        kinds[kind] = kinds.get(kind, 0) + 1
        if kind == "frames":
            frames += len(value[kind])
            total += sum(x["address"] + x["busTime"] + x["bus"] for x in value[kind])
    return {"count": count, "kinds": kinds, "frames": frames, "total": total}


def message(segments: list[bytes]) -> bytes:
    """Frame segments: the table, padded to a word, then the segments."""
    table = struct.pack("<I", len(segments) - 1)
    table += b"".join(struct.pack("<I", len(x) // 8) for x in segments)
    return table + bytes(-len(table) % 8) + b"".join(segments)


def texts_in_segments(count: int) -> bytes:
    """A `Texts` message in which each text has a segment of its own, reached by a far pointer."""
    pad = struct.pack("<II", 1, 2 | (8 << 3))  # a list of 8 bytes, right behind its landing pad
    far = [struct.pack("<II", 2, i + 1) for i in range(count)]
    root = struct.pack("<II", 0, 1 << 16) + struct.pack("<II", 1, 6 | (count << 3))
    return message([root + b"".join(far)] + [pad + b"%07d\0" % i for i in range(count)])


def large_schema(structs: int = 111, fields: int = 1400, name: str = "Large") -> str:
    """A schema text of about 2300 lines: 111 structs, 1400 fields, docs, defaults, unions."""
    rng = random.Random(29)
    kinds = [
        "UInt64", "Int32", "Float32", "Float64", "Bool", "Text", "Data", "UInt16", "Int8",
        "List(Float32)", "List(Text)",
    ]
    file_id = (rng.getrandbits(63) | 1 << 63) ^ (structs << 20) ^ fields
    lines = [f"@0x{file_id:016x};", "", "using Count = UInt32;", ""]
    lines += ["enum Level {"] + [f"  level{i} @{i};" for i in range(9)] + ["}", ""]
    per, extra = divmod(fields, structs)
    for s in range(structs):
        count = per + (s < extra)
        lines += [f"struct {name}{s} {{", f"  # Struct number {s} of the generated schema."]
        in_union = 0
        for i in range(count):
            if i == count - 3 and s % 3 == 0 and count > 5:
                lines.append("  union {")
                in_union = 2
            kind = rng.choice(kinds)
            default = ""
            if s and rng.random() < 0.15:
                kind = f"{name}{rng.randrange(s)}"
                if rng.random() < 0.4:
                    kind = f"List({kind})"
            elif rng.random() < 0.1:
                kind, default = "Level", " = level3"
            elif kind == "Int32" and rng.random() < 0.3:
                default = f" = {rng.randrange(-1000, 1000)}"
            elif rng.random() < 0.1:
                kind = "Count"
            if rng.random() < 0.25:
                lines.append(f"  # What field {i} means, in a sentence of some length.")
            indent = "    " if in_union else "  "
            lines.append(f"{indent}field{i} @{i} :{kind}{default};")
            if in_union:
                in_union -= 1
                if not in_union:
                    lines.append("  }")
        lines += ["}", ""]
    return "\n".join(lines) + "\n"


def as_json(value: Any) -> Any:
    """Values as JSON holds them: bytes become base64 text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return value


def write_messages(folder: Path, writer: str, events: int) -> None:
    """Write all messages into `folder`; `writer` is the import name of pycapnp or capnwire."""
    library = __import__(writer)
    if writer == "capnp":
        library.remove_import_hook()
    codec = library.load(str(SCHEMAS / "codec.capnp"))
    log = library.load(str(SCHEMAS / "log.capnp"))
    sparse_schema = library.load(str(SCHEMAS / "sparse.capnp"))

    def put(name: str, built: Any) -> None:
        (folder / f"{name}.bin").write_bytes(built.to_bytes())

    put("small", codec.Small.new_message(**SMALL))
    put("rows", codec.Rows.new_message(**rows()))
    put("sparse", sparse_schema.Sparse.new_message(**sparse()))
    put("blob", codec.Blob.new_message(data=blob()))
    put("blob_large", codec.Blob.new_message(data=blob(4 * 2**20)))
    put("nums", codec.Nums.new_message(xs=nums()))
    put("shorts", codec.Shorts.new_message(xs=shorts()))
    put("rows_large", codec.Rows.new_message(**rows(60_000)))
    for count in (250, 500, 1000, 2000, 4000, 8000):
        put(f"rows_{count}", codec.Rows.new_message(**rows(count)))
    for count in (16, 64, 256, 1024):
        (folder / f"segments_{count}.bin").write_bytes(texts_in_segments(count))
    rng = random.Random(23)
    with (folder / "log.bin").open("wb") as file:
        for index in range(events):
            file.write(log.Event.new_message(**event(index, rng)).to_bytes())
    (folder / "large.capnp").write_text(large_schema())
    for structs in (14, 28, 56, 111, 222):
        (folder / f"schema_{structs}.capnp").write_text(large_schema(structs, structs * 12))
    (folder / "facts.json").write_text(json.dumps({"events": events, "writer": writer}))


def exponent(sizes: list[int], times: list[float]) -> float:
    """The slope of log time over log size: 1.0 = doubling the size doubles the time."""
    xs, ys = [math.log(x) for x in sizes], [math.log(max(y, 1e-12)) for y in times]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / sum(
        (x - mx) ** 2 for x in xs
    )
