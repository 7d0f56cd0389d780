"""Write 10 000 records to a file, map it, read from it lazily, and do the same with JSON.

Then serve an object over TCP and call it, with pipelining and a callback.  Run it as
`python examples/demo.py [number of records]`.
"""

from __future__ import annotations

import asyncio
import mmap
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import capnwire
from capnwire import codecs

SCHEMA = Path(__file__).with_name("telemetry.capnp")
CALCULATOR = capnwire.load(str(Path(__file__).with_name("calculator.capnp")))
LEVELS = ("debug", "info", "warning", "critical")


def contents(count: int) -> list[dict[str, Any]]:
    """The records as dicts: text, numbers, an enum, a union, some of it binary."""
    rng = random.Random(2026)
    records = []
    for number in range(count):
        record: dict[str, Any] = {
            "id": number,
            "machine": f"press-{number % 40:02}",
            "time": 1.7e9 + number * 0.25,
            "level": LEVELS[number % 97 % 4],
            "position": {"latitude": 48.0 + number / 1e5, "longitude": 11.5},
            "samples": [rng.randrange(-8000, 8000) / 8 for _ in range(8)],
        }
        kind = number % 10
        if kind == 0:
            record["picture"] = rng.randbytes(2000)
        elif kind == 1:
            record["fault"] = {"code": number % 500, "text": "The guard door was opened"}
        elif kind < 8:
            record["reading"] = {"temperature": 71.5, "pressure": 2.25, "rounds": number * 3}
        else:
            record["idle"] = None
        records.append(record)
    return records


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds (the best of three) and the result."""
    best = float("inf")
    result = None
    for _ in range(3):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


def capnp_way(schema: Any, records: list[dict[str, Any]], path: Path) -> list[str]:
    new = schema.Record.new_message

    def write() -> None:
        with path.open("wb") as file:
            for record in records:
                file.write(new(**record).to_bytes())

    def lazily() -> tuple[int, float]:
        """Two fields of every record; nothing else is looked at, nothing is copied."""
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
        ):
            ids = latitudes = 0.0
            for record in schema.Record.read_multiple_bytes(data):
                ids += record.id
                latitudes += record.position.latitude
            del record  # readers pin the map: the last one goes before it is closed
            return int(ids), latitudes

    def everything() -> list[dict[str, Any]]:
        return [record.to_dict() for record in schema.Record.read_multiple_bytes(path.read_bytes())]

    wrote, _ = timed(write)
    read, sums = timed(lazily)
    whole, found = timed(everything)
    assert sums == expected_sums(records)
    assert [as_written(record) for record in found] == records
    return row("Cap'n Proto", path, wrote, read, whole)


def codec_way(
    name: str, title: str, schema: Any, records: list[dict[str, Any]], path: Path
) -> list[str]:
    """Any codec of `capnwire.codecs`, each record behind its length."""
    codec, kind = codecs.get(name), schema.Record

    def write() -> None:
        with path.open("wb") as file:
            for record in records:
                data = codec.encode((kind, record))
                file.write(len(data).to_bytes(4, "little") + data)

    def messages() -> Iterator[Any]:
        data, at = path.read_bytes(), 0
        while at < len(data):
            end = at + 4 + int.from_bytes(data[at : at + 4], "little")
            yield codec.decode(kind, data[at + 4 : end])
            at = end

    def two_fields() -> tuple[int, float]:
        ids = latitudes = 0.0
        for record in messages():
            ids += record.id
            latitudes += record.position.latitude
        return int(ids), latitudes

    wrote, _ = timed(write)
    read, sums = timed(two_fields)
    whole, found = timed(lambda: [record.to_dict() for record in messages()])
    assert sums == expected_sums(records)
    assert [as_written(record) for record in found] == records
    return row(title, path, wrote, read, whole)


def plain_json_way(records: list[dict[str, Any]], path: Path) -> list[str]:
    import base64
    import json

    def default(value: bytes) -> str:
        return base64.b64encode(value).decode()

    def write() -> None:
        with path.open("w") as file:
            for record in records:
                file.write(json.dumps(record, default=default, separators=(",", ":")) + "\n")

    def two_fields() -> tuple[int, float]:
        ids = latitudes = 0.0
        with path.open() as file:
            for line in file:
                record = json.loads(line)
                ids += record["id"]
                latitudes += record["position"]["latitude"]
        return int(ids), latitudes

    def everything() -> list[dict[str, Any]]:
        with path.open() as file:
            found = [json.loads(line) for line in file]
        for record in found:
            if "picture" in record:
                record["picture"] = base64.b64decode(record["picture"])
        return found

    wrote, _ = timed(write)
    read, sums = timed(two_fields)
    whole, found = timed(everything)
    assert sums == expected_sums(records)
    assert found == records
    return row("json module, no schema", path, wrote, read, whole)


def expected_sums(records: list[dict[str, Any]]) -> tuple[int, float]:
    ids = latitudes = 0.0
    for record in records:
        ids += record["id"]
        latitudes += record["position"]["latitude"]
    return int(ids), latitudes


def as_written(record: dict[str, Any]) -> dict[str, Any]:
    """A record with enums as plain names, to compare with what was written."""
    return {**record, "level": str(record["level"])}


def row(name: str, path: Path, wrote: float, read: float, whole: float) -> list[str]:
    size = path.stat().st_size
    return [
        name, f"{size / 1e6:.2f} MB", f"{wrote * 1e3:.1f} ms", f"{read * 1e3:.1f} ms",
        f"{whole * 1e3:.1f} ms",
    ]


def print_table(head: list[str], lines: list[list[str]]) -> None:
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        widths = [max(len(line[i]) for line in [head, *lines]) for i in range(len(head))]
        for line in [head, ["─" * width for width in widths], *lines]:
            cells = [cell.rjust(w) for cell, w in zip(line, widths, strict=True)]
            print("  ".join([line[0].ljust(widths[0]), *cells[1:]]))
    else:
        table = Table(header_style="bold")
        for i, name in enumerate(head):
            table.add_column(name, justify="right" if i else "left")
        for line in lines:
            table.add_row(*line)
        Console().print(table)


def show_a_record(schema: Any, path: Path) -> None:
    """One record out of the mapped file: a view of the picture, and the record as text."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for record in schema.Record.read_multiple_bytes(data):
            if record.which() == "picture" and record.id >= 20:
                view = record.get_data_as_view("picture")
                print(f"record {record.id} of {record.machine}, level {record.level}: a picture")
                print(f"  {len(view)} bytes seen in place, the first {bytes(view[:6]).hex(' ')}")
                view.release()
                break
        del record


class Value(CALCULATOR.Value.Server):
    """A number in the server."""

    def __init__(self, number: float) -> None:
        self.number = number

    def read(self) -> float:
        return self.number

    def times(self, factor: float) -> Any:
        return Value(self.number * factor)


class Calculator(CALCULATOR.Calculator.Server):
    """Adds and multiplies, and tells whoever watches."""

    def __init__(self) -> None:
        self.watcher: Any = None

    async def evaluate(self, expression: str) -> Any:
        left, _, right = expression.partition("+")
        number = float(left) + float(right or 0)
        if self.watcher is not None:
            await self.watcher.evaluated(expression, number)
        return Value(number)

    async def sum(self, values: Any) -> Any:
        read = await asyncio.gather(*(value.read() for value in values))
        return Value(sum(item.number for item in read))

    def watch(self, watcher: Any) -> None:
        self.watcher = watcher


class Printer(CALCULATOR.Watcher.Server):
    """The client's object that the server calls back."""

    def evaluated(self, expression: str, number: float) -> None:
        print(f"  the server tells us: {expression} = {number:g}")


async def call_a_server() -> None:
    """An object served over TCP: pipelined calls in one round trip, a callback."""
    async with (
        capnwire.serve(Calculator(), "tcp://127.0.0.1:0") as server,
        capnwire.connect(server.addresses[0]) as session,
    ):
        print(f"\na calculator at {server.addresses[0]}")
        calculator = session.bootstrap(CALCULATOR.Calculator)
        await calculator.watch(Printer())
        # Nothing is awaited until the last line: all of it leaves at once.
        sum_ = calculator.evaluate("1+2").value
        product = sum_.times(14).value
        total = calculator.sum([product, calculator.evaluate("0.5").value]).value
        print(f"  (1 + 2) * 14 + 0.5 = {(await total.read()).number:g}, in one round trip")
        calls = 2000
        start = time.perf_counter()
        await asyncio.gather(*(product.read() for _ in range(calls)))
        seconds = time.perf_counter() - start
        print(f"  {calls} calls at once: {seconds / calls * 1e6:.1f} µs each")


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    schema = capnwire.load(str(SCHEMA))
    records = contents(count)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"{count} records, files in {folder}\n")
        lines = [
            capnp_way(schema, records, folder / "records.bin"),
            codec_way("packed", "packed", schema, records, folder / "records.packed"),
            codec_way("json", "JSON, base64, checked", schema, records, folder / "records.json"),
            plain_json_way(records, folder / "records.jsonl"),
        ]
        show_a_record(schema, folder / "records.bin")
        print()
        print_table(["encoding", "size", "write", "two fields of all", "all to dicts"], lines)
    asyncio.run(call_a_server())


if __name__ == "__main__":
    main()
