"""Schema texts made wrong: bytes, tokens and statements cut, moved, doubled and exchanged.

Not a test.  One seed gives one text.
"""

from __future__ import annotations

import random
import re

from tests.compiler.features import FEATURES
from tests.compiler.random_schemas import make_schema
from tests.compiler.reference import STD

PIECES = [
    b"(", b")", b"{", b"}", b"[", b"]", b";", b",", b"@", b"@0", b":", b"=", b"$", b".", b"union ",
    b"struct ", b"using ", b'import "x"', b'embed "x"', b"->", b"-", b'"', b"\\", b'0x"', b"\0",
    b"\xff\xfe", b"\xef\xbb\xbf", b"#", b"9" * 30, b"stream", b"extends", b"Text", b"List(",
    b"Point",
    b"null", b"void", b".origin", b"Box", b"1e400", b"*", b"\n", b"`x\n", b"group", b"$aInt",
    b"@70000", b'import "schema.capnp"', b'embed "schema.capnp"', b"\xc3", b"using A = A;",
]
TOKENS = [
    b"(", b")", b"{", b"}", b"[", b"]", b";", b",", b"@", b"@0", b"@1", b"@0!", b":", b"=", b"$",
    b".", b"->", b"-", b"-1", b"0", b"1", b"255", b"65536", b"18446744073709551616", b"1.5",
    b"inf", b"nan", b"true", b"void", b'"text"', b'0x"00 ff"', b"()", b"[]", b"[1, 2]", b"(x = 1)",
    b":union", b":group", b"union", b"struct", b"enum", b"interface", b"const", b"annotation",
    b"using", b"extends", b"stream", b"import", b"embed", b"Void", b"Bool", b"Int8", b"UInt64",
    b"Float32", b"Text", b"Data", b"List", b"List(Text)", b"List(AnyPointer)", b"AnyPointer",
    b"AnyStruct", b"AnyList", b"Capability", b"Object", b"Foo", b"foo", b"foo_bar", b"*", b"file",
    b"field", b"$foo", b"@0xb0b0b0b0b0b0b0b0", b"@0xb0b0b0b0b0b0b0b7", b"null",
    b'import "/capnp/c++.capnp"', b'import "absent.capnp"', b'embed "absent"', b".Foo", b"A.B",
]
_TOKEN = re.compile(rb'\s+|#[^\n]*|"(?:[^"\\\n]|\\.)*"|\w+|[!$%&*+\-./:<=>?@^|~]+|.', re.DOTALL)


def _originals() -> list[bytes]:
    texts = [path.read_bytes() for path in sorted(STD.rglob("*.capnp"))]
    for files in FEATURES.values():
        text = next(iter(files.values()))
        texts.append(text if isinstance(text, bytes) else text.encode())
    # Long texts only make the same mistakes slower.
    return [text for text in texts if len(text) < 6000]


ORIGINALS = _originals()


def mutated(seed: object) -> bytes:
    """The text that belongs to a seed."""
    rng = random.Random(f"mutation {seed}")
    text = make_schema(seed).encode() if rng.random() < 0.3 else rng.choice(ORIGINALS)
    return rng.choice((mutate_bytes, mutate_tokens, mutate_tokens))(text, rng)


def mutate_bytes(text: bytes, rng: random.Random) -> bytes:
    """Some bytes cut, doubled, or exchanged for pieces of the language or anything."""
    made = bytearray(text)
    if rng.random() < 0.2:
        return bytes(made[: rng.randrange(len(made))])
    for _ in range(rng.randint(1, 6)):
        start = rng.randrange(len(made) + 1)
        end = start + rng.choice((0, 1, 1, 3, 10, 60))
        kind = rng.random()
        if kind < 0.5:
            made[start:end] = rng.choice(PIECES)
        elif kind < 0.7:
            del made[start:end]
        elif kind < 0.85:
            other = rng.randrange(len(made) + 1)
            made[start:start] = made[other : other + rng.randrange(80)]
        else:
            made[start:end] = rng.randbytes(end - start)
    return bytes(made)


def mutate_tokens(text: bytes, rng: random.Random) -> bytes:
    """Some tokens cut, doubled, moved, or exchanged for others of the text or the language."""
    tokens = _TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(tokens))
        if tokens[at].isspace() and rng.random() < 0.9:
            at = (at + 1) % len(tokens)
        kind = rng.random()
        if kind < 0.35:
            tokens[at] = rng.choice(TOKENS)
        elif kind < 0.5:
            tokens[at] = rng.choice(tokens)
        elif kind < 0.65:
            tokens[at] = b""
        elif kind < 0.8:
            tokens.insert(at, b" " + rng.choice(TOKENS) + b" ")
        elif kind < 0.9:
            tokens[at:at] = tokens[at : at + rng.randrange(1, 30)]
        else:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
    return b"".join(tokens)
