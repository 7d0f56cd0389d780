"""Deep copy, total size, canonical form, equality and the traversal count, on words and messages.

The functions are compiled code that only compiled code calls: copy_probe.pyx hands them to Python.
"""

from __future__ import annotations

import importlib.util
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from capnwire.errors import EncodeError, LimitError, PointerError
from capnwire.wire.canonical import is_canonical

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

SETUP = """
from Cython.Build import cythonize
from setuptools import Extension, setup
setup(
    name="probe",
    ext_modules=cythonize(
        [Extension("copy_probe", ["copy_probe.pyx"], extra_compile_args=["-O1", "-w"])],
        include_path=[{root!r}],
        compiler_directives={{"language_level": 3, "boundscheck": False, "cdivision": True}},
    ),
)
"""

SCHEMA = """
struct Everything {
  flag @0 :Bool; byte @1 :UInt8; word @2 :UInt64; text @3 :Text; data @4 :Data;
  child @5 :Everything; children @6 :List(Everything);
  voids @7 :List(Void); flags @8 :List(Bool); bytes @9 :List(UInt8); shorts @10 :List(Int16);
  floats @11 :List(Float64); texts @12 :List(Text); lists @13 :List(List(UInt32));
  pairs @14 :List(Pair); half @15 :Float32; empty @16 :Empty; empties @17 :List(Empty);
}
struct Pair { key @0 :UInt32; value @1 :Text; }
struct Empty {}
"""


@pytest.fixture(scope="session")
def probe(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    folder = tmp_path_factory.mktemp("probe")
    (folder / "copy_probe.pyx").write_text((HERE / "copy_probe.pyx").read_text())
    (folder / "setup.py").write_text(SETUP.format(root=str(ROOT)))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("copy_probe*.so")
    spec = importlib.util.spec_from_file_location("copy_probe", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def everything(
    pycapnp: ModuleType, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Path]:
    # Once a session: pycapnp aborts when it meets the same id in a second file.
    path = tmp_path_factory.mktemp("schema") / "everything.capnp"
    path.write_text("@0xd1c8a6b34ec4e1a7;\n" + SCHEMA)
    return pycapnp.load(str(path)).Everything, path


# ---------------------------------------------------------------- words

def words(*items: int) -> bytes:
    return struct.pack(f"<{len(items)}Q", *(item & 2**64 - 1 for item in items))


def struct_at(offset: int, data: int, pointers: int) -> int:
    return (offset << 2 & 0xFFFFFFFC) | data << 32 | pointers << 48


def list_at(offset: int, element_size: int, count: int) -> int:
    return (offset << 2 & 0xFFFFFFFC) | 1 | element_size << 32 | count << 35


def far_at(segment: int, word: int, *, double: bool = False) -> int:
    return 2 | double << 2 | word << 3 | segment << 32


def tag(count: int, data: int, pointers: int) -> int:
    return count << 2 | data << 32 | pointers << 48


def capability(index: int) -> int:
    return 3 | index << 32


EMPTY = 0xFFFFFFFC
ANY, VOID, BYTE, POINTER, COMPOSITE = 8, 0, 2, 6, 7


def random_message(rng: random.Random, depth: int = 4) -> dict[str, Any]:
    """A dict for Everything, in which every kind of object turns up."""
    made: dict[str, Any] = {}
    makers: dict[str, Callable[[], Any]] = {
        "flag": lambda: rng.random() < 0.5,
        "byte": lambda: rng.randrange(256),
        "word": lambda: rng.choice([0, 1, 2**64 - 1, rng.randrange(2**64)]),
        "text": lambda: "x" * rng.randrange(20),
        "data": lambda: rng.randbytes(rng.randrange(20)),
        "child": lambda: random_message(rng, depth - 1) if depth else {},
        "children": lambda: [
            random_message(rng, depth - 2) for _ in range(rng.randrange(4) if depth > 1 else 0)
        ],
        "voids": lambda: [None] * rng.randrange(5),
        "flags": lambda: [rng.random() < 0.5 for _ in range(rng.randrange(80))],
        "bytes": lambda: [rng.randrange(256) for _ in range(rng.randrange(20))],
        "shorts": lambda: [rng.randrange(-9, 9) for _ in range(rng.randrange(9))],
        "floats": lambda: [rng.random() for _ in range(rng.randrange(9))],
        "texts": lambda: ["y" * rng.randrange(9) for _ in range(rng.randrange(5))],
        "lists": lambda: [
            [rng.randrange(9) for _ in range(rng.randrange(4))] for _ in range(rng.randrange(4))
        ],
        "pairs": lambda: [
            {"key": rng.randrange(3), "value": "z" * rng.randrange(9)}
            if rng.random() < 0.7 else {}
            for _ in range(rng.randrange(6))
        ],
        "half": lambda: rng.randrange(-5, 5) / 4,
        "empty": dict,
        "empties": lambda: [{}] * rng.randrange(4),
    }
    keys = rng.sample(sorted(makers), rng.randrange(len(makers)))
    for key in keys:
        made[key] = makers[key]()
    return made


def segments_of(message: Any) -> list[bytes]:
    framed = message.to_bytes()
    count = struct.unpack_from("<I", framed)[0] + 1
    sizes = struct.unpack_from(f"<{count}I", framed, 4)
    at = (count + 2) // 2 * 8
    segments = []
    for size in sizes:
        segments.append(framed[at : at + size * 8])
        at += size * 8
    return segments


def framed(segments: list[bytes]) -> bytes:
    head = struct.pack(
        f"<{len(segments) + 1}I", len(segments) - 1, *(len(part) // 8 for part in segments)
    )
    return head + bytes(-len(head) % 8) + b"".join(segments)


# ---------------------------------------------------------------- against the reference

@pytest.mark.parametrize("round_", range(20))
def test_copies_measures_and_compares_like_the_reference(
    probe: ModuleType, everything: tuple[Any, Path], rng: random.Random, round_: int
) -> None:
    schema, _ = everything
    for _ in range(20):
        value = random_message(rng)
        source = segments_of(schema.new_message(num_first_segment_words=4, **value))
        expected = schema.new_message(**value)
        with schema.from_bytes(framed(source)) as reader:
            wanted_words = reader.total_size.word_count
            wanted = reader.to_dict()
            copied_by_peer = segments_of(reader.as_builder(num_first_segment_words=4096))
        copied, _capabilities = probe.copied(source, first_words=4096)
        assert copied == copied_by_peer
        assert probe.copied_struct(source, first_words=4096) == copied
        scattered = probe.copied(source, first_words=3)[0]
        with schema.from_bytes(framed(scattered)) as reader:
            assert reader.to_dict() == wanted
        assert probe.size(source) == (wanted_words, 0, probe.size(source)[2])
        assert probe.equal(source, scattered)
        assert probe.equal(source, segments_of(expected))
        assert probe.count(source, 10**6) >= wanted_words


@pytest.mark.parametrize("round_", range(5))
def test_canonical_form_is_the_reference_tools(
    probe: ModuleType, everything: tuple[Any, Path], capnp_tool: str, rng: random.Random,
    round_: int,
) -> None:
    schema, path = everything
    for _ in range(6):
        message = schema.new_message(num_first_segment_words=4, **random_message(rng))
        source = segments_of(message)
        done = subprocess.run(
            [capnp_tool, "convert", "binary:canonical", str(path), "Everything"],
            input=framed(source), capture_output=True, check=True,
        )
        canonical = probe.canonical(source)
        assert canonical == done.stdout
        assert is_canonical(canonical)
        assert probe.canonical([canonical]) == canonical
        assert probe.equal(source, [canonical])
        # Any other order or padding is not canonical.
        copied = probe.copied(source, first_words=4096)[0][0]
        assert is_canonical(copied) == (copied == canonical)


@pytest.mark.parametrize("round_", range(5))
def test_broken_messages_give_errors_and_valid_copies(
    probe: ModuleType, everything: tuple[Any, Path], rng: random.Random, round_: int
) -> None:
    schema, _ = everything
    for _ in range(300):
        message = schema.new_message(num_first_segment_words=4, **random_message(rng))
        source = [bytearray(part) for part in segments_of(message)]
        for _ in range(rng.randrange(1, 4)):
            part = rng.choice([part for part in source if part])
            part[rng.randrange(len(part))] = rng.randrange(256)
        broken = [bytes(part) for part in source]
        partial: list[bytes] = []
        try:
            copied = probe.copied(broken, partial=partial)[0]
        except (PointerError, LimitError):
            copied = partial
        else:
            assert probe.count(broken, 10**7) != 0
        assert probe.copied(copied)[0]  # whatever was copied can be read
        for each in (probe.size, probe.canonical, lambda it: probe.equal(it, it)):
            try:
                each(broken)
            except (PointerError, LimitError, EncodeError):
                pass
        is_canonical(broken[0])


# ---------------------------------------------------------------- copying, word by word

@pytest.mark.parametrize(
    ("source", "copy"),
    [
        pytest.param([words(0)], [words(0)], id="null stays null"),
        pytest.param([words(EMPTY)], [words(EMPTY)], id="an empty struct stays non-null"),
        pytest.param(
            [words(struct_at(5, 0, 0))], [words(EMPTY)], id="an empty struct may point anywhere"
        ),
        pytest.param(
            [words(list_at(0, VOID, 9))], [words(list_at(0, VOID, 9))], id="a list of Void"
        ),
        pytest.param(
            [words(list_at(0, 1, 5), 0xFF)], [words(list_at(0, 1, 5), 0x1F)],
            id="padding of a bit list is zeroed",
        ),
        pytest.param(
            [words(list_at(0, COMPOSITE, 4), tag(1, 1, 1), 7, 0, 8, 9)],
            [words(list_at(0, COMPOSITE, 2), tag(1, 1, 1), 7, 0)],
            id="surplus words of a struct list are left behind",
        ),
        pytest.param(
            [words(list_at(0, COMPOSITE, 0), tag(3, 0, 0))],
            [words(list_at(0, COMPOSITE, 0), tag(3, 0, 0))],
            id="empty structs in a list",
        ),
        pytest.param(
            [words(far_at(1, 0)), words(far_at(2, 0), 0), words(struct_at(0, 1, 0), 7)],
            None, id="a landing pad that is a far pointer",
        ),
        pytest.param(
            [words(far_at(1, 0, double=True)), words(far_at(2, 0), struct_at(0, 1, 0)), words(7)],
            [words(struct_at(0, 1, 0), 7)], id="double far",
        ),
        pytest.param([words(far_at(1, 1)), words(0)], None, id="a pad behind its segment"),
        pytest.param([words(far_at(4, 0))], None, id="a segment that is not there"),
        pytest.param([words(7)], None, id="no known type of pointer"),
        pytest.param([words(struct_at(0, 2, 0), 7)], None, id="a struct beyond the segment"),
        pytest.param([words(struct_at(-2, 1, 0))], None, id="a struct before the segment"),
        pytest.param(
            [words(list_at(0, COMPOSITE, 1), list_at(1, 0, 0), 0)], None, id="a tag that is a list"
        ),
        pytest.param(
            [words(list_at(0, COMPOSITE, 1), tag(2, 1, 0), 0)], None, id="a tag that overruns"
        ),
    ],
)
def test_a_copy_is_what_the_pointer_names(
    probe: ModuleType, source: list[bytes], copy: list[bytes] | None
) -> None:
    partial: list[bytes] = []
    if copy is None:
        with pytest.raises(PointerError):
            probe.copied(source, partial=partial)
        assert partial == [words(0)]
    else:
        assert probe.copied(source)[0] == copy


def test_a_struct_list_seen_as_pointers_is_copied_with_its_own_stride(probe: ModuleType) -> None:
    # CVE-2022-46149: two elements of one data word and one pointer, at the segment's end.
    source = words(
        list_at(0, COMPOSITE, 4), tag(2, 1, 1), 1, list_at(2, BYTE, 2), 2, list_at(1, BYTE, 2),
        0x41, 0x42,
    )
    expected = [source]
    assert probe.copied_list([source], POINTER) == expected
    assert probe.copied_list([source], VOID) == expected
    assert probe.copied_list([source], BYTE) == expected
    assert probe.copied_list([source], ANY) == expected
    assert is_canonical(source)
    assert probe.canonical([source], as_list=True) == source


def test_an_element_of_a_byte_list_seen_as_a_struct_is_one_word(probe: ModuleType) -> None:
    source = words(list_at(0, BYTE, 3), 0x00_AA_00)
    assert probe.copied_element([source], 1) == [words(struct_at(0, 1, 0), 0xAA)]
    assert probe.copied_element([source], 0) == [words(struct_at(0, 1, 0), 0)]


def test_an_element_of_a_pointer_list_seen_as_a_struct_keeps_its_pointer(
    probe: ModuleType,
) -> None:
    source = words(list_at(0, POINTER, 1), list_at(0, BYTE, 2), 0x41)
    assert probe.copied_element([source], 0) == [
        words(struct_at(0, 0, 1), list_at(0, BYTE, 2), 0x41)
    ]


def test_capabilities_are_taken_along(probe: ModuleType) -> None:
    source = [words(struct_at(0, 0, 2), capability(1), capability(0))]
    assert probe.copied(source, capabilities=["zero", "one"]) == (source[:0] + [
        words(struct_at(0, 0, 2), capability(0), capability(1))
    ], ["one", "zero"])
    assert probe.size(source)[:2] == (2, 2)
    with pytest.raises(EncodeError):
        probe.canonical(source)


def test_an_error_in_the_middle_leaves_what_was_copied(probe: ModuleType) -> None:
    source = [words(struct_at(0, 1, 2), 7, list_at(1, BYTE, 2), far_at(9, 0), 0x41)]
    partial: list[bytes] = []
    with pytest.raises(PointerError):
        probe.copied(source, partial=partial)
    assert partial == [words(struct_at(0, 1, 2), 7, list_at(1, BYTE, 2), 0, 0x41)]


def test_an_object_copied_into_itself_ends(probe: ModuleType) -> None:
    assert probe.copied_into_itself() == [
        words(
            struct_at(0, 1, 2), 7, struct_at(1, 1, 0), struct_at(1, 1, 2), 9,
            7, struct_at(1, 1, 0), 0, 9,
        )
    ]


# ---------------------------------------------------------------- limits

def test_depth_costs_no_stack(probe: ModuleType) -> None:
    links = 200_000
    # Canonical: a word of data, but for the first's, which is 0; no pointer in the last.
    assert probe.chain_copied(links) == (True, links * 3, 0, (1 + links * 2 - 2) * 8)
    assert probe.chain_copied(links, other=1) == (True, links * 3, 0, (1 + links * 3 - 1) * 8)


def test_a_reader_copies_as_deep_as_its_nesting_limit(probe: ModuleType) -> None:
    chain = [words(*[struct_at(0, 0, 1)] * 10, EMPTY)]
    assert probe.copied(chain, nesting=11)[0] == chain
    for walk in (probe.copied, probe.size, probe.canonical):
        with pytest.raises(LimitError):
            walk(chain, nesting=10)
    with pytest.raises(LimitError):
        probe.equal(chain, chain, nesting=10)


def test_a_struct_that_holds_itself_ends_at_the_nesting_limit(probe: ModuleType) -> None:
    loop = [words(struct_at(0, 0, 1), struct_at(-1, 0, 1))]
    for walk in (probe.copied, probe.size, probe.canonical):
        with pytest.raises(LimitError):
            walk(loop)
    assert probe.count(loop, 10**6) == 2 + 64


def test_shared_objects_are_charged_each_time(probe: ModuleType) -> None:
    # Each level names the next one four times: 4**12 leaves in 50 words.
    levels = 12
    bomb = [
        words(
            struct_at(0, 0, 4),
            *(struct_at(3 - i, 0, 4) for _ in range(levels) for i in range(4)),
            *[0] * 4,
        )
    ]
    assert probe.count(bomb, 10**6) == -1
    for walk in (probe.copied, probe.size, probe.canonical):
        with pytest.raises(LimitError):
            walk(bomb, limit=10**6)
    with pytest.raises(LimitError):
        probe.equal(bomb, bomb, limit=10**6)


VOIDS = [words(struct_at(0, 0, 1), list_at(0, VOID, 2**29 - 1))]
EMPTIES = [words(struct_at(0, 0, 1), list_at(0, COMPOSITE, 0), tag(2**29 - 1, 0, 0))]


@pytest.mark.parametrize("source", [VOIDS, EMPTIES], ids=["Void", "empty structs"])
def test_elements_of_no_size_are_charged_but_not_measured(
    probe: ModuleType, source: list[bytes]
) -> None:
    with pytest.raises(LimitError):
        probe.copied(source, limit=10**6)
    with pytest.raises(LimitError):
        probe.equal(source, source, limit=10**6)
    assert probe.count(source, 10**6) == -1
    assert probe.size(source, limit=10**6)[:2] == (1 + len(source[0]) // 8 - 2, 0)


def test_total_size_gives_its_budget_back(probe: ModuleType) -> None:
    source = [words(struct_at(0, 0, 1), list_at(0, 5, 100), *range(100))]
    assert probe.size(source, limit=150) == (101, 0, 0 - 1)


# ---------------------------------------------------------------- the traversal count

@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param([words(0)], 2, id="null"),
        pytest.param([words(struct_at(0, 1, 1), 7, 0)], 4, id="a struct"),
        pytest.param([words(struct_at(0, 2, 0), 7)], 2, id="a refused pointer is a leaf"),
        pytest.param([words(far_at(1, 0)), words(struct_at(0, 1, 0), 7)], 4, id="a landing pad"),
        pytest.param(
            [words(far_at(1, 0, double=True)), words(far_at(2, 0), struct_at(0, 1, 0)), words(7)],
            5, id="two landing pads",
        ),
        pytest.param([words(far_at(9, 0))], 2, id="no such segment"),
        pytest.param([words(list_at(0, BYTE, 9), 0, 0)], 4, id="bytes in words"),
        pytest.param([words(list_at(0, VOID, 9))], 11, id="a word for each Void"),
        pytest.param(
            [words(list_at(0, COMPOSITE, 0), tag(9, 0, 0))], 12, id="a word for each empty struct"
        ),
        pytest.param(
            [words(list_at(0, COMPOSITE, 4), tag(2, 1, 1), 1, EMPTY, 1, list_at(0, BYTE, 1), 5)],
            8, id="pointers of a struct list",
        ),
        pytest.param(
            [words(list_at(0, POINTER, 2), list_at(1, BYTE, 1), list_at(0, BYTE, 1), 5)],
            6, id="one object named twice",
        ),
    ],
)
def test_the_count_is_what_a_complete_reading_touches(
    probe: ModuleType, source: list[bytes], expected: int
) -> None:
    assert probe.count(source, 100) == expected
    assert probe.count(source, expected) == expected
    assert probe.count(source, expected - 1) == -1


# ---------------------------------------------------------------- equality

def one(*items: int) -> list[bytes]:
    return [words(*items)]


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        pytest.param(
            one(struct_at(0, 1, 0), 7), one(struct_at(0, 3, 2), 7, 0, 0, 0, 0), True,
            id="trailing zeroes and nulls",
        ),
        pytest.param(one(EMPTY), one(struct_at(0, 1, 1), 0, 0), True, id="nothing but zeroes"),
        pytest.param(
            one(struct_at(0, 1, 0), 7), one(struct_at(0, 2, 0), 7, 1), False, id="one word more"
        ),
        pytest.param(
            one(struct_at(0, 0, 1), EMPTY), one(struct_at(0, 0, 1), 0), False,
            id="an empty struct is not null",
        ),
        pytest.param(
            one(struct_at(0, 0, 1), list_at(0, 0, 0)), one(struct_at(0, 0, 1), 0), False,
            id="an empty list is not null",
        ),
        pytest.param(
            one(struct_at(0, 0, 1), list_at(0, 1, 3), 0xF5),
            one(struct_at(0, 0, 1), list_at(0, 1, 3), 0x0D), True, id="padding of bits",
        ),
        pytest.param(
            one(struct_at(0, 0, 1), list_at(0, 1, 3), 5),
            one(struct_at(0, 0, 1), list_at(0, 1, 3), 4), False, id="bits",
        ),
        pytest.param(
            one(struct_at(0, 0, 1), list_at(0, 2, 2), 0xFF0201),
            one(struct_at(0, 0, 1), list_at(0, 2, 2), 0x0201), True, id="padding of bytes",
        ),
        pytest.param(
            one(struct_at(0, 0, 1), list_at(0, 2, 2), 0x0201),
            one(struct_at(0, 0, 1), list_at(0, 3, 2), 0x00020001), False, id="another size",
        ),
        pytest.param(
            one(struct_at(0, 0, 1), list_at(0, 7, 2), tag(2, 1, 0), 1, 2),
            one(struct_at(0, 0, 1), list_at(0, 7, 4), tag(2, 1, 1), 1, 0, 2, 0), True,
            id="struct lists of other sizes",
        ),
        pytest.param(
            one(struct_at(0, 0, 1), list_at(0, 7, 2), tag(2, 1, 0), 1, 2),
            one(struct_at(0, 0, 1), list_at(0, 7, 4), tag(2, 1, 1), 1, 0, 2, EMPTY), False,
            id="struct lists that differ in a pointer",
        ),
        pytest.param(
            one(struct_at(0, 0, 1), capability(0)), one(struct_at(0, 0, 1), capability(0)), True,
            id="a capability of no table",
        ),
        pytest.param(
            one(struct_at(0, 0, 1), capability(0)), one(struct_at(0, 0, 1), capability(1)), False,
            id="two capabilities",
        ),
        pytest.param(
            one(struct_at(0, 0, 1), capability(0)), one(struct_at(0, 0, 1), EMPTY), False,
            id="other kinds",
        ),
    ],
)
def test_structs_are_equal_by_canonical_content(
    probe: ModuleType, left: list[bytes], right: list[bytes], same: bool
) -> None:
    assert probe.equal(left, right) is same
    assert probe.equal(right, left) is same
    assert probe.equal(left, left)
    assert probe.equal(right, right)


def test_capabilities_are_equal_in_one_table_only(probe: ModuleType) -> None:
    source = one(struct_at(0, 0, 1), capability(0))
    table, other = ["it"], ["it"]
    assert probe.equal(source, source, tables=(table, table))
    assert not probe.equal(source, source, tables=(table, other))
    assert not probe.equal(source, source, tables=(table, None))


def test_lists_are_equal_by_canonical_content(probe: ModuleType) -> None:
    wide = one(list_at(0, 7, 4), tag(2, 1, 1), 1, 0, 2, 0)
    narrow = one(list_at(0, 7, 2), tag(2, 1, 0), 1, 2)
    assert probe.equal(wide, narrow, as_lists=True)
    assert not probe.equal(narrow, one(list_at(0, 5, 2), 1, 2), as_lists=True)
    assert not probe.equal(narrow, one(list_at(0, 7, 1), tag(1, 1, 0), 1), as_lists=True)


# ---------------------------------------------------------------- is it canonical?

@pytest.mark.parametrize(
    ("source", "canonical"),
    [
        pytest.param(b"", False, id="no word"),
        pytest.param(b"x" * 9, False, id="no whole words"),
        pytest.param(words(0), True, id="null root"),
        pytest.param(words(0, 0), False, id="a word behind the end"),
        pytest.param(words(EMPTY), True, id="an empty struct"),
        pytest.param(words(struct_at(1, 0, 0)), False, id="an empty struct with another offset"),
        pytest.param(words(struct_at(0, 1, 0), 7), True, id="a struct"),
        pytest.param(words(struct_at(0, 1, 0), 0), False, id="a trailing zero word"),
        pytest.param(words(struct_at(0, 0, 1), 0), False, id="a trailing null pointer"),
        pytest.param(words(struct_at(1, 1, 0), 0, 7), False, id="a gap"),
        pytest.param(words(struct_at(0, 2, 0), 7), False, id="beyond the end"),
        pytest.param(
            words(struct_at(0, 0, 2), struct_at(2, 1, 0), struct_at(0, 1, 0), 7, 8), False,
            id="children in the wrong order",
        ),
        pytest.param(
            words(struct_at(0, 0, 2), struct_at(1, 1, 0), struct_at(1, 1, 0), 7, 8), True,
            id="children in pre-order",
        ),
        pytest.param(words(list_at(0, 1, 3), 7), True, id="bits"),
        pytest.param(words(list_at(0, 1, 3), 15), False, id="padding in a byte"),
        pytest.param(words(list_at(0, 1, 3), 256), False, id="padding behind a byte"),
        pytest.param(words(list_at(0, POINTER, 2), 0, 0), True, id="null pointers in a list"),
        pytest.param(words(list_at(0, VOID, 7)), True, id="a list of Void"),
        pytest.param(words(list_at(-1, VOID, 7)), False, id="a list of Void out of order"),
        pytest.param(words(list_at(0, 7, 0), tag(0, 0, 0)), True, id="no structs"),
        pytest.param(words(list_at(0, 7, 0), tag(0, 1, 0)), False, id="no structs of some size"),
        pytest.param(words(list_at(0, 7, 0), tag(9, 0, 0)), True, id="empty structs"),
        pytest.param(words(list_at(0, 7, 2), tag(2, 1, 0), 0, 7), True, id="one needs the word"),
        pytest.param(words(list_at(0, 7, 2), tag(2, 1, 0), 0, 0), False, id="none needs it"),
        pytest.param(words(list_at(0, 7, 3), tag(2, 1, 0), 0, 7, 0), False, id="a surplus word"),
        pytest.param(words(list_at(0, 7, 1), list_at(0, 0, 0), 0), False, id="a list as tag"),
        pytest.param(words(list_at(0, 7, 1)), False, id="no tag"),
        pytest.param(words(far_at(0, 1), struct_at(0, 0, 0)), False, id="a far pointer"),
        pytest.param(words(capability(0)), False, id="a capability"),
        pytest.param(words(*[struct_at(0, 0, 1)] * 100_000, EMPTY), True, id="deep"),
    ],
)
def test_is_canonical(source: bytes, canonical: bool) -> None:
    assert is_canonical(source) is canonical
    assert is_canonical(memoryview(b"#" + source)[1:]) is canonical


def test_is_canonical_wants_a_buffer() -> None:
    with pytest.raises(TypeError):
        is_canonical("text")  # type: ignore[arg-type]


def test_canonical_lists_of_structs_drop_what_no_element_needs(probe: ModuleType) -> None:
    source = words(
        list_at(0, 7, 10), tag(2, 3, 2), 1, 0, 0, struct_at(6, 0, 0), 0, 0, 2, 0, 0, 0
    )
    assert probe.canonical([source], as_list=True) == words(
        list_at(0, 7, 6), tag(2, 2, 1), 1, 0, EMPTY, 0, 2, 0
    )
