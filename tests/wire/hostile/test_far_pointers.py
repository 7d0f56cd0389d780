"""Far pointers: loops, pads out of range, unknown segments, double-far oddities."""

from __future__ import annotations

import pytest

from capnwire.errors import PointerError
from tests.wire.hostile.words import (
    BYTE,
    Root,
    far_pointer,
    framed,
    list_pointer,
    refused,
    root_with,
    struct_pointer,
    words,
)

CHILD = struct_pointer(0, 1, 0)


@pytest.mark.parametrize("field", ["child", "text", "data", "rows", "texts"])
@pytest.mark.parametrize(
    ("pointer", "segments", "match"),
    [
        pytest.param(
            far_pointer(1, 0), (), "names segment 1, but the message has 1", id="no segment 1"
        ),
        pytest.param(
            far_pointer(2**32 - 1, 0), (words(0),), "names segment 4294967295", id="the last id"
        ),
        pytest.param(far_pointer(2**24, 0), (words(0),), "names segment 16777216", id="id 2**24"),
        pytest.param(
            far_pointer(1, 1), (words(0),), "landing pad of 1 words at word 1", id="just behind"
        ),
        pytest.param(
            far_pointer(1, 2**29 - 1), (words(0),), "landing pad", id="the last word there is"
        ),
        pytest.param(far_pointer(1, 0), (b"",), "landing pad", id="an empty segment"),
        pytest.param(
            far_pointer(1, 0, double=True),
            (words(far_pointer(1, 0)),),
            "landing pad of 2 words",
            id="double: half a pad",
        ),
        pytest.param(
            far_pointer(1, 0),
            (words(far_pointer(1, 0)),),
            "is itself a far pointer",
            id="a pad that names itself",
        ),
        pytest.param(
            far_pointer(1, 0),
            (words(far_pointer(2, 0)), words(far_pointer(1, 0))),
            "is itself a far pointer",
            id="pads that name each other",
        ),
        pytest.param(
            far_pointer(1, 0, double=True),
            (words(CHILD, CHILD),),
            "starts with a pointer that is not far",
            id="double: a pad that is not far",
        ),
        pytest.param(
            far_pointer(1, 0, double=True),
            (words(0, CHILD),),
            "starts with a pointer that is not far",
            id="double: a null pad",
        ),
        pytest.param(
            far_pointer(1, 0, double=True),
            (words(far_pointer(1, 0), far_pointer(1, 0)),),
            "tag of a double-far landing pad is a far pointer",
            id="double: a tag that is far",
        ),
        pytest.param(
            far_pointer(1, 0, double=True),
            (words(far_pointer(9, 0), CHILD),),
            "names segment 9",
            id="double: content in no segment",
        ),
    ],
)
def test_broken_landing_pads(
    field: str, pointer: int, segments: tuple[bytes, ...], match: str
) -> None:
    refused(root_with(field, pointer, segments=segments), field, PointerError, match)


def test_a_far_pointer_to_itself() -> None:
    # The child's pointer stands at 4 of segment 0: it is its own pad.
    refused(root_with("child", far_pointer(0, 4)), "child", PointerError, "itself a far pointer")


def test_a_far_root_to_itself() -> None:
    with pytest.raises(PointerError, match="itself a far pointer"):
        Root.from_bytes(framed(words(far_pointer(0, 0))))
    # double: the pad is the root pointer (far: fine) and a tag that is the word behind it
    data = framed(words(far_pointer(0, 0, double=True), struct_pointer(0, 1, 0)))
    assert Root.from_bytes(data).number == far_pointer(0, 0, double=True)


@pytest.mark.parametrize(
    ("content", "tag", "match"),
    [
        pytest.param(1, struct_pointer(0, 1, 0), "a struct of 1 words at word 1", id="just behind"),
        pytest.param(2**29 - 1, struct_pointer(0, 1, 0), "at word 536870911", id="the last word"),
        pytest.param(0, struct_pointer(0, 1, 1), "a struct of 2 words at word 0", id="too large"),
    ],
)
def test_double_far_content_out_of_its_segment(content: int, tag: int, match: str) -> None:
    # segment 1: the pad, far to `content` of segment 2, and the tag; segment 2: one word
    data = root_with(
        "child",
        far_pointer(1, 0, double=True),
        segments=(words(far_pointer(2, content), tag), words(7)),
    )
    refused(data, "child", PointerError, match)


def test_the_offset_of_a_double_far_tag_is_ignored() -> None:
    for offset in (0, 1, -1, 2**29 - 1, -(2**29)):
        data = root_with(
            "child",
            far_pointer(1, 0, double=True),
            segments=(words(far_pointer(2, 0), struct_pointer(offset, 1, 0) or 1 << 32), words(7)),
        )
        reader = Root.from_bytes(data)
        assert reader.child.number == 7
        assert reader.as_builder() == reader


def test_the_double_bit_of_a_pads_first_word_is_ignored() -> None:
    data = root_with(
        "child",
        far_pointer(1, 0, double=True),
        segments=(words(far_pointer(2, 0, double=True), CHILD), words(7)),
    )
    assert Root.from_bytes(data).child.number == 7


def test_a_null_pad_is_a_null_struct_of_no_size() -> None:
    # A null word is a struct pointer of no size: the child is there, and empty.
    reader = Root.from_bytes(root_with("child", far_pointer(1, 0), segments=(words(0),)))
    assert reader.has("child")
    assert reader.child.number == 0
    assert reader.as_builder() == reader


def test_near_offsets_of_a_pad_count_in_its_own_segment() -> None:
    # segment 1, at 0: the pad, a list at -1 of *its* segment
    data = root_with(
        "data", far_pointer(1, 0), 1, 2, 3, segments=(words(list_pointer(-2, BYTE, 8)),)
    )
    refused(data, "data", PointerError, "at word -1 leaves its segment of 1 words")
    data = root_with("data", far_pointer(1, 0), segments=(words(list_pointer(0, BYTE, 9), 1),))
    refused(data, "data", PointerError, "of 2 words at word 1 leaves its segment of 2 words")


def test_a_pad_may_be_shared_and_lie_inside_an_object() -> None:
    # Both pointers of the root name one pad, which is also the child's own first word.
    pad = struct_pointer(-1, 1, 0)
    data = framed(words(struct_pointer(0, 0, 3), 0, 0, far_pointer(1, 0)), words(pad))
    reader = Root.from_bytes(data)
    assert reader.child.number == pad
    assert reader.as_builder().child.number == pad
