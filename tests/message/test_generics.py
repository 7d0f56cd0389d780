"""Generic structs: brands in fields, types bound in Python, and what does not fit."""

from __future__ import annotations

from typing import Any

import pytest

import capnwire
from capnwire import EncodeTypeError

VALUES: dict[str, Any] = {
    "ofText": {"value": "t", "next": {"value": "u", "note": "n"}},
    "ofPoint": {"value": {"x": 1, "y": 0}}, "ofList": {"value": [1, 2]},
    "inner": {"outer": "o", "own": b"d"}, "ofBox": {"value": {"value": b"b"}},
}


def test_branded_fields_have_their_types(ours: Any, theirs: Any) -> None:
    message = ours.Boxes.new_message(**VALUES)
    written = theirs.Boxes.new_message(**VALUES).to_bytes()
    assert message.to_bytes() == written
    reader = ours.Boxes.from_bytes(written)
    assert reader.ofText.next.value == "u"
    assert reader.ofPoint.value.x == 1
    assert list(reader.ofList.value) == [1, 2]
    assert (reader.inner.outer, reader.inner.own) == ("o", b"d")
    assert reader.ofBox.value.value == b"b"
    assert reader.to_dict() == VALUES
    with theirs.Boxes.from_bytes(written) as other:
        assert str(other) == str(reader)


def test_a_type_is_bound_by_brackets(ours: Any) -> None:
    box = ours.Box[capnwire.types.Text]
    message = box.new_message(value="x", next={"value": "y"})
    assert (message.value, message.next.value) == ("x", "y")
    assert ours.Box[capnwire.types.Text] is box
    assert isinstance(ours.Boxes.new_message(ofText={}).ofText, box)
    assert ours.Box[ours.Point].new_message(value={"x": 3}).value.x == 3
    numbers = capnwire.list_of(capnwire.types.UInt16)
    assert list(ours.Box[numbers].new_message(value=[3, 4]).value) == [3, 4]
    assert ours.Box[box].new_message(value={"value": "in"}).value.value == "in"
    inner = box.Inner[capnwire.types.Data]
    assert inner.new_message(outer="o", own=b"d").to_dict() == {"outer": "o", "own": b"d"}


def test_bindings_are_checked(ours: Any) -> None:
    with pytest.raises(TypeError, match="takes 1 type parameters, not 2"):
        ours.Box[capnwire.types.Text, capnwire.types.Data]
    with pytest.raises(TypeError, match="only pointer types"):
        ours.Box[capnwire.types.Int8]
    with pytest.raises(TypeError, match="takes 0 type parameters"):
        ours.Point[capnwire.types.Text]
    with pytest.raises(TypeError, match="a type of a schema"):
        ours.Box[str]


def test_values_of_another_binding_are_refused(ours: Any) -> None:
    text = ours.Box[capnwire.types.Text].new_message(value="t")
    data = ours.Box[capnwire.types.Data].new_message(value=b"\xff")
    message = ours.Boxes.new_message(ofText=text)
    assert message.ofText.value == "t"
    with pytest.raises(EncodeTypeError):
        message.ofText = data
    message.plain = data
    assert message.plain.value.as_data() == b"\xff"


def test_an_unbound_parameter_is_an_any_pointer(ours: Any) -> None:
    message = ours.Box.new_message(value="t")
    assert message.value.as_text() == "t"
    message.value = ours.Point.new_message(x=2)
    assert message.as_reader().value.as_struct(ours.Point).x == 2
    boxes = ours.Boxes.new_message(ofPoint=message)
    assert boxes.ofPoint.value.x == 2
