"""What ends the process under pycapnp 2.2.4: here it raises, or gives the right value."""

import gc
import mmap
import pickle
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest

BROKEN_SCHEMAS = {
    "syntax": "@0xb0c6f0c5a5b6d1f0;\nstruct A { a @0 Text; }\n",
    "undefined type": "@0xb0c6f0c5a5b6d1f1;\nstruct A { a @0 :Missing; }\n",
    "missing import": '@0xb0c6f0c5a5b6d1f2;\nstruct A { a @0 :import "nowhere.capnp".B; }\n',
    "no file id": "struct A { a @0 :Text; }\n",
    "hole in the ordinals": "@0xb0c6f0c5a5b6d1f3;\nstruct A { a @0 :Text; b @2 :Text; }\n",
    "default out of range": "@0xb0c6f0c5a5b6d1f4;\nstruct A { a @0 :UInt8 = 300; }\n",
    "duplicate id": "@0xb0c6f0c5a5b6d1f5;\nstruct A @0xb0c6f0c5a5b6d1f6 {}\n"
    "struct B @0xb0c6f0c5a5b6d1f6 {}\n",
    "a list of AnyPointer": "@0xb0c6f0c5a5b6d1f7;\nstruct A { a @0 :List(AnyPointer); }\n",
}


@pytest.mark.parametrize("name", BROKEN_SCHEMAS)
def test_a_schema_with_an_error_raises(capnp: Any, tmp_path: Path, name: str) -> None:
    file = tmp_path / "broken.capnp"
    file.write_text(BROKEN_SCHEMAS[name])
    with pytest.raises(capnp.KjException, match=r"broken\.capnp:\d+"):
        capnp.load(str(file))


def test_a_streaming_method_loads_without_import_paths(capnp: Any, tmp_path: Path) -> None:
    file = tmp_path / "streaming.capnp"
    file.write_text("@0xb0c6f0c5a5b6d1f8;\ninterface Sink { put @0 (data :Data) -> stream; }\n")
    assert "put" in capnp.load(str(file)).Sink.schema.methods


def filled(kind: Any) -> Any:
    return kind.new_message(
        text="a text", data=b"some bytes", leaf={"number": 4, "text": "four"},
        leaves=[{"number": n, "text": str(n)} for n in range(5)], texts=["one", "two"],
        nested=[[1, 2], [3]], group={"number": 3, "word": "w"},
    )


@pytest.mark.parametrize("seed", range(40))
def test_corrupt_messages_raise_in_whatever_reads_all_of_them(
    capnp: Any, kind: Any, seed: int
) -> None:
    chance = random.Random(seed)
    data = bytearray(filled(kind).to_bytes())
    for _ in range(chance.randint(1, 8)):
        data[chance.randrange(8, len(data))] ^= 1 << chance.randrange(8)
    for look in (
        repr, str, lambda r: r.as_builder(), lambda r: r.as_builder().copy(), pickle.dumps,
        lambda r: r.total_size, lambda r: r.to_dict(), lambda r: r.to_dict(verbose=True),
    ):
        try:
            with kind.from_bytes(bytes(data)) as reader:
                look(reader)
        except (capnp.KjException, UnicodeDecodeError):
            pass


def test_a_promise_has_no_attributes_but_structs_and_capabilities(capnp: Any, kinds: Any) -> None:
    import asyncio

    class Server(kinds.Echo.Server):  # type: ignore[name-defined, misc]
        async def echo(self, text: str, **_: Any) -> str:
            return text

    async def main() -> None:
        promise = kinds.Echo._new_client(Server()).echo("hello")
        assert not hasattr(promise, "anything")
        with pytest.raises(AttributeError):
            promise.text  # noqa: B018
        with pytest.raises(AttributeError):
            promise.wait()
        assert (await promise).text == "hello"

    asyncio.run(capnp.run(main()))


def test_a_group_is_copied_and_pickled_as_a_struct_of_its_own(kind: Any) -> None:
    reader = filled(kind).as_reader()
    assert reader.group.as_builder().to_dict() == {"number": 3, "word": "w"}
    again = pickle.loads(pickle.dumps(reader.group))
    assert again.to_dict() == {"number": 3, "word": "w"}


@pytest.mark.parametrize("field", ["texts", "shorts", "text", "i32", "leaf", "absent"])
def test_only_lists_of_structs_are_resizable(capnp: Any, kind: Any, field: str) -> None:
    with pytest.raises(capnp.KjException):
        kind.new_message().init_resizable_list(field)


def raising(words: int) -> bytearray:
    raise RuntimeError("no memory today")


@pytest.mark.parametrize(
    ("allocator", "error"),
    [
        pytest.param(lambda words: "text", (TypeError, ValueError), id="wrong type"),
        pytest.param(lambda words: bytearray(8), Exception, id="too small"),
        pytest.param(raising, RuntimeError, id="raises"),
        pytest.param(lambda words: bytearray(b"\1" * words * 8), Exception, id="not zeroed"),
        pytest.param(lambda words: bytes(words * 8), (TypeError, BufferError), id="read-only"),
    ],
)
def test_a_wrong_allocator_raises(capnp: Any, kind: Any, allocator: Any, error: Any) -> None:
    with pytest.raises(error):
        capnp._PyCustomMessageBuilder(allocator, 1024).init_root(kind)
    with pytest.raises(error):
        kind.new_message(1024, allocator)


def test_a_first_segment_has_no_negative_size(kind: Any) -> None:
    with pytest.raises(ValueError, match="-1"):
        kind.new_message(num_first_segment_words=-1)


def test_a_verbose_dict_of_a_recursive_type_ends(kinds: Any) -> None:
    node = kinds.Node.new_message(value=1)
    assert node.to_dict(verbose=True)["value"] == 1
    assert node.as_reader().to_dict(verbose=True)["children"] == []


@pytest.mark.parametrize("closing", ["bytearray", "mmap"])
def test_a_reader_kept_beyond_its_buffer_raises(capnp: Any, kind: Any, closing: str) -> None:
    data = filled(kind).to_bytes()
    buffer: Any
    if closing == "mmap":
        with tempfile.TemporaryFile() as file:
            file.write(data)
            file.flush()
            buffer = mmap.mmap(file.fileno(), len(data))
    else:
        buffer = bytearray(data)
    with kind.from_bytes(buffer) as reader:
        leaf = reader.leaf
        assert reader.text == "a text"
    if closing == "mmap":
        buffer.close()
    else:
        buffer[:] = b""
    del buffer
    gc.collect()
    for look in (lambda: reader.text, lambda: leaf.number, lambda: reader.which):
        with pytest.raises((capnp.KjException, ValueError)):
            look()


def test_an_adopted_orphan_has_nothing_left(capnp: Any, kinds: Any) -> None:
    message = capnp._MallocMessageBuilder()
    root = message.init_root(kinds.Kinds)
    orphan = message.new_orphan(kinds.Leaf)
    orphan.get().number = 9
    root.adopt("leaf", orphan)
    assert root.leaf.number == 9
    with pytest.raises(capnp.KjException, match="adopted"):
        orphan.get()
    with pytest.raises(capnp.KjException, match="adopted"):
        root.adopt("leaf", orphan)
    taken = root.disown("leaf")
    assert taken.get().number == 9
    assert not root._has("leaf")


def test_a_message_is_assigned_into_itself_as_a_copy(kinds: Any) -> None:
    node = kinds.Node.new_message(value=3)
    node.next = node
    assert node.next.value == 3
    assert not node.next._has("next")


def test_very_deep_builders_raise(capnp: Any, kinds: Any) -> None:
    root = node = kinds.Node.new_message()
    for _ in range(200_000):
        node = node.init("next")
    for look in (str, lambda b: b.to_dict(), lambda b: b.total_size, lambda b: b.copy()):
        try:
            look(root)
        except (capnp.KjException, RecursionError):
            pass


def test_a_schema_compares_with_anything(kind: Any) -> None:
    assert kind.schema != None  # noqa: E711
    assert kind.schema != 5
    assert kind.schema == kind.new_message().schema


@pytest.mark.parametrize(
    ("field", "value"),
    [("leaves", [{"number": 1, "text": "x"}]), ("leaf", {"number": 1, "text": "x"}),
     ("group", {"number": 1, "word": "x"})],
)
def test_a_field_assigned_to_itself_keeps_its_value(kind: Any, field: str, value: Any) -> None:
    message = kind.new_message(**{field: value})
    setattr(message, field, getattr(message, field))
    assert message.to_dict()[field] == value


def test_a_field_schema_outlives_the_shared_parser(capnp: Any, tmp_path: Path) -> None:
    file = tmp_path / "outlive.capnp"
    file.write_text("@0xb0c6f0c5a5b6d1f9;\nstruct A { first @0 :Text; }\n")
    field = capnp.load(str(file)).A.schema.fields["first"]
    capnp.cleanup_global_schema_parser()
    gc.collect()
    assert field.proto.name == "first"


def test_a_stale_builder_does_not_write(capnp: Any, kind: Any) -> None:
    message = kind.new_message()
    stale = message.init("leaf")
    message.init("leaf")
    with pytest.raises(capnp.KjException, match="stale"):
        stale.number = 5
    assert message.leaf.number == 0


def test_text_given_as_packed_bytes_raises_a_type_error(kind: Any) -> None:
    with pytest.raises(TypeError):
        kind.from_bytes_packed("text")


@pytest.mark.parametrize("count", [1, 5000])
def test_a_packed_message_outlives_its_file(kind: Any, tmp_path: Path, count: int) -> None:
    with open(tmp_path / "packed", "wb") as file:
        kind.new_message(leaves=[{"number": n, "text": str(n)} for n in range(count)]).write_packed(
            file
        )
    with open(tmp_path / "packed", "rb") as file:
        reader = kind.read_packed(file)
    gc.collect()
    assert [leaf.number for leaf in reader.leaves] == list(range(count))
    del reader
    gc.collect()


def test_a_resizable_list_is_finished_once(capnp: Any, kind: Any) -> None:
    message = kind.new_message()
    items = message.init_resizable_list("leaves")
    items.add().number = 3
    items.finish()
    for again in (items.finish, items.add):
        with pytest.raises(capnp.KjException, match="finished"):
            again()
    assert [leaf.number for leaf in items] == [3]


def test_arguments_of_a_wrong_type_raise(capnp: Any, kinds: Any) -> None:
    for segments in (b"abc", [5], [None], 5, ["text"]):
        with pytest.raises(TypeError):
            kinds.Leaf.from_segments(segments)
    with pytest.raises(capnp.KjException, match="segment"):
        kinds.Leaf.from_segments([b"abc"])
    message = kinds.Kinds.new_message(any=kinds.Leaf.new_message())
    for schema in (None, 5, kinds.Color):
        with pytest.raises(TypeError):
            message.as_reader().any.as_struct(schema)
    assert kinds.Kinds.new_message().get_data_as_view("data").nbytes == 0


def test_a_context_outlives_its_call(capnp: Any, kinds: Any) -> None:
    import asyncio

    kept: list[Any] = []

    class Server(kinds.Echo.Server):  # type: ignore[name-defined, misc]
        async def echo(self, text: str, _context: Any, **_: Any) -> str:
            kept.append(_context)
            return text

    async def main() -> None:
        assert (await kinds.Echo._new_client(Server()).echo("hello")).text == "hello"

    asyncio.run(capnp.run(main()))
    gc.collect()
    assert kept[0].params.text == "hello"
    kept[0].release_params()
    with pytest.raises(capnp.KjException, match="released"):
        kept[0].params  # noqa: B018
