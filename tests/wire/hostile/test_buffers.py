"""Buffers as they come: unaligned, read-only, strided, released, at a page's end."""

from __future__ import annotations

import array
import ctypes
import mmap
from collections.abc import Callable

import pytest

from tests.wire.hostile.words import Root, framed, words

DATA = Root.new_message(
    number=7,
    text="text",
    data=b"data",
    longs=[1, 2**64 - 1],
    texts=["a", "b"],
    rows=[{"id": 1, "name": "n"}],
    flags=[True, False, True],
).to_bytes()


def at_the_end_of_a_page(data: bytes) -> object:
    """A buffer behind which nothing may be read: the next page is protected."""
    size = mmap.PAGESIZE * (len(data) // mmap.PAGESIZE + 2)
    pages = mmap.mmap(-1, size)
    libc = ctypes.CDLL(None, use_errno=True)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    at = size - mmap.PAGESIZE - len(data)
    pages[at : at + len(data)] = data
    assert libc.mprotect(ctypes.c_void_p(start + size - mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
    return memoryview(pages)[at : at + len(data)]


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(bytes, id="bytes"),
        pytest.param(bytearray, id="bytearray"),
        pytest.param(memoryview, id="memoryview"),
        pytest.param(lambda data: memoryview(bytearray(data)), id="writable memoryview"),
        pytest.param(lambda data: array.array("B", data), id="array of bytes"),
        pytest.param(lambda data: array.array("Q", data), id="array of words"),
        pytest.param(
            lambda data: (ctypes.c_uint16 * (len(data) // 2)).from_buffer_copy(data), id="ctypes"
        ),
        pytest.param(
            lambda data: memoryview(data).cast("B", (len(data) // 8, 8)), id="two dimensions"
        ),
        pytest.param(lambda data: type("Sub", (bytes,), {})(data), id="a subclass of bytes"),
        pytest.param(at_the_end_of_a_page, id="the end of a page"),
        *(
            pytest.param(
                lambda data, shift=shift: memoryview(bytes(shift) + data)[shift:],
                id=f"unaligned by {shift}",
            )
            for shift in range(1, 8)
        ),
    ],
)
def test_any_contiguous_buffer_is_read(wrap: Callable[[bytes], object]) -> None:
    reader = Root.from_bytes(wrap(DATA))
    whole = Root.from_bytes(DATA)
    assert reader.to_dict() == whole.to_dict()
    assert reader == whole
    assert reader.as_builder().to_bytes() == whole.as_builder().to_bytes()
    assert reader.to_canonical() == whole.to_canonical()
    assert str(reader) == str(whole)
    assert memoryview(reader.longs).tolist() == [1, 2**64 - 1]
    assert [message.number for message in Root.read_multiple_bytes(wrap(DATA + DATA))] == [7, 7]
    segment = wrap(DATA[8:])
    assert Root.from_segments([segment]) == whole
    packed = whole.to_bytes_packed()
    if "array of words" not in str(wrap) and len(packed) % 8 == 0:
        assert Root.from_bytes_packed(wrap(packed)) == whole


@pytest.mark.parametrize(
    ("wrap", "error"),
    [
        pytest.param(lambda data: memoryview(bytes(2 * len(data)))[::2], BufferError, id="strided"),
        pytest.param(lambda data: memoryview(data)[::-1], BufferError, id="backwards"),
        pytest.param(lambda data: released(data), ValueError, id="released"),
        pytest.param(lambda data: data.decode("latin-1"), TypeError, id="str"),
        pytest.param(list, TypeError, id="list"),
        pytest.param(lambda data: None, TypeError, id="None"),
        pytest.param(lambda data: 5, TypeError, id="int"),
    ],
)
def test_what_is_no_contiguous_buffer(
    wrap: Callable[[bytes], object], error: type[Exception]
) -> None:
    for read in (Root.from_bytes, lambda buffer: Root.from_segments([buffer])):
        with pytest.raises(error):
            read(wrap(DATA))


def released(data: bytes) -> memoryview:
    view = memoryview(data)
    view.release()
    return view


def test_views_of_a_reader_cannot_be_written() -> None:
    for buffer in (DATA, bytearray(DATA)):
        reader = Root.from_bytes(buffer)
        for view in (memoryview(reader.longs), reader.get_data_as_view("data")):
            assert view.readonly
            with pytest.raises(TypeError):
                view[0] = 1
        with pytest.raises((BufferError, TypeError)):
            (ctypes.c_uint64 * 2).from_buffer(reader.longs)


def test_nothing_is_read_behind_the_buffer() -> None:
    # The same questions on every cut of a message, behind which the page is protected.
    whole = DATA[8:]
    for end in range(8, len(whole), 8):
        buffer = at_the_end_of_a_page(framed(whole[:end]))
        reader = None
        try:
            reader = Root.from_bytes(buffer)
            for name in ("text", "data", "longs", "texts", "rows", "flags"):
                try:
                    value = reader[name]
                    _ = value if isinstance(value, (str, bytes)) else value.to_list()
                except ValueError:
                    pass
            reader.as_builder()
        except ValueError:
            pass
        del reader
    assert words(1) == b"\1" + bytes(7)
