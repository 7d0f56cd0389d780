"""Ids that the text does not give."""

from __future__ import annotations

import pytest

from capnwire.compiler.ids import child_id, group_id, method_params_id, random_id


@pytest.mark.parametrize(
    ("parent", "name", "expected"),
    [
        pytest.param(0xA93FC509624C72D9, "Node", 0xE682AB4CF923A417, id="schema.capnp, Node"),
        pytest.param(
            0xE682AB4CF923A417, "NestedNode", 0xDEBF55BBFA0FC242, id="schema.capnp, Node.NestedNode"
        ),
        pytest.param(0xB0B0B0B0B0B0B0B0, "Foo", 0xD433B25F0753452B, id="parent of equal bytes"),
    ],
)
def test_id_of_a_child_comes_from_its_parent_and_name(
    parent: int, name: str, expected: int
) -> None:
    assert child_id(parent, name) == expected


def test_id_of_a_group_comes_from_its_place_in_the_field_list() -> None:
    assert group_id(0xE682AB4CF923A417, 7) == 0x9EA0B19B37FB4435


@pytest.mark.parametrize(
    ("ordinal", "is_results", "expected"),
    [
        (0, False, 0xB874EDC0D559B391),
        (0, True, 0xB04FCADDAB714BA4),
        (1, False, 0xD044893357B42568),
        (1, True, 0x9BF141DF4247D52F),
    ],
)
def test_id_of_a_parameter_struct_comes_from_the_method_number(
    ordinal: int, is_results: bool, expected: int
) -> None:
    assert method_params_id(0x88EB12A0E0AF92B2, ordinal, is_results=is_results) == expected


def test_random_ids_have_the_top_bit_and_differ() -> None:
    ids = {random_id() for _ in range(64)}
    assert len(ids) == 64
    assert all(id >> 63 == 1 for id in ids)
