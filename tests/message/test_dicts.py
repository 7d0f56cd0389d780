"""to_dict and from_dict: everything in one go, in the right order, and back."""

from __future__ import annotations

import base64
from collections import UserDict
from types import MappingProxyType
from typing import Any

import pytest

from capnwire import EncodeError, LimitError
from tests.message.test_lists import VALUES as LISTS

MESSAGES: list[tuple[str, dict[str, Any]]] = [
    ("Lists", LISTS), ("Unions", {"point": {"x": 1}, "common": "c", "named": {"label": "l"}}),
    ("Groups", {"before": 1, "place": {"number": 3, "deeper": {"tree": {"value": 2}}}}),
    ("Scalars", {"int8": 5, "color": "blue", "nothing": None}), ("Blobs", {"text": "",
        "data": b""}),
    ("Boxes", {"ofText": {"value": "t"}, "inner": {"own": b"x"}}),
]


@pytest.mark.parametrize(("name", "value"), MESSAGES, ids=[name for name, _ in MESSAGES])
def test_dicts_are_pycapnp_s_in_content_and_order(
    ours: Any, theirs: Any, name: str, value: dict[str, Any]
) -> None:
    data = getattr(ours, name).new_message(**value).to_bytes()
    reader = getattr(ours, name).from_bytes(data)
    with getattr(theirs, name).from_bytes(data) as other:
        assert repr(reader.to_dict()) == repr(other.to_dict())
        if name not in ("Boxes", "Groups"):  # types that recur kill pycapnp here
            assert repr(reader.to_dict(verbose=True)) == repr(other.to_dict(verbose=True))
    again = getattr(ours, name).new_message(**reader.to_dict())
    assert again.as_reader() == reader
    assert again.to_dict() == reader.to_dict()


def test_verbose_dicts_hold_what_is_null_and_end(ours: Any) -> None:
    assert ours.Blobs.new_message().to_dict() == {}
    assert ours.Blobs.new_message().as_reader().to_dict(verbose=True) == {
        "text": "", "data": b"", "other": ""}
    tree = ours.Tree.new_message(value=1).as_reader().to_dict(verbose=True)
    assert tree["left"]["left"] is None
    assert tree["children"] == []


def test_data_can_be_base64(ours: Any) -> None:
    reader = ours.Blobs.new_message(data=b"\0\xff").as_reader()
    text = base64.b64encode(b"\0\xff").decode()
    assert reader.to_dict(encode_bytes_as_base64=True) == {"data": text}
    lists = ours.Lists.new_message(datas=[b"\1", b"\0" * 60]).as_reader()
    encoded = [base64.b64encode(item).decode() for item in (b"\1", b"\0" * 60)]
    assert lists.to_dict(encode_bytes_as_base64=True)["datas"] == encoded
    assert lists.datas.to_list(encode_bytes_as_base64=True) == encoded


@pytest.mark.parametrize("make", [dict, UserDict, MappingProxyType], ids=["dict", "UserDict",
    "proxy"])
def test_any_mapping_fills_a_struct(ours: Any, make: Any) -> None:
    message = ours.Groups.new_message()
    message.from_dict(make({"place": make({"street": "s", "deeper": make({"flag": True})})}))
    assert message.place.street == "s"
    assert message.place.deeper.flag


def test_the_order_of_keys_is_the_order_of_allocation(ours: Any, theirs: Any) -> None:
    values = {"other": "ooooooooo", "text": "t", "data": b"d"}
    for keys in (list(values), list(values)[::-1]):
        value = {key: values[key] for key in keys}
        mine = ours.Blobs.new_message(**value).to_bytes()
        assert mine == theirs.Blobs.new_message(**value).to_bytes()
        message = ours.Blobs.new_message()
        message.from_dict(UserDict(value))
        assert message.to_bytes() == mine


def test_from_dict_refuses_and_says_where(ours: Any) -> None:
    message = ours.Groups.new_message()
    with pytest.raises(EncodeError) as caught:
        message.from_dict({"before": 4, "place": {"number": "x"}})
    assert (caught.value.struct, caught.value.field) == ("Groups.place", "number")
    assert message.before == 4
    with pytest.raises(AttributeError, match="struct Groups has no field 'nope'"):
        message.from_dict({"nope": 1})
    for wrong in (5, [], [("before", 1)], None, "before"):
        with pytest.raises(TypeError, match="a mapping of Groups's fields is wanted, not"):
            message.from_dict(wrong)


def test_a_key_may_take_itself_out_of_the_dict(ours: Any) -> None:
    class Key(str):
        __slots__ = ()

        def __hash__(self) -> int:
            values.clear()
            return hash("text")

        def __eq__(self, other: object) -> bool:
            return str(self) == other

    values: dict[Any, Any] = {}
    for name, wanted in (("text", {"text": "x" * 100}), ("nope", None)):
        message = ours.Blobs.new_message()
        values[Key(name)] = "".join(["x"] * 100)
        if wanted is None:
            with pytest.raises(AttributeError, match="no field 'nope'"):
                message.from_dict(values)
        else:
            message.from_dict(values)
            assert message.to_dict() == wanted


def test_a_mapping_that_contains_itself_is_refused(ours: Any) -> None:
    loop: dict[str, Any] = {}
    loop["left"] = loop
    with pytest.raises((RecursionError, EncodeError)):
        ours.Tree.new_message(**loop)
    items: list[Any] = []
    items.append({"children": items})
    with pytest.raises((RecursionError, EncodeError)):
        ours.Tree.new_message(children=items)


def test_a_deep_builder_is_refused_not_followed_without_end(ours: Any) -> None:
    message = ours.Tree.new_message()
    node = message
    for _ in range(20000):
        node = node.init("left")
    for convert in (message.to_dict, lambda: str(message), lambda: repr(message)):
        try:
            convert()
        except (LimitError, RecursionError):
            pass


def test_a_small_message_cannot_make_a_large_dict(ours: Any, framed: Any) -> None:
    # Lists.empties is the last of 20 pointers: a struct list of 2**29 - 1 elements without size.
    words = [0x0014_0000_0000_0000, *[0] * 19, 0x0000_0007_0000_0001, (2**29 - 1) << 2]
    with pytest.raises(LimitError):
        ours.Lists.from_bytes(framed(*words)).to_dict()
