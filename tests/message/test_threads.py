"""Many threads at once: readers give right answers; builders and decoders at least stay whole."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

import capnwire
from capnwire.errors import CapnwireError
from capnwire.wire.packed import PackedDecoder

SCHEMA = """@0xf4a8d3b6c1e70925;
struct Node { value @0 :UInt32; text @1 :Text; nodes @2 :List(Node); texts @3 :List(Text);
  data @4 :Data; next @5 :Node; voids @6 :List(Void); }
"""
THREADS = 8


@pytest.fixture(scope="module")
def schema() -> ModuleType:
    return capnwire.load_text(SCHEMA, "threads.capnp")


@pytest.fixture(autouse=True)
def eager_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Callable[[int], object], threads: int = THREADS) -> list[object]:
    """Run `work(i)` in threads that start together; what they raise is raised here."""
    results: list[object] = [None] * threads
    errors: list[BaseException] = []
    barrier = threading.Barrier(threads)

    def run(index: int) -> None:
        barrier.wait()
        try:
            results[index] = work(index)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(index,)) for index in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]
    return results


def content(rows: int) -> dict[str, Any]:
    return {
        "nodes": [
            {"value": index, "text": f"row {index}", "texts": ["a", "b" * (index % 40)]}
            for index in range(rows)
        ],
        "data": b"d" * 1000,
    }


def check(reader: Any, rows: int) -> None:
    nodes = reader.nodes
    assert len(nodes) == rows
    for index, node in enumerate(nodes):
        assert node.value == index
        assert node.text == f"row {index}"
        assert node.texts[1] == "b" * (index % 40)
    assert reader.to_dict()["nodes"][-1]["value"] == rows - 1


@pytest.mark.parametrize("buffer", [bytes, bytearray], ids=["bytes", "bytearray"])
@pytest.mark.parametrize("first_words", [None, 1], ids=["one segment", "many segments"])
def test_one_message_read_by_many_threads(
    schema: ModuleType, buffer: type, first_words: int | None
) -> None:
    reader = schema.Node.from_bytes(
        buffer(schema.Node.new_message(first_words, **content(200)).to_bytes())
    )
    whole, canonical = reader.to_dict(), reader.to_canonical()

    def work(index: int) -> None:
        for _ in range(10):
            check(reader, 200)
            assert reader.to_dict() == whole
            assert reader.to_canonical() == canonical
            assert reader.as_builder() == reader
            assert reader.total_size.word_count * 8 <= len(canonical) + 8 * 10_000
            assert bytes(reader.get_data_as_view("data")) == b"d" * 1000

    in_threads(work)


def test_the_verdict_on_a_spent_budget_is_shared(schema: ModuleType) -> None:
    # Each thread spends the traversal limit; counting lets the others run meanwhile.
    data = schema.Node.new_message(**content(3000)).to_bytes()
    for buffer in (data, bytearray(data)):
        reader = schema.Node.from_bytes(buffer)
        nodes = [reader for _ in range(THREADS)]

        def work(index: int, nodes: list[Any] = nodes) -> int:
            total = 0
            for round in range(200):
                total += len(nodes[index].nodes)
                if round % 40 == 0:
                    total += len(nodes[index].to_dict()["data"])
            return total

        assert set(in_threads(work)) == {200 * 3000 + 5 * 1000}


def test_types_completed_by_many_threads_at_once() -> None:
    for round in range(5):
        parser = capnwire.SchemaParser()
        module = parser.load_text(SCHEMA, f"round{round}.capnp")
        data = (
            module.Node.new_message(**content(5)).to_bytes() if round % 2 else bytes(8) + bytes(0)
        )

        def work(index: int, module: Any = module, data: bytes = data) -> object:
            if len(data) > 8:
                check(module.Node.from_bytes(data), 5)
            return module.Node.new_message(next={"text": "t"}).to_dict()

        results = in_threads(work)
        assert all(result == results[0] for result in results)


def test_threads_that_close_what_others_read(schema: ModuleType) -> None:
    for first_words in (None, 1) * 30:
        data = schema.Node.new_message(first_words, **content(300)).to_bytes()
        buffer = bytearray(data)
        reader = schema.Node.from_bytes(buffer)
        nodes = reader.nodes

        def work(
            index: int, reader: Any = reader, nodes: Any = nodes, buffer: bytearray = buffer
        ) -> None:
            if index == 0:
                reader.close()
                try:
                    buffer.clear()
                except BufferError:  # somebody is in the middle of reading
                    buffer[:] = bytes(len(buffer))
                return
            for question in (
                reader.to_dict,
                lambda: [node.text for node in nodes],
                lambda: nodes[:],
                reader.as_builder,
                reader.to_canonical,
                lambda: str(reader),
                lambda: reader == reader,
                lambda: bytes(reader.get_data_as_view("data")),
            ):
                try:
                    question()
                except CapnwireError:
                    pass

        in_threads(work, 4)


def test_an_iterator_shared_by_threads_gives_each_message_once(schema: ModuleType) -> None:
    data = b"".join(schema.Node.new_message(value=i).to_bytes() for i in range(2000))
    messages = schema.Node.read_multiple_bytes(data)

    def work(index: int) -> list[int]:
        return [message.value for message in messages]

    found = [value for values in in_threads(work) for value in values]  # type: ignore[attr-defined]
    assert sorted(found) == list(range(2000))


def test_a_builder_written_by_many_threads_stays_whole(schema: ModuleType) -> None:
    message = schema.Node.new_message(8)

    def work(index: int) -> None:
        rng = random.Random(index)
        for _ in range(400):
            try:
                rng.choice(
                    [
                        lambda: setattr(message, "text", "x" * rng.randrange(300)),
                        lambda: message.init("nodes", rng.randrange(5)),
                        lambda: message.nodes[0].init("texts", 3).__setitem__(1, "y"),
                        lambda: setattr(message, "next", message),
                        lambda: message.clear("next"),
                        lambda: message.disown("nodes").get(),
                        message.to_bytes,
                        message.to_dict,
                        message.copy,
                        lambda: str(message),
                        lambda: setattr(message, "nodes", [{"text": "t"}] * 4),
                        lambda: message.adopt("nodes", message.disown("nodes")),
                    ]
                )()
            except (CapnwireError, IndexError):
                pass
            if message.total_size.word_count > 10_000:
                message.clear("next")

    in_threads(work, 4)
    assert schema.Node.from_bytes(message.to_bytes()) == message


def test_a_decoder_in_use_refuses_another_thread_or_works(schema: ModuleType) -> None:
    packed = schema.Node.new_message(data=bytes(range(256)) * 4000).to_bytes_packed()
    decoder = PackedDecoder()

    def work(index: int) -> int:
        refused = 0
        for _ in range(20):
            try:
                decoder.feed(packed)
                decoder.next_message()
            except RuntimeError:
                refused += 1
            except CapnwireError:
                break
        return refused

    in_threads(work, 4)


def test_schemas_loaded_by_many_threads_at_once() -> None:
    text = SCHEMA.replace("f4a8d3b6c1e70925", "f4a8d3b6c1e70926")

    def work(index: int) -> object:
        module = capnwire.load_text(text, "together.capnp")
        return module.Node.new_message(value=index, next={"value": index}).next.value

    assert in_threads(work) == list(range(THREADS))
