"""The formats that messages are converted between: readers of streams and writers of messages.

Messages pass one at a time, so a stream of any length takes the memory of its largest message.
Spec: tool.md, convert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from capnwire._any import any_root, new_any_root
from capnwire.errors import FramingError, PointerError
from capnwire.message.types import struct_class
from capnwire.schema.model import Node, StructBody
from capnwire.schema.registry import Registry
from capnwire.wire.canonical import is_canonical
from capnwire.wire.framing import FrameDecoder
from capnwire.wire.packed import PackedDecoder, pack, pack_segments, unpack

if TYPE_CHECKING:
    from capnwire.codecs.annotated_json import AnnotatedJson
    from capnwire.compiler.text_values import TextReader

__all__ = ["FORMATS", "NEEDS_SCHEMA", "Codec"]

FORMATS = ("binary", "packed", "flat", "flat-packed", "canonical", "text", "json")
NEEDS_SCHEMA = ("text", "json")

CHUNK = 1 << 16
UNLIMITED_WORDS = (1 << 60) - 1
SEGMENT_LIMIT = 1 << 20
DEEPEST = 0xFFFF
FIRST_WORDS = 1024


class Codec:
    """Reads messages of one format and writes them in another.

    `kind` is the struct type of the messages, None when no format needs it.  `on_read(n)` is told
    how many bytes were taken from the input; `before_read()` is called before waiting for more.
    """

    def __init__(
        self, source: str, target: str, kind: type | None, *, short: bool = False,
        segment_words: int | None = None, on_read: Callable[[int], None] | None = None,
        before_read: Callable[[], object] | None = None,
    ) -> None:
        self._source, self._target = source, target
        self._kind: Any = kind if kind is not None else _any_struct()
        self._short, self._segment_words = short, segment_words
        self._on_read, self._before_read = on_read, before_read
        self._json: AnnotatedJson | None = None
        self._text: TextReader | None = None
        if "json" in (source, target):
            from capnwire.codecs.annotated_json import AnnotatedJson

            self._json = AnnotatedJson(self._kind)
        if source == "text":
            from capnwire.compiler.text_values import TextReader

            self._text = TextReader(self._kind)

    def convert(self, first: bytes, file: BinaryIO) -> Iterator[bytes]:
        """The output, one message at a time; `first` was read from `file` before."""
        for root in self.roots(first, file):
            yield self.write(root)

    # --- reading ------------------------------------------------------------------------------

    def roots(self, first: bytes, file: BinaryIO) -> Iterator[Any]:
        """The root pointer of each message."""
        if self._source in ("binary", "packed"):
            packed = self._source == "packed"
            for segments in framed_segments(self._chunks(first, file), packed=packed):
                yield _root_of(segments)
        elif self._source in ("text", "json"):
            yield from self._parsed(first, file)
        else:
            data = flat_segment(
                b"".join(self._chunks(first, file)), packed=self._source == "flat-packed"
            )
            if self._source == "canonical" and not is_canonical(data):
                raise PointerError("the message is not in canonical form")
            yield _root_of([data])

    def _chunks(self, first: bytes, file: BinaryIO) -> Iterator[bytes]:
        return chunks_of(first, file, self._on_read, self._before_read)

    def _parsed(self, first: bytes, file: BinaryIO) -> Iterator[Any]:
        splitter: Any
        if self._source == "text":
            from capnwire.compiler.text_values import TextSplitter

            splitter = TextSplitter()
            assert self._text is not None
            parse: Callable[[bytes], Any] = self._text.read
        else:
            from capnwire.codecs.json_text import JsonSplitter

            splitter = JsonSplitter()
            assert self._json is not None
            decode = self._json.decode
            parse = lambda text: _root_of(decode(text).to_segments())  # noqa: E731
        for chunk in self._chunks(first, file):
            splitter.feed(chunk)
            for text in splitter:
                yield _reader(parse(text))
        splitter.finish()
        for text in splitter:
            yield _reader(parse(text))

    # --- writing ------------------------------------------------------------------------------

    def write(self, root: Any) -> bytes:
        """One message in the target format."""
        target = self._target
        if target == "text":
            return self.text(root.as_struct(self._kind))
        if target == "json":
            assert self._json is not None
            written = self._json.encode(root.as_struct(self._kind), pretty=not self._short)
            return written.encode("utf-8", "surrogateescape") + b"\n"
        if target == "canonical":
            canonical: bytes = root.as_struct(self._kind).to_canonical()
            return canonical
        copy = self._copy(root)
        if target == "binary":
            framed: bytes = copy.to_bytes()
            return framed
        if target == "packed":
            return pack_segments(copy.to_segments())
        segments = copy.to_segments()
        if len(segments) > 1:
            whole = new_any_root(sum(map(len, segments)) // 8 + 1)
            whole.set(copy.as_reader())
            segments = whole.to_segments()
        return bytes(segments[0]) if target == "flat" else pack(segments[0])

    def text(self, struct: Any) -> bytes:
        """A struct in text form, with a newline."""
        from capnwire.message.text import format_struct

        text = format_struct(struct, pretty=not self._short)
        return text.encode("utf-8", "surrogateescape") + b"\n"

    def _copy(self, root: Any) -> Any:
        words = self._segment_words
        if words is None:
            copy = new_any_root(FIRST_WORDS)
        else:
            copy = new_any_root(words, lambda wanted: bytearray(8 * max(wanted, words)))
        # As a struct: what is no struct is refused, and null becomes the empty one.
        copy.set(root.as_struct(self._kind))
        return copy


def first_chunk(file: BinaryIO, enough: int = 64) -> bytes:
    """Enough of the input to judge its format by: of a binary message 64 bytes."""
    read = getattr(file, "read1", file.read)
    first = b""
    while len(first) < enough:
        more = read(CHUNK)
        if not more:
            break
        first += more
    return first


def chunks_of(
    first: bytes, file: BinaryIO, on_read: Callable[[int], None] | None = None,
    before_read: Callable[[], object] | None = None,
) -> Iterator[bytes]:
    """The input piece by piece, as it arrives; see `Codec`."""
    read = getattr(file, "read1", file.read)
    chunk = first
    while chunk:
        if on_read is not None:
            on_read(len(chunk))
        yield chunk
        if before_read is not None:
            before_read()
        chunk = read(CHUNK)


def framed_segments(chunks: Iterator[bytes], *, packed: bool) -> Iterator[list[memoryview]]:
    """The segments of each message of a stream.

    Raises:
        FramingError: a segment table is wrong, or the stream ends inside a message.
        PackingError: a packed message is wrong.
    """
    make = PackedDecoder if packed else FrameDecoder
    decoder: Any = make(segment_limit=SEGMENT_LIMIT, message_limit_words=UNLIMITED_WORDS)
    for chunk in chunks:
        decoder.feed(chunk)
        for message in decoder:
            yield segments_of(message)
    decoder.finish()
    for message in decoder:
        yield segments_of(message)


def flat_segment(data: bytes, *, packed: bool) -> bytes:
    """The one segment that a flat message is.

    Raises:
        FramingError: it is empty, or cut within a word.
        PackingError: a packed message is wrong.
    """
    if packed:
        data = unpack(data)
    if len(data) % 8:
        raise FramingError(f"{len(data)} bytes are no whole number of words")
    if not data:
        raise FramingError("the input is empty")
    return data


def segments_of(message: bytes) -> list[memoryview]:
    """The segments of a framed message that is known to be whole."""
    view = memoryview(message)
    count = int.from_bytes(view[:4], "little") + 1
    at = (count + 2) // 2 * 8
    segments = []
    for index in range(count):
        size = int.from_bytes(view[4 + index * 4 : 8 + index * 4], "little") * 8
        segments.append(view[at : at + size])
        at += size
    return segments


def _root_of(segments: list[Any]) -> Any:
    return any_root(segments, UNLIMITED_WORDS, DEEPEST)


def _reader(root: Any) -> Any:
    return root.as_reader() if hasattr(root, "as_reader") else root


def _any_struct() -> type:
    """A struct type without fields: enough to copy structs by."""
    registry = Registry()
    node = Node(1 << 63, "any:AnyStruct", 4, 0, StructBody())
    registry.add([node])
    return struct_class(registry, registry.struct_info(node.id))
