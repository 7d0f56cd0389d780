"""What errors say: the struct, the field, the value, and what was wanted instead."""

from __future__ import annotations

from typing import Any

import pytest

import capnwire
import capnwire.service.client  # what may be a capability is its business
from capnwire import EncodeError, EncodeTypeError

REFUSED: list[tuple[str, str, Any, str]] = [
    ("Scalars", "int8", 128, "Scalars.int8: an integer from -128 to 127 is wanted, not 128"),
    ("Scalars", "int8", "1", "Scalars.int8: an integer from -128 to 127 is wanted, not str '1'"),
    ("Scalars", "bool", 1, "Scalars.bool: True or False is wanted, not int 1"),
    ("Scalars", "nothing", 0, "Scalars.nothing: None is wanted, not int 0"),
    ("Scalars", "float64", "x", "Scalars.float64: a number is wanted, not str 'x'"),
    ("Scalars", "color", "pink",
     "Scalars.color: the name of a value of enum Color is wanted, not 'pink'"),
    ("Blobs", "text", 5, "Blobs.text: str is wanted, not int 5"),
    ("Blobs", "data", "x", "Blobs.data: bytes or another buffer is wanted, not str 'x'"),
    ("Tree", "left", 5, "Tree.left: a struct Tree or a mapping is wanted, not int 5"),
    ("Tree", "children", 5, "Tree.children: a sequence is wanted, not int 5"),
    ("Anything", "anyStruct", "x", "Anything.anyStruct: a struct is wanted, not str 'x'"),
    ("Anything", "any", {}, ("Anything.any: a struct, list, str, buffer or capability is wanted, "
     "not dict {}")),
    ("Anything", "service", 5, ("Anything.service: a capability or an instance of a server class "
     "is wanted, not int")),
    ("Anything", "anyList", 1.5, "Anything.anyList: a list is wanted, not float 1.5"),
]


@pytest.mark.parametrize(
    ("name", "field", "value", "text"), REFUSED, ids=[f"{row[0]}.{row[1]}" for row in REFUSED]
)
@pytest.mark.parametrize("how", ["attribute", "keyword", "dict", "item"])
def test_a_refused_value_is_named(
    ours: Any, name: str, field: str, value: Any, text: str, how: str
) -> None:
    kind = getattr(ours, name)
    message = kind.new_message()
    before = message.to_bytes()
    with pytest.raises(EncodeError) as caught:
        if how == "attribute":
            setattr(message, field, value)
        elif how == "keyword":
            kind.new_message(**{field: value})
        elif how == "dict":
            message.from_dict({field: value})
        else:
            message[field] = value
    assert str(caught.value) == text
    assert (caught.value.struct, caught.value.field) == (name, field)
    assert caught.value.value is value
    assert message.to_bytes() == before


def test_errors_are_also_what_python_calls_them(ours: Any) -> None:
    with pytest.raises(ValueError):
        ours.Scalars.new_message(int8=1000)
    with pytest.raises(TypeError):
        ours.Scalars.new_message(int8="x")
    with pytest.raises(capnwire.KjException):
        ours.Scalars.new_message(int8="x")
    assert issubclass(EncodeTypeError, EncodeError)
    assert issubclass(capnwire.TruncatedError, EOFError)


def test_a_long_value_is_cut_and_a_broken_repr_survives(ours: Any) -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(EncodeTypeError, match=r"not list \[0, 1, .*\.\.\."):
        ours.Blobs.new_message(text=list(range(1000)))
    with pytest.raises(EncodeTypeError, match="no repr: RuntimeError"):
        ours.Blobs.new_message(text=Broken())


def test_the_field_within_a_nested_value_is_the_one_named(ours: Any) -> None:
    with pytest.raises(EncodeError) as caught:
        ours.Lists.new_message(points=[{"x": 1}, {"x": "wrong"}])
    assert (caught.value.struct, caught.value.field) == ("Point", "x")
    with pytest.raises(EncodeError) as caught:
        ours.Unions.new_message(named={"inner": {"a": -1}})
    assert (caught.value.struct, caught.value.field) == ("Unions.named.inner", "a")


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("int8s", [1, 128], "Lists.int8s[1]: an integer from -128 to 127 is wanted, not 128"),
        ("bools", (True, 1), "Lists.bools[1]: True or False is wanted, not int 1"),
        ("texts", ["a", 5], "Lists.texts[1]: str is wanted, not int 5"),
        ("rows", [[1], [2, "x"]],
         "Lists.rows[1][1]: an integer from -32768 to 32767 is wanted, not str 'x'"),
        ("deep", [[["a"], 5]], "Lists.deep[0][1]: a sequence is wanted, not int 5"),
        ("points", [None], ("Lists.points[0]: a struct Point or a mapping is wanted, "
         "not NoneType None")),
    ],
)
def test_a_refused_element_is_named(ours: Any, field: str, value: Any, text: str) -> None:
    with pytest.raises(EncodeError) as caught:
        ours.Lists.new_message(**{field: value})
    assert str(caught.value) == text
    assert (caught.value.struct, caught.value.field) == ("Lists", field)


def test_an_element_refused_by_its_list_is_told_by_its_index(ours: Any) -> None:
    items = ours.Lists.new_message(int8s=[1, 2, 3], rows=[[1]])
    for index, told in ((1, 1), (-1, 2), (slice(1, 3), 1)):
        with pytest.raises(EncodeError, match=rf"^List\(int8\)\[{told}\]: an integer from -128"):
            items.int8s[index] = ["x", 1] if isinstance(index, slice) else 300
    with pytest.raises(EncodeTypeError, match=r"^List\(List\(int16\)\)\[0\]\[1\]: an integer"):
        items.rows[0] = [1, "x"]


def test_wrong_arguments_are_type_errors(ours: Any) -> None:
    for call in (
        lambda: ours.Point.new_message(1, None, 3), lambda: ours.Point.from_bytes(),
        lambda: ours.Point.from_bytes(b"", nope=1), lambda: ours.Point.from_bytes(b"", buf=b""),
        lambda: ours.Point.new_message().init("label", "3"),
        lambda: ours.Point.new_message().init("x"),
    ):
        with pytest.raises((TypeError, AttributeError)):
            call()
    with pytest.raises(ValueError, match="num_first_segment_words is -1"):
        ours.Point.new_message(-1)
