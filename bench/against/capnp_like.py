"""The rows as written for an API of pycapnp's shape; capnwire and pycapnp share them.

Only where the two differ does an adapter override a row.
"""

from __future__ import annotations

import gc
from operator import attrgetter
from typing import Any

from bench import data as values
from bench.against import Case, Measured
from bench.harness import current_rss_bytes, fresh_process_seconds, installed_bytes


class CapnpLike:
    """Rows for a library with `load`, `new_message`, `from_bytes`, `to_bytes`, `which()` …."""

    import_name: str
    distribution: str
    load_environment: dict[str, str] = {}

    def __init__(self, library: Any, folder: Any, events: int) -> None:
        self.library, self.folder, self.events = library, folder, events
        self.codec = library.load(str(values.SCHEMAS / "codec.capnp"))
        self.log = library.load(str(values.SCHEMAS / "log.capnp"))
        self.sparse = library.load(str(values.SCHEMAS / "sparse.capnp"))

    def read(self, name: str) -> bytes:
        return (self.folder / f"{name}.bin").read_bytes()

    def open(self, kind: Any, data: bytes) -> Any:
        return kind.from_bytes(data).__enter__()

    # ── small ──

    def empty_call(self) -> Case:
        return Case(lambda: None)

    def field_uint32(self) -> Case:
        small = self.open(self.codec.Small, self.read("small"))
        return Case(lambda: small.age)

    def field_text(self) -> Case:
        small = self.open(self.codec.Small, self.read("small"))
        return Case(lambda: small.name)

    def small_open(self) -> Case:
        data, from_bytes = self.read("small"), self.codec.Small.from_bytes

        def run() -> tuple[Any, ...]:
            with from_bytes(data) as small:
                return small.id, small.name, small.email, small.age, small.active

        return Case(run)

    def small_build(self) -> Case:
        new, kind = self.codec.Small.new_message, self.codec.Small
        name, email = values.SMALL["name"], values.SMALL["email"]
        number, age = values.SMALL["id"], values.SMALL["age"]
        return Case(
            lambda: new(id=number, name=name, email=email, age=age, active=True).to_bytes(),
            lambda result: self.open(kind, result).to_dict(),
            wire=bytes,
        )

    # ── rows ──

    def rows_iterate(self) -> Case:
        data, from_bytes = self.read("rows"), self.codec.Rows.from_bytes

        def run() -> float:
            total = 0.0
            with from_bytes(data) as message:
                for row in message.rows:
                    total += row.id + row.score
            return total

        return Case(run)

    def rows_to_dicts(self) -> Case:
        data, from_bytes = self.read("rows"), self.codec.Rows.from_bytes

        def run() -> Any:
            with from_bytes(data) as message:
                return message.to_dict()["rows"]

        return Case(run)

    def rows_from_dicts(self) -> Case:
        new, source, kind = self.codec.Rows.new_message, values.rows(), self.codec.Rows
        return Case(
            lambda: new(**source).to_bytes(),
            lambda result: self.open(kind, result).to_dict()["rows"],
            wire=bytes,
        )

    # ── sparse, blobs, numbers ──

    def sparse_open(self) -> Case:
        data, from_bytes = self.read("sparse"), self.sparse.Sparse.from_bytes

        def run() -> tuple[int, ...]:
            with from_bytes(data) as m:
                return m.f3, m.f50, m.f111, m.f200, m.f255

        return Case(run)

    def blob_bytes(self) -> Case:
        data, from_bytes = self.read("blob"), self.codec.Blob.from_bytes

        def run() -> bytes:
            with from_bytes(data) as message:
                return message.data

        return Case(run)

    def shorts_set(self) -> Case:
        import numpy as np

        new, array = self.codec.Shorts.new_message, np.array(values.shorts(), dtype="<i2")
        prepare = self.from_array

        # A list set again takes new space each time, so each run has a message of its own.
        def run() -> Any:
            built = new()
            built.xs = prepare(array)
            return built

        return Case(run, lambda built: list(built.xs))

    def from_array(self, array: Any) -> Any:
        """What the library's setter takes for an ndarray."""
        return array.tolist()

    def shorts_read(self) -> Case:
        import numpy as np

        message = self.open(self.codec.Shorts, self.read("shorts"))
        return Case(lambda: np.array(message.xs, dtype="<i2"), lambda result: result.tolist())

    # ── log ──

    def log_list(self) -> Case:
        data, read = self.read("log"), self.log.Event.read_multiple_bytes
        return Case(lambda: list(read(data)), len)

    def log_which(self) -> Case:
        events = list(self.log.Event.read_multiple_bytes(self.read("log")))

        def run() -> list[str]:
            return [event.which() for event in events]

        def count(result: list[Any]) -> dict[str, int]:
            kinds: dict[str, int] = {}
            for kind in result:
                kinds[str(kind)] = kinds.get(str(kind), 0) + 1
            return kinds

        return Case(run, count, per=len(events))

    def log_inner(self) -> Case:
        events = [
            event
            for event in self.log.Event.read_multiple_bytes(self.read("log"))
            if event.which() == "frames"
        ]

        def run() -> int:
            total = 0
            for event in events:
                for frame in event.frames:
                    total += frame.address + frame.busTime + frame.bus
            return total

        return Case(run, per=len(events) * values.FRAMES_PER_EVENT)

    def log_rss(self) -> Measured:
        """Resident bytes for each message of `list(read_multiple_bytes)`, its list slot too."""
        data, read = self.read("log"), self.log.Event.read_multiple_bytes
        # Some megabytes are free already (what loading the schema left), so a short log is
        # read as often as makes them negligible.
        times = -(-400_000 // self.events)

        def measure() -> float:
            gc.collect()
            before = current_rss_bytes()
            kept = [list(read(data)) for _ in range(times)]
            gc.collect()
            return (current_rss_bytes() - before) / sum(map(len, kept))

        return Measured(measure)

    def kept_message(self) -> Measured:
        """Resident bytes of one kept message of its own: reader and arena, without its buffer."""
        data, from_bytes = self.read("small"), self.codec.Small.from_bytes
        count = 500_000

        def measure() -> float:
            kept: list[Any] = [None] * count
            from_bytes(data).__enter__()
            gc.collect()
            before = current_rss_bytes()
            for i in range(count):
                kept[i] = from_bytes(data).__enter__()
            gc.collect()
            return (current_rss_bytes() - before) / count

        return Measured(measure)

    # ── packed, serialise ──

    def packed_encode(self) -> Case:
        message = self.open(self.codec.Rows, self.read("rows_large")).as_builder()
        return Case(message.to_bytes_packed, wire=bytes, value=len)

    def packed_decode(self) -> Case:
        message = self.open(self.codec.Rows, self.read("rows_large")).as_builder()
        packed, from_packed = message.to_bytes_packed(), self.codec.Rows.from_bytes_packed

        return Case(lambda: from_packed(packed), lambda m: (len(m.rows), m.rows[-1].name))

    def finished_to_bytes(self) -> Case:
        built = self.codec.Blob.new_message(data=bytes(2**20 - 64))
        return Case(built.to_bytes, len)

    # ── schema, start, size ──

    def import_time(self) -> Measured:
        return Measured(lambda: fresh_process_seconds(f"import {self.import_name}"))

    def load_first(self) -> Measured:
        return Measured(lambda: self._load_seconds("large.capnp", cached=False))

    def load_cached(self) -> Measured:
        return Measured(lambda: self._load_seconds("large.capnp", cached=True))

    def _load_seconds(self, name: str, *, cached: bool) -> float:
        return fresh_process_seconds(
            f"module = library.load({str(self.folder / name)!r})",
            setup=f"import {self.import_name} as library",
            cached=cached,
        )

    def installed_size(self) -> Measured:
        return Measured(lambda: installed_bytes(self.import_name, self.distribution))

    # ── growth: the figure for one size ──

    def grow_rows(self, size: int) -> Case:
        data, from_bytes = self.read(f"rows_{size}"), self.codec.Rows.from_bytes

        def run() -> float:
            with from_bytes(data) as message:
                return sum(row.score for row in message.rows)

        return Case(run)

    def grow_segments(self, size: int) -> Case:
        data, from_bytes = self.read(f"segments_{size}"), self.codec.Texts.from_bytes

        def run() -> int:
            with from_bytes(data) as message:
                return sum(map(len, message.xs))

        return Case(run)

    def grow_log(self, size: int) -> Case:
        data, read = self.read("log"), self.log.Event.read_multiple_bytes
        ends = [0]
        for _ in range(size):
            at = ends[-1]
            ends.append(at + 8 + 8 * int.from_bytes(data[at + 4 : at + 8], "little"))
        part = data[: ends[size]]
        return Case(lambda: list(read(part)), len)

    def grow_schema(self, size: int) -> Measured:
        return Measured(lambda: self._load_seconds(f"schema_{size}.capnp", cached=False))

    def grow_field_number(self, size: int) -> Case:
        message = self.open(self.sparse.Sparse, self.read("sparse"))
        field = attrgetter(f"f{size - 1}")
        return Case(lambda: field(message))

    def grow_message_size(self, size: int) -> Case:
        message = self.open(self.codec.Rows, self.read(f"rows_{size}")).rows[size // 2]
        return Case(lambda: message.id)
