"""Every byte of many messages changed: a value or a CapnwireError, nothing else, and in time.

A seeded part runs always; `CAPNWIRE_MUTANTS` (set by `make fuzz`) says how many run in all.
"""

from __future__ import annotations

import faulthandler
import io
import os
import random
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

import capnwire
from capnwire.errors import CapnwireError
from capnwire.wire.framing import FrameDecoder, message_end
from capnwire.wire.packed import PackedDecoder, pack, unpack, unpack_message
from tests import mutants

MUTANTS = int(os.environ.get("CAPNWIRE_MUTANTS") or 0)
SHARE = 64  # one mutant of so many is read with the default limits: a cyclic one takes a while

NAMES = [
    "scalars", "blobs", "lists", "pointer lists", "structs", "struct lists", "unions", "generics",
    "any pointers", "a segment an object", "double far", "older versions", "capabilities",
]


@pytest.fixture(scope="module")
def schema() -> ModuleType:
    return mutants.load()


@pytest.fixture(scope="module")
def samples(schema: ModuleType) -> dict[str, bytes]:
    found = mutants.samples(schema)
    assert list(found) == NAMES
    return found


def portion(samples: dict[str, bytes], name: str, ordinary: int) -> int:
    """How many mutants of one sample: in proportion to its bytes."""
    total = sum(map(len, samples.values()))
    return max(1, (MUTANTS or ordinary) * len(samples[name]) // total)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "capabilities"])
def test_the_samples_themselves_are_read_without_an_error(
    schema: ModuleType, samples: dict[str, bytes], name: str
) -> None:
    reader = schema.All.from_bytes(samples[name])
    assert len(reader.to_dict()) > 5
    assert reader.as_builder().to_dict().keys() == reader.to_dict().keys()
    assert str(reader)
    mutants.Examiner(schema).examine(samples[name], limit=None, building=True)


@pytest.mark.parametrize("name", NAMES)
def test_changed_bytes_give_a_value_or_a_capnwire_error(
    schema: ModuleType, samples: dict[str, bytes], name: str, rng: random.Random
) -> None:
    data = samples[name]
    examiner = mutants.Examiner(schema)
    done, wanted = 0, portion(samples, name, 5000)
    while done < wanted:
        per_byte = min(16, max(1, (wanted - done) // len(data)))
        for mutant in mutants.mutants(data, rng, per_byte):
            if done >= wanted:
                break
            if wanted < len(data) and rng.random() > 1.5 * wanted / len(data):
                continue
            if rng.random() < 0.2:
                mutant = mutants.changed_again(mutant, rng)
            limit = None if rng.randrange(SHARE) == 0 else 50_000
            examiner.examine(mutant, limit=limit, building=rng.random() < 0.5)
            done += 1


# ---------------------------------------------------------------- streams

def outcome(question: Callable[[], Any]) -> Any:
    """The value, or the class of the CapnwireError."""
    try:
        return question()
    except CapnwireError as error:
        return type(error)


def pieces(data: bytes, rng: random.Random) -> list[bytes]:
    found = []
    while data:
        size = rng.choice([1, 1, 2, 3, 7, 8, 30, 500])
        found.append(data[:size])
        data = data[size:]
    return found


def decoded(decoder: Any, data: bytes, rng: random.Random) -> tuple[list[bytes], type | None]:
    """The messages of a stream fed in random pieces, and the error at its end."""
    messages: list[bytes] = []
    try:
        for piece in pieces(data, rng):
            assert decoder.needed >= 1
            decoder.feed(piece)
            messages += decoder
        decoder.finish()
    except CapnwireError as error:
        with pytest.raises(type(error)):
            decoder.next_message()
        return messages, type(error)
    return messages, None


def read_all(read: Callable[[Any], Any], data: bytes) -> tuple[list[Any], type | None]:
    messages: list[Any] = []
    try:
        for message in read(io.BytesIO(data)):
            messages.append(message)
    except CapnwireError as error:
        return messages, type(error)
    return messages, None


@pytest.mark.parametrize("name", ["lists", "structs", "a segment an object", "double far"])
def test_changed_streams_are_decoded_alike_in_any_pieces(
    schema: ModuleType, samples: dict[str, bytes], name: str, rng: random.Random
) -> None:
    stream = samples[name] * 3
    for _ in range(portion(samples, name, 3000)):
        mutant = mutants.changed(stream, rng)
        limit = rng.choice([100, 10_000])
        first = decoded(FrameDecoder(message_limit_words=limit), mutant, rng)
        assert first == decoded(FrameDecoder(message_limit_words=limit), mutant, rng)
        assert b"".join(first[0]) == mutant[: sum(map(len, first[0]))]
        for message in first[0]:
            assert message_end(message) == len(message)
        messages, error = read_all(lambda file: schema.All.read_multiple(file, limit), mutant)
        assert len(messages) <= len(first[0])
        if len(messages) == len(first[0]):
            assert error is first[1]


@pytest.mark.parametrize("name", NAMES)
def test_changed_packed_bytes_are_decoded_alike_in_any_pieces(
    schema: ModuleType, samples: dict[str, bytes], name: str, rng: random.Random
) -> None:
    packed = schema.All.from_bytes(samples[name]).to_bytes_packed() if name != "capabilities" else (
        pack(samples[name])
    )
    for _ in range(portion(samples, name, 6000)):
        mutant = mutants.changed(packed * 2, rng)
        whole = outcome(lambda mutant=mutant: unpack_message(mutant, limit_words=10_000))
        messages, error = decoded(PackedDecoder(message_limit_words=10_000), mutant, rng)
        assert (messages, error) == decoded(PackedDecoder(message_limit_words=10_000), mutant, rng)
        if isinstance(whole, tuple):
            assert messages[0] == whole[0]
        else:
            assert messages == []
            assert error is not None
        loose = outcome(lambda mutant=mutant: unpack(mutant, 1 << 20))
        if isinstance(loose, bytes):
            assert unpack(pack(loose)) == loose
        outcome(lambda mutant=mutant: schema.All.from_bytes_packed(mutant, 10_000).to_dict())
        read_all(lambda file: schema.All.read_multiple_packed(file, 10_000), mutant)


# ---------------------------------------------------------------- requests

def test_changed_code_generator_requests_are_loaded_or_refused(rng: random.Random) -> None:
    from capnwire.compiler.driver import compile_text
    from capnwire.compiler.emit_request import emit_request

    request = emit_request(compile_text(mutants.SCHEMA, filename="all.capnp"))
    use_all(capnwire.SchemaParser().load(request))
    loaded = 0
    for _ in range(MUTANTS // 20 or 400):
        mutant = mutants.changed(request, rng)
        faulthandler.dump_traceback_later(60, exit=True, file=sys.__stderr__)
        started = time.process_time()
        try:
            use_all(capnwire.SchemaParser().load(mutant))
            loaded += 1
        except CapnwireError:
            pass
        finally:
            faulthandler.cancel_dump_traceback_later()
        assert time.process_time() - started < mutants.SECONDS
    assert loaded


def use_all(module: Any) -> None:
    """Everything that can be done with the types of a module."""
    for name in dir(module):
        kind = outcome(lambda name=name: getattr(module, name, None))
        if not (isinstance(kind, type) and issubclass(kind, capnwire.Struct)):
            continue
        for question in (
            lambda kind=kind: kind.new_message().to_dict(verbose=True),
            lambda kind=kind: kind.from_bytes(bytes(8) + bytes(8)).to_dict(verbose=True),
            lambda kind=kind: kind.from_segments([bytes(8)]).to_dict(verbose=True),
            lambda kind=kind: repr(kind.schema),
            lambda kind=kind: fill(kind),
        ):
            outcome(question)


def fill(kind: Any) -> None:
    """Get, set, start anew and clear every field."""
    builder = kind.new_message()
    kind._info.ensure()
    for name in kind._info.by_name:
        outcome(lambda name=name: builder[name])
        for value in (1, "x", b"x", {}, [], None, [{}], 1.5):
            try:
                builder[name] = value
            except (CapnwireError, TypeError, AttributeError):
                pass
        for size in (None, 3):
            try:
                builder.init(name, size)
            except (CapnwireError, TypeError):
                pass
        outcome(lambda name=name: builder.clear(name))
    outcome(builder.to_dict)
    assert kind.from_bytes(builder.to_bytes()) == builder
