"""Interfaces as classes: methods, inheritance, generics, and what servers may look like."""

from __future__ import annotations

from typing import Any

import pytest

import capnwire
from capnwire.service.interface import methods_of
from tests.rpc.pair import Pair

SCHEMA = capnwire.load_text("""@0xc0ffee0123456789;
interface Base { hello @0 (name :Text, loud :Bool = true) -> (text :Text); }
interface Left extends(Base) { left @0 () -> (n :Int32); }
interface Right extends(Base) { right @0 () -> (n :Int32); }
interface Both extends(Left, Right) {
  both @0 () -> (n :Int32);
  keyword @1 (from :Text, in :Text) -> (text :Text);
}
struct Pair { a @0 :Text; b @1 :UInt32; }
interface Store (Value) {
  get @0 () -> (value :Value);
  put @1 (value :Value) -> ();
  same @2 [Other] (other :Other) -> (other :Other);
}
interface Root {
  texts @0 () -> (store :Store(Text));
  pairs @1 () -> (store :Store(Pair));
}
interface Derived extends(Store(Pair)) {}
interface Empty { nothing @0 (); stream @1 (n :UInt32) -> stream; }
""")


def serve(server: Any, interface: Any) -> tuple[Pair, Any]:
    pair = Pair(left=server)
    client = pair.right.bootstrap(interface)
    pair.settle()
    return pair, client


def result(pair: Pair, reply: Any) -> Any:
    pair.settle()
    return reply.result()


class Diamond(SCHEMA.Both.Server):
    def hello(self, name: str, loud: bool) -> str:
        return name.upper() if loud else name

    def left(self) -> int:
        return 1

    def right(self) -> int:
        return 2

    def both(self) -> int:
        return 3

    def keyword(self, from_: str, in_: str) -> str:
        return from_ + in_


def test_methods_of_all_ancestors_are_found_once() -> None:
    found = methods_of(SCHEMA.Both._info)
    assert [[method.name for method in own] for own in found.values()] == [
        ["both", "keyword"], ["left"], ["hello"], ["right"]
    ]


def test_a_diamond_of_interfaces_is_served() -> None:
    pair, client = serve(Diamond(), SCHEMA.Both)
    assert result(pair, client.hello("ada")).text == "ADA"
    assert result(pair, client.hello("ada", loud=False)).text == "ada"
    assert [result(pair, getattr(client, name)()).n for name in ("left", "right", "both")] == [
        1, 2, 3
    ]
    assert result(pair, client.cast_as(SCHEMA.Right).right()).n == 2


def test_fields_named_like_keywords_are_parameters_with_an_underscore() -> None:
    pair, client = serve(Diamond(), SCHEMA.Both)
    assert result(pair, client.keyword(**{"from": "a", "in": "b"})).text == "ab"


class Value(SCHEMA.Store.Server):
    def __init__(self, value: Any) -> None:
        self.value = value

    def get(self) -> Any:
        return {"value": self.value}

    def put(self, value: Any) -> None:
        self.value = value

    def same(self, other: Any) -> Any:
        return other


class Root(SCHEMA.Root.Server):
    def texts(self) -> Any:
        return Value("text")

    def pairs(self) -> Any:
        return Value(SCHEMA.Pair.new_message(a="x", b=1))


def test_generic_interfaces_are_typed_where_they_are_bound() -> None:
    pair, client = serve(Root(), SCHEMA.Root)
    texts = result(pair, client.texts()).store
    assert result(pair, texts.get()).value == "text"
    texts.put("other")
    assert result(pair, texts.get()).value == "other"
    pairs = result(pair, client.pairs()).store
    assert result(pair, pairs.get()).value.to_dict() == {"a": "x", "b": 1}
    with pytest.raises(capnwire.EncodeError):
        pairs.put("text")


def test_parameters_of_methods_are_any_pointers() -> None:
    pair, client = serve(Root(), SCHEMA.Root)
    texts = result(pair, client.texts()).store
    assert result(pair, texts.same("any")).other.as_text() == "any"


def test_an_ancestor_s_parameters_are_bound_by_its_heir() -> None:
    class Heir(SCHEMA.Derived.Server):
        def get(self) -> Any:
            return {"value": {"a": "heir", "b": 2}}

    pair, client = serve(Heir(), SCHEMA.Derived)
    assert result(pair, client.get()).value.a == "heir"


def test_servers_derive_from_servers_and_override() -> None:
    class Quiet(Diamond):
        def hello(self, name: str) -> str:
            return name.lower()

    pair, client = serve(Quiet(), SCHEMA.Both)
    assert result(pair, client.hello("ADA")).text == "ada"
    assert result(pair, client.left()).n == 1


def test_methods_take_what_they_name() -> None:
    class Takes(SCHEMA.Base.Server):
        seen: list[Any]

        def hello(self, name: str, other: int = 5, *, context: Any, **rest: Any) -> str:
            self.seen = [name, other, context.params.loud, rest]
            return "x"

    takes = Takes()
    pair, client = serve(takes, SCHEMA.Base)
    result(pair, client.hello("a", False))
    assert takes.seen == ["a", 5, False, {"loud": False}]


def test_static_and_class_methods_serve_too() -> None:
    class Static(SCHEMA.Left.Server):
        @staticmethod
        def left() -> int:
            return 7

        @classmethod
        def hello(cls, name: str) -> str:
            return cls.__name__ + name

    pair, client = serve(Static(), SCHEMA.Left)
    assert result(pair, client.left()).n == 7
    assert result(pair, client.hello("!")).text == "Static!"


def test_one_object_serves_two_interfaces() -> None:
    class Two(SCHEMA.Left.Server, SCHEMA.Empty.Server):
        def left(self) -> int:
            return 5

        def nothing(self) -> None: ...

    pair, client = serve(Two(), SCHEMA.Left)
    assert result(pair, client.left()).n == 5
    assert result(pair, client.cast_as(SCHEMA.Empty).nothing()).to_dict() == {}


def test_results_of_empty_methods_are_empty() -> None:
    class Nothing(SCHEMA.Empty.Server):
        def nothing(self) -> Any:
            return 5

    pair, client = serve(Nothing(), SCHEMA.Empty)
    reply = client.nothing()
    pair.settle()
    assert "has 0 results" in str(reply.value)


def test_clients_are_classes_of_their_interface() -> None:
    _, client = serve(Diamond(), SCHEMA.Both)
    assert isinstance(client, SCHEMA.Both.Client)
    assert SCHEMA.Both.Client.__name__ == "Both"
    assert repr(client) == "<Both client>"
    assert "hello" in dir(client)
    with pytest.raises(TypeError):
        SCHEMA.Both.Client()
    with pytest.raises(AttributeError):
        _ = SCHEMA.Both.Other


def test_capabilities_cannot_be_pickled() -> None:
    import pickle

    _, client = serve(Diamond(), SCHEMA.Both)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(client)


def test_only_results_that_can_hold_capabilities_are_pipelined_on() -> None:
    (found,) = methods_of(SCHEMA.Root._info).values()
    assert all(method.results_hold_capabilities for method in found)
    own, *_ = methods_of(SCHEMA.Both._info).values()
    assert not any(method.results_hold_capabilities for method in own)
