"""What pycapnp's users reported (by issue number) and 2.2.4 still does: solved here."""

import asyncio
import base64
import copy
import gc
import gzip
import io
import os
import pickle
import sys
import threading
import warnings
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy
import pytest

import capnwire


def events(kinds: Any, count: int) -> bytes:
    return b"".join(
        kinds.Event.new_message(time=n, leaf={"number": n, "text": "x"}).to_bytes()
        for n in range(count)
    )


def test_kept_readers_are_small_and_not_tracked(kinds: Any) -> None:
    """#245, openpilot: 489 bytes and one tracked object for each kept reader."""
    data = events(kinds, 1000)
    gc.collect()
    before = len(gc.get_objects())
    kept = list(kinds.Event.read_multiple_bytes(data))
    assert len(gc.get_objects()) - before < 20
    assert not gc.is_tracked(kept[0])
    assert not gc.is_tracked(kept[0].leaf)


def test_views_do_not_leak_their_message(kind: Any) -> None:
    """#406: 2.2.4 leaks the message with each view."""
    message = kind.new_message(data=b"payload")
    arena = message._parent
    holders = sys.getrefcount(message), sys.getrefcount(arena)
    for _ in range(10):
        view = message.get_data_as_view("data")
        view[0] = 1
        assert sys.getrefcount(message) > holders[0]
        del view
    assert (sys.getrefcount(message), sys.getrefcount(arena)) == holders


def test_a_view_keeps_its_message(kind: Any) -> None:
    """#406."""
    message = kind.new_message(data=b"payload")
    view = message.get_data_as_view("data")
    del message
    gc.collect()
    assert view.tobytes() == b"payload"


def test_a_wrong_or_corrupt_message_has_a_repr(kinds: Any) -> None:
    """#241: SIGABRT in 2.2.4."""
    data = bytearray(kinds.Kinds.new_message(text="t").to_bytes())
    data[4:8] = (2**31 - 1).to_bytes(4, "little")
    with pytest.raises(Exception, match=r"segment|message"):
        kinds.Kinds.from_bytes(bytes(data))
    other = kinds.Node.new_message(next={"value": 1}).to_bytes()
    with kinds.Leaf.from_bytes(other) as reader:
        assert "unreadable" in repr(reader)
        with pytest.raises(ValueError, match="Text"):
            str(reader)


def test_one_file_loaded_by_two_paths_and_names(capnp: Any, tmp_path: Path) -> None:
    """#62: "Duplicate ID", SIGABRT in 2.2.4."""
    file = tmp_path / "twice.capnp"
    file.write_text("@0xb0c6f0c5a5b6d1fa;\nstruct A { a @0 :Text; }\n")
    (tmp_path / "link").symlink_to(tmp_path)
    first = capnp.load(str(file))
    second = capnp.load(str(tmp_path / "link" / "twice.capnp"), "other.capnp")
    assert isinstance(second.A.new_message(a="x"), first.A.Builder)


def test_a_changed_file_is_loaded_anew(capnp: Any, tmp_path: Path) -> None:
    """#62, in notebooks."""
    file = tmp_path / "changing.capnp"
    file.write_text("@0xb0c6f0c5a5b6d1fb;\nstruct A { a @0 :Text; }\n")
    old = capnp.load(str(file)).A.new_message(a="x")
    file.write_text("@0xb0c6f0c5a5b6d1fb;\nstruct A { a @0 :Text; b @1 :Int32; }\n")
    new = capnp.load(str(file)).A.new_message(a="y", b=3)
    assert (old.a, new.b) == ("x", 3)


@pytest.mark.parametrize("packed", [False, True])
def test_files_without_descriptors(kind: Any, tmp_path: Path, packed: bool) -> None:
    """#311, #142, #73, #283: BytesIO, gzip."""
    write, read = ("write_packed", "read_packed") if packed else ("write", "read")
    stream = io.BytesIO()
    getattr(kind.new_message(text="in memory"), write)(stream)
    stream.seek(0)
    assert getattr(kind, read)(stream).text == "in memory"
    with gzip.open(tmp_path / "m.gz", "wb") as file:
        getattr(kind.new_message(text="zipped"), write)(file)
    with gzip.open(tmp_path / "m.gz", "rb") as file:
        assert getattr(kind, read)(file).text == "zipped"


def test_messages_from_a_pipe_that_a_thread_of_python_fills(kinds: Any) -> None:
    """#354: a dead-lock in 2.2.4."""
    read, write = os.pipe()
    data = events(kinds, 2000)

    def fill() -> None:
        with os.fdopen(write, "wb") as file:
            for at in range(0, len(data), 100):
                file.write(data[at : at + 100])

    thread = threading.Thread(target=fill)
    thread.start()
    with os.fdopen(read, "rb") as file:
        assert sum(1 for _ in kinds.Event.read_multiple(file)) == 2000
    thread.join()


@pytest.mark.parametrize("packed", [False, True])
def test_a_truncated_last_message_is_not_dropped_in_silence(kinds: Any, packed: bool) -> None:
    """2.2.4 ends the iteration as if nothing was missing; here it warns."""
    messages = [kinds.Event.new_message(time=n) for n in (1, 2)]
    write = "to_bytes_packed" if packed else "to_bytes"
    data = b"".join(getattr(message, write)() for message in messages)[:-2]
    read = kinds.Event.read_multiple_packed if packed else kinds.Event.read_multiple
    with pytest.warns(RuntimeWarning, match="middle of a message"):
        assert [event.time for event in read(io.BytesIO(data))] == [1]
    if packed:
        with pytest.warns(RuntimeWarning, match="middle of a message"):
            found = list(kinds.Event.read_multiple_bytes_packed(data))
        assert [event.time for event in found] == [1]


def test_packed_messages_are_read_one_after_the_other(kinds: Any, tmp_path: Path) -> None:
    """2.2.4 reads ahead, and loses what follows."""
    with open(tmp_path / "many", "wb") as file:
        for n in range(5):
            kinds.Event.new_message(time=n).write_packed(file)
    with open(tmp_path / "many", "rb") as file:
        assert [kinds.Event.read_packed(file).time for _ in range(5)] == list(range(5))


def test_the_end_of_a_file_says_so(capnp: Any, kind: Any) -> None:
    """#325, #257, #269."""
    with pytest.raises(capnp.KjException, match="Premature EOF") as caught:
        kind.read(io.BytesIO(b""))
    assert isinstance(caught.value, EOFError)


def test_no_limit_is_needed_to_read_a_message_once(kinds: Any) -> None:
    """Everybody passes 2**64-1: it is accepted, and what is charged is what is reached."""
    data = kinds.Node.new_message(children=[{"value": n} for n in range(1000)]).to_bytes()
    for limit in (2**63, 2**64 - 1, 10**30):
        with kinds.Node.from_bytes(data, traversal_limit_in_words=limit) as node:
            assert sum(child.value for child in node.children) == 499_500


def test_lists_pickle_and_copy(kind: Any) -> None:
    """#160: a list came back empty, then TypeError."""
    message = kind.new_message(
        shorts=[1, -2, 3], texts=["a", "b"], nested=[[1], []], leaves=[{"number": 7}],
        colors=["blue"],
    )
    reader = message.as_reader()
    for items in (reader.shorts, reader.texts, message.shorts, message.texts):
        assert list(pickle.loads(pickle.dumps(items))) == list(items)
        assert list(copy.deepcopy(items)) == list(items)
    assert [list(row) for row in pickle.loads(pickle.dumps(reader.nested))] == [[1], []]
    assert pickle.loads(pickle.dumps(reader.leaves))[0].number == 7
    assert pickle.loads(pickle.dumps(reader.colors))[0] == "blue"
    assert pickle.loads(pickle.dumps(reader.colors[0])) == "blue"


def test_errors_and_union_members_pickle(capnp: Any, kinds: Any) -> None:
    """KjException objects could not be pickled."""
    error = pickle.loads(pickle.dumps(capnp.KjException("text")))
    assert str(error) == "text"
    event = kinds.Event.new_message(color="green")
    assert pickle.loads(pickle.dumps(event.which)) == "color"


def test_a_wrong_type_is_a_type_error_that_names_the_field(capnp: Any, kind: Any) -> None:
    """#131."""
    message = kind.new_message()
    for field, value in (("i32", "text"), ("text", 5), ("leaf", [1]), ("shorts", 5)):
        with pytest.raises(TypeError, match=field) as caught:
            setattr(message, field, value)
        assert isinstance(caught.value, capnp.KjException)
    with pytest.raises(capnp.KjException, match="i8"):
        message.i8 = 1000


def test_fields_that_are_named_like_methods(kinds: Any) -> None:
    """#144: `_get` and `[...]` reach them, setting them works by attribute, as before."""
    message = kinds.Names.new_message(schema="s", copy=3, write="w")
    message.write = "W"
    assert (message._get("schema"), message["copy"], message._get("write")) == ("s", 3, "W")
    assert callable(message.copy)
    # A reader has no `copy` and no `write` of its own.
    assert (message.as_reader().copy, message.as_reader().write) == (3, "W")
    assert message.to_dict()["schema"] == "s"


def test_data_from_any_buffer(kind: Any) -> None:
    """#153, #302."""
    message = kind.new_message()
    for value in (b"ab", bytearray(b"ab"), memoryview(b"ab"), numpy.frombuffer(b"ab", "u1")):
        message.data = value
        assert message.data == b"ab"
    assert isinstance(message.data, bytes)  # 385, 386, 390: not a memoryview


def test_numbers_of_numpy_and_of_subclasses(kind: Any) -> None:
    """#148, #373, #399."""
    class Level(IntEnum):
        high = 3

    message = kind.new_message(i32=numpy.int32(5), f64=numpy.float32(0.5), u8=Level.high)
    message.f32 = numpy.float64(0.25)
    message.bool = numpy.bool_(True)
    assert (message.i32, message.f64, message.u8, message.f32, message.bool) == (
        5, 0.5, 3, 0.25, True,
    )
    message.shorts = numpy.arange(8192, dtype="int16")
    assert list(message.shorts) == list(range(8192))
    message.shorts = range(3)
    assert list(message.shorts) == [0, 1, 2]
    message.texts = (word for word in ("a", "b"))
    assert list(message.texts) == ["a", "b"]


def test_arrays_have_the_types_that_pycapnp_gives_them(kind: Any) -> None:
    """#148, #399: fast, and no narrower than before: programs calculate with them."""
    message = kind.new_message(
        shorts=[1, -2], floats=[0.5, 1.5], bools=[True, False], texts=["a", "bc"], some=[2**63, 1]
    )
    for items in (message, message.as_reader()):
        assert numpy.array(items.shorts).dtype == "int64"
        assert numpy.array(items.floats).dtype == "float64"
        assert numpy.array(items.bools).dtype == "bool"
        assert numpy.array(items.some).dtype == "uint64"
        assert numpy.array(items.shorts).tolist() == [1, -2]
        assert numpy.array(items.texts).tolist() == ["a", "bc"]
        assert numpy.asarray(items.shorts, dtype="int16").dtype == "int16"
    with pytest.raises(TypeError):
        memoryview(message.shorts)  # type: ignore[arg-type]


def test_text_for_data_in_dicts_is_base64_as_in_pycapnp(kind: Any) -> None:
    """#388: its own suite pins it, so it stays; bytes are taken as they are."""
    assert kind.new_message(data=base64.b64encode(b"abc").decode()).data == b"abc"
    assert kind.new_message(data=b"abc").data == b"abc"
    message = kind.new_message()
    message.data = "abc"
    assert message.data == b"abc"


def test_json_round_trip_of_everything(kind: Any) -> None:
    """#102, #351."""
    import json

    message = kind.new_message(i64=2**62, data=b"\0\xff", texts=["a"], leaf={"number": 1})
    text = json.dumps(message.to_dict(encode_bytes_as_base64=True))
    again = kind.new_message(**json.loads(text))
    assert again.to_dict() == message.to_dict()


def test_any_kind_of_value_goes_into_an_any_pointer(kinds: Any) -> None:
    """#79."""
    message = kinds.Kinds.new_message()
    message.any = kinds.Leaf.new_message(number=8)
    assert message.any.as_struct(kinds.Leaf).number == 8
    message.any = kinds.Kinds.new_message(shorts=[5]).shorts
    assert message.to_bytes()
    message.any = "text"
    assert message.any.as_text() == "text"


def test_generic_structs_can_be_made_and_assigned(kinds: Any) -> None:
    """#188, #173."""
    box = kinds.Box.new_message()
    box.value = "hello"
    boxes = kinds.Boxes.new_message()
    boxes.text = box
    assert boxes.text.value == "hello"
    boxes.leaf.value.number = 4
    assert boxes.to_dict() == {"text": {"value": "hello"}, "leaf": {"value": {"number": 4}}}


def test_members_of_unions_are_set_from_dicts(kinds: Any) -> None:
    """#184: worked only through the parent's from_dict."""
    choice = kinds.Choice.new_message()
    choice.leaf = {"number": 3}
    assert choice.which == "leaf"
    choice.pair = {"left": 1, "right": "r"}
    assert choice.to_dict() == {"pair": {"left": 1, "right": "r"}}
    choice.words = ["a"]
    assert list(choice.words) == ["a"]


def test_annotations_of_missing_files_do_not_matter(capnp: Any, tmp_path: Path) -> None:
    """#242 and others, wampproto: `using Go = import "/go.capnp"` had to be cut out."""
    file = tmp_path / "golang.capnp"
    file.write_text(
        '@0xb0c6f0c5a5b6d1fc;\nusing Go = import "/go.capnp";\n$Go.package("p");\n'
        '$Go.import("i");\nstruct A { a @0 :Text; }\n'
    )
    assert capnp.load(str(file)).A.new_message(a="x").a == "x"


def test_paths_are_taken(capnp: Any, tmp_path: Path) -> None:
    """`pathlib.Path` was an AttributeError."""
    file = tmp_path / "pathlike.capnp"
    file.write_text("@0xb0c6f0c5a5b6d1fd;\nstruct A { a @0 :Text; }\n")
    assert capnp.load(file, imports=[tmp_path]).__file__ == str(file)


def test_bundled_schemas_are_found(capnp: Any, tmp_path: Path) -> None:
    """#242, #78, #231, #252."""
    file = tmp_path / "bundled.capnp"
    file.write_text(
        '@0xb0c6f0c5a5b6d1fe;\nusing Cxx = import "/capnp/c++.capnp";\n'
        '$Cxx.namespace("n");\nstruct A { a @0 :Text; }\n'
    )
    assert capnp.load(str(file)).A.new_message(a="x").a == "x"


def test_a_dict_with_an_unknown_key_says_which(capnp: Any, kind: Any) -> None:
    with pytest.raises(capnp.KjException, match="unknown"):
        kind.new_message(unknown="x")
    with pytest.raises(AttributeError, match="unknown"):
        kind.new_message().unknown = 5


def test_enumerants_that_the_schema_does_not_know(kinds: Any) -> None:
    """str, repr and to_dict were a RuntimeError."""
    message = kinds.Kinds.new_message(color=77)
    assert message.color.raw == 77
    assert (str(message.color), message.to_dict()["color"]) == ("77", 77)
    assert "color = (77)" in str(message)


def test_refused_values_leave_fields_as_they_were(capnp: Any, kind: Any) -> None:
    """A refused list was left partly written."""
    message = kind.new_message(shorts=[1, 2], leaves=[{"number": 1}], colors=["red"])
    for field, value in (
        ("shorts", [5, "x"]), ("leaves", [{"number": 2}, {"number": "x"}]), ("colors", ["no"]),
    ):
        with pytest.raises((capnp.KjException, AttributeError)):
            setattr(message, field, value)
    assert message.to_dict()["shorts"] == [1, 2]
    assert message.leaves[0].number == 1
    assert message.colors[0] == "red"
    message.colors = [2, "green"]  # numbers were refused within lists
    assert [str(color) for color in message.colors] == ["blue", "green"]


def test_threads_may_read_at_once(kinds: Any) -> None:
    """#366, #315: 2.x is bound to one thread."""
    data = events(kinds, 500)
    sums: list[int] = []

    def read() -> None:
        sums.append(sum(event.leaf.number for event in kinds.Event.read_multiple_bytes(data)))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [124_750] * 4


def test_a_dropped_loop_leaves_nothing_to_crash(capnp: Any, kinds: Any) -> None:
    """#317, #316, #396."""
    class Server(kinds.Echo.Server):  # type: ignore[name-defined, misc]
        async def echo(self, text: str, **_: Any) -> str:
            if text == "raise":
                raise ValueError("within")
            return text

    async def main() -> Any:
        client = kinds.Echo._new_client(Server())
        with pytest.raises(capnp.KjException, match="within"):
            await client.echo("raise")
        assert (await client.echo("after")).text == "after"
        return client, client.echo("left behind")

    client, promise = asyncio.run(capnp.run(main()))
    with pytest.raises(RuntimeError, match="not running"):
        client.echo("late")
    del promise, client
    gc.collect()


def test_no_warning_at_import() -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import capnwire.pycapnp"], check=False
    )
    assert done.returncode == 0
    assert warnings.filters is not None


def test_packing_over_and_over_takes_no_memory(kind: Any) -> None:
    """#376."""
    import tracemalloc

    message = kind.new_message(data=bytes(range(1, 200)) * 100)
    message.clear_write_flag()
    first = message.to_bytes_packed()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            message.clear_write_flag()
            assert message.to_bytes_packed() == first
        assert tracemalloc.get_traced_memory()[0] - before < 2 * len(first)
    finally:
        tracemalloc.stop()


def test_a_limit_is_named_with_what_was_wanted(capnp: Any, kinds: Any) -> None:
    """#257, #269: "Message is too large", "too many segments"."""
    data = kinds.Node.new_message(children=[{"value": n} for n in range(1000)]).to_bytes()
    for read in (
        lambda: kinds.Node.read(io.BytesIO(data), traversal_limit_in_words=100),
        lambda: list(kinds.Node.from_bytes(data, traversal_limit_in_words=100).children),
    ):
        with pytest.raises(capnp.KjException, match=r"traversal_limit_in_words is \d+, .* needs"):
            read()
    many = (999).to_bytes(4, "little") + bytes(4 * 1001)
    with pytest.raises(capnp.KjException, match=r"segment_limit is 512, .* needs 1000"):
        kinds.Node.read(io.BytesIO(many))


def test_a_message_has_a_canonical_form(kinds: Any) -> None:
    """#356: one segment without a table, of the same bytes however the message was built."""
    plain = kinds.Leaf.new_message(number=3)
    again = kinds.Leaf.new_message(1, text="was here", number=4)
    again.text = ""
    again.number = 3
    again.disown("text")
    assert plain.to_canonical() == again.as_reader().to_canonical()
    assert plain.to_canonical() == bytes.fromhex("00000000 01000000 03000000 00000000")


def test_lists_are_built_in_every_way(kinds: Any) -> None:
    """#248."""
    message = kinds.Kinds.new_message()
    for index, leaf in enumerate(message.init("leaves", 2)):
        leaf.number = index
    message.leaves[1] = {"number": 8}
    assert [leaf.number for leaf in message.leaves] == [0, 8]
    message.leaves = [kinds.Leaf.new_message(number=5), {"number": 6}]
    assert [leaf.number for leaf in message.leaves] == [5, 6]
    growing = message.init_resizable_list("leaves")
    growing.add().number = 7
    growing.finish()
    assert [leaf.number for leaf in message.leaves] == [7]
    message.leaves = (leaf for leaf in [{"number": 1}])
    assert [leaf.number for leaf in message.leaves] == [1]


def test_types_of_nodes_that_come_as_messages(capnp: Any, kinds: Any) -> None:
    """#321: without a file, from what a CodeGeneratorRequest holds."""
    schema = Path(capnwire.__file__).parent / "std" / "capnp" / "schema.capnp"
    nodes = capnp.SchemaParser().load(schema).Node
    loader = capnp.SchemaLoader()
    for module in (kinds.Leaf, kinds.Node):
        with nodes.from_bytes(module.schema.node.as_builder().to_bytes()) as node:
            loader.load_dynamic(node)
    schema = loader.get(kinds.Leaf.schema.node.id).as_struct()
    root = capnp._MallocMessageBuilder().init_root(schema)
    root.text = "made of a node"
    assert str(root) == '(number = 0, text = "made of a node")'
