"""Text and Data: what goes in, what comes out, and views that cost no copy."""

from __future__ import annotations

import array
import gc
import mmap
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from capnwire import EncodeError, EncodeTypeError, TextError

TEXTS = ["", "a", "seven..", "eight...", "nul\0inside", "ä☃𝄞", "\x7f\x80ÿ", "x" * 5000]


@pytest.mark.parametrize("text", TEXTS)
def test_text_comes_back_and_is_what_pycapnp_writes(ours: Any, theirs: Any, text: str) -> None:
    message = ours.Blobs.new_message(text=text)
    assert message.text == text
    assert message.to_bytes() == theirs.Blobs.new_message(text=text).to_bytes()
    assert ours.Blobs.from_bytes(message.to_bytes()).text == text


def test_text_takes_bytes_that_are_utf8(ours: Any) -> None:
    class Name(str):
        pass

    message = ours.Blobs.new_message()
    for value in (b"\xc3\xa4", bytearray(b"\xc3\xa4"), memoryview(b"\xc3\xa4"), Name("ä")):
        message.text = ""
        message.text = value
        assert message.text == "ä"
        assert type(message.text) is str
    with pytest.raises(EncodeError, match="UTF-8 is wanted"):
        message.text = b"\xff"
    with pytest.raises(EncodeError, match="lone surrogates"):
        message.text = "\ud800"
    for wrong in (1, 1.5, ["a"], object()):
        with pytest.raises(EncodeTypeError, match=r"Blobs\.text: str is wanted, not"):
            message.text = wrong
    assert message.text == "ä"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        # struct of 3 pointers; the text's list pointer; its bytes
        pytest.param([0x0003_0000_0000_0000, 0x0000_000A_0000_0009, 0, 0, 0x41], "NUL",
            id="no NUL"),
        pytest.param([0x0003_0000_0000_0000, 0x0000_0002_0000_0009, 0, 0], "NUL", id="0 bytes"),
        pytest.param([0x0003_0000_0000_0000, 0x0000_0012_0000_0009, 0, 0, 0xFF], "UTF-8",
            id="utf8"),
    ],
)
def test_malformed_text_is_an_error_only_when_read(
    ours: Any, framed: Any, words: list[int], why: str
) -> None:
    reader = ours.Blobs.from_bytes(framed(*words))
    assert reader.data == b""
    with pytest.raises(TextError, match=why):
        reader.text  # noqa: B018
    with pytest.raises(TextError):
        reader.to_dict()
    assert "unreadable" in repr(reader)


@pytest.mark.parametrize(
    "value",
    [b"\0\xff", bytearray(b"\0\xff"), memoryview(b"\0\xff"), memoryview(b"\0-\xff")[::2],
     array.array("B", [0, 255]), numpy.array([0, 255], "u1"), numpy.array([0, 9, 255, 9],
         "u1")[::2],
     numpy.array([0xFF00], "<u2")],
    ids=["bytes", "bytearray", "memoryview", "strided", "array", "numpy", "numpy strided", "u2"],
)
def test_data_takes_any_buffer(ours: Any, value: Any) -> None:
    message = ours.Blobs.new_message(data=value)
    assert message.data == b"\0\xff"
    assert type(message.data) is bytes
    assert ours.Blobs.from_bytes(message.to_bytes()).data == b"\0\xff"


def test_data_takes_a_mapped_file(ours: Any, tmp_path: Path) -> None:
    path = tmp_path / "blob"
    path.write_bytes(b"mapped")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert ours.Blobs.new_message(data=mapped).data == b"mapped"


def test_data_refuses_str_and_other_things(ours: Any) -> None:
    for wrong in ("YWJj", 5, [1, 2], None.__class__):
        with pytest.raises(EncodeTypeError, match=r"Blobs\.data: bytes or another buffer"):
            ours.Blobs.new_message(data=wrong)


def test_none_clears_a_blob(ours: Any) -> None:
    message = ours.Blobs.new_message(text="x", data=b"y")
    message.text = None
    message.data = None
    assert (message.text, message.data) == ("", b"")
    assert not message.has("text")
    assert ours.Blobs.new_message(text="").has("text")


def test_a_view_of_data_costs_no_copy_and_keeps_the_memory(ours: Any) -> None:
    raw = bytearray(ours.Blobs.new_message(data=b"0123456789").to_bytes())
    reader = ours.Blobs.from_bytes(raw)
    view = reader.get_data_as_view("data")
    assert view.readonly
    assert bytes(view) == b"0123456789"
    raw[raw.index(b"0")] = ord("x")
    assert bytes(view[:2]) == b"x1"
    reader.close()
    del reader
    gc.collect()
    assert bytes(view) == b"x123456789"
    with pytest.raises(BufferError):
        raw.append(0)
    view.release()
    gc.collect()
    raw.append(0)


def test_a_builder_s_view_is_writable(ours: Any) -> None:
    message = ours.Blobs.new_message()
    message.init("data", 4)
    view = message.get_data_as_view("data")
    view[:] = b"abcd"
    assert message.data == b"abcd"
    with pytest.raises(TypeError, match="is not a DATA field"):
        message.get_data_as_view("text")
    with pytest.raises(AttributeError):
        message.get_data_as_view("nope")


def test_views_leak_nothing(ours: Any) -> None:
    data = ours.Blobs.new_message(data=b"x" * 100).to_bytes()
    before = sys.getrefcount(data)
    for _ in range(100):
        ours.Blobs.from_bytes(data).get_data_as_view("data")
    gc.collect()
    assert sys.getrefcount(data) == before


def test_init_makes_room_for_a_blob(ours: Any, theirs: Any) -> None:
    made = []
    for module in (ours, theirs):
        message = module.Blobs.new_message()
        message.init("text", 3)
        message.init("data", 9)
        made.append(message.to_bytes())
    assert made[0] == made[1]
    assert ours.Blobs.from_bytes(made[0]).text == "\0\0\0"
    with pytest.raises(TypeError, match="needs a size"):
        ours.Blobs.new_message().init("text")
    with pytest.raises(EncodeError):
        ours.Blobs.new_message().init("data", -1)
    with pytest.raises(EncodeError):
        ours.Blobs.new_message().init("data", 1 << 29)
