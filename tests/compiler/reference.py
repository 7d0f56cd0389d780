"""Runs the reference's `capnp compile` and reads its requests, by pycapnp, into our model.

Not a test.  `Reference` is given to the tests by conftest.py
"""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from capnwire.schema import model

STD = Path(model.__file__).resolve().parent.parent / "std"
FILE_ID = "@0xb0b0b0b0b0b0b0b0;\n"
Check = Callable[..., model.Request]
"""The fixture `check_same`."""
POINTER_VALUES = ("list", "struct", "anyPointer")


class Outcome:
    """What one run of the tool gave: the request's bytes, or its messages."""

    def __init__(self, request: bytes, messages: list[str], crashed: bool) -> None:
        self.request, self.messages, self.crashed = request, messages, crashed


class Reference:
    """The tool, with a schema.capnp for reading what it writes."""

    def __init__(self, tool: str, pycapnp: ModuleType) -> None:
        self.tool = tool
        self._pycapnp = pycapnp
        schema = pycapnp.load(str(STD / "capnp" / "schema.capnp"), imports=[str(STD)])
        self._request_type = schema.CodeGeneratorRequest

    def run(
        self, directory: Path, names: Iterable[str], *, options: Iterable[str] = (),
        environment: dict[str, str] | None = None,
    ) -> Outcome:
        """Run `capnp compile -o-` in a directory."""
        done = subprocess.run(
            [self.tool, "compile", "-o-", "--no-standard-import", *options, *names],
            cwd=directory, capture_output=True, env=environment, check=False,
        )
        text = done.stderr.decode(errors="replace")
        crashed = "*** Uncaught exception ***" in text or done.returncode < 0
        lines = text.split("*** Uncaught exception ***")[0].splitlines()
        messages = [line for line in lines if re.search(r": error: ", line)]
        return Outcome(done.stdout if done.returncode == 0 else b"", messages, crashed)

    def read_version(self, data: bytes) -> tuple[int, int, int]:
        """The version that wrote a request."""
        return self._open(data)[1]

    def _open(self, data: bytes) -> tuple[Any, tuple[int, int, int]]:
        reader = next(
            iter(self._request_type.read_multiple_bytes(data, traversal_limit_in_words=1 << 60))
        )
        version = reader.capnpVersion
        return reader, (version.major, version.minor, version.micro)

    def read(self, data: bytes) -> model.Request:
        """The request as our model; pointer values as the bytes of one segment."""
        reader, version = self._open(data)
        return model.Request(
            [_node(node) for node in reader.nodes],
            [_file(file) for file in reader.requestedFiles],
            [_source_info(info) for info in reader.sourceInfo],
            version,
        )


def assert_equal(theirs: model.Request, ours: model.Request) -> None:
    """Compare part by part, so that a difference is found in one line."""
    assert [node.display_name for node in ours.nodes] == [
        node.display_name for node in theirs.nodes
    ]
    for name in ("nodes", "source_info", "files"):
        for their_part, our_part in zip(
            getattr(theirs, name), getattr(ours, name), strict=True
        ):
            assert plain(our_part) == plain(their_part)


def plain(part: Any) -> Any:
    """A record of the model as nested lists that compare well: sets in order, NaN as its name."""
    if isinstance(part, model._Record):
        return [type(part).__name__, *(plain(getattr(part, name)) for name in part.__slots__)]
    if isinstance(part, (list, tuple)):
        return [plain(item) for item in part]
    if isinstance(part, frozenset):
        return sorted(part)
    return "nan" if part != part else part


def _maybe(reader: Any, name: str) -> list[Any] | None:
    return list(getattr(reader, name)) if reader._has(name) else None


def _node(reader: Any) -> model.Node:
    kind = reader.which()
    return model.Node(
        reader.id, reader.displayName, reader.displayNamePrefixLength, reader.scopeId,
        _BODIES[str(kind)](getattr(reader, str(kind))),
        parameters=_names(_maybe(reader, "parameters")), is_generic=reader.isGeneric,
        nested=_nested(reader), annotations=_annotations(reader),
        start_byte=reader.startByte, end_byte=reader.endByte,
    )


def _names(items: list[Any] | None) -> list[str] | None:
    return None if items is None else [item.name for item in items]


def _nested(reader: Any) -> list[tuple[str, int]] | None:
    items = _maybe(reader, "nestedNodes")
    return None if items is None else [(item.name, item.id) for item in items]


def _file_body(reader: Any) -> model.FileBody:
    return model.FileBody()


def _struct_body(reader: Any) -> model.StructBody:
    fields = _maybe(reader, "fields")
    return model.StructBody(
        data_word_count=reader.dataWordCount, pointer_count=reader.pointerCount,
        preferred_list_encoding=reader.preferredListEncoding.raw, is_group=reader.isGroup,
        discriminant_count=reader.discriminantCount, discriminant_offset=reader.discriminantOffset,
        fields=None if fields is None else [_field(field) for field in fields],
    )


def _field(reader: Any) -> model.Field:
    field = model.Field(
        reader.name, reader.codeOrder, annotations=_annotations(reader),
        discriminant_value=reader.discriminantValue,
    )
    if reader.which() == "slot":
        slot = reader.slot
        field.offset, field.type = slot.offset, _type(slot.type)
        field.default_value = _value(slot.defaultValue)
        field.had_explicit_default = slot.hadExplicitDefault
    else:
        field.group_id = reader.group.typeId
    if reader.ordinal.which() == "explicit":
        field.ordinal = reader.ordinal.explicit
    return field


def _enum_body(reader: Any) -> model.EnumBody:
    return model.EnumBody(
        [
            model.Enumerant(item.name, item.codeOrder, _annotations(item))
            for item in reader.enumerants
        ]
    )


def _interface_body(reader: Any) -> model.InterfaceBody:
    methods = [
        model.Method(
            item.name, item.codeOrder,
            implicit_parameters=_names(list(item.implicitParameters)),
            param_struct_type=item.paramStructType, param_brand=_brand(item, "paramBrand"),
            result_struct_type=item.resultStructType, result_brand=_brand(item, "resultBrand"),
            annotations=_annotations(item),
        )
        for item in reader.methods
    ]
    bases = [model.Superclass(item.id, _brand(item, "brand")) for item in reader.superclasses]
    return model.InterfaceBody(methods, bases)


def _const_body(reader: Any) -> model.ConstBody:
    return model.ConstBody(_type(reader.type), _value(reader.value))


def _annotation_body(reader: Any) -> model.AnnotationBody:
    targets = [
        "file", "const", "enum", "enumerant", "struct", "field", "union", "group", "interface",
        "method", "param", "annotation",
    ]
    chosen = [name for name in targets if getattr(reader, f"targets{name.capitalize()}")]
    return model.AnnotationBody(_type(reader.type), frozenset(chosen))


_BODIES: dict[str, Any] = {
    "file": _file_body, "struct": _struct_body, "enum": _enum_body, "interface": _interface_body,
    "const": _const_body, "annotation": _annotation_body,
}


def _annotations(reader: Any) -> list[model.Annotation] | None:
    items = _maybe(reader, "annotations")
    if items is None:
        return None
    made = []
    for item in items:
        assert item._has("brand"), "an annotation always has a brand"
        brand = _brand(item, "brand")
        made.append(
            model.Annotation(item.id, _value(item.value), brand if brand.scopes else None)
        )
    return made


def _brand(reader: Any, name: str) -> Any:
    if not reader._has(name):
        return None
    scopes = []
    for scope in getattr(reader, name).scopes:
        bindings = None
        if scope.which() == "bind":
            bindings = [
                model.Binding(_type(item.type) if item.which() == "type" else None)
                for item in scope.bind
            ]
        scopes.append(model.BrandScope(scope.scopeId, bindings))
    return model.Brand(scopes)


def _type(reader: Any) -> model.Type:
    kind = str(reader.which())
    if kind == "list":
        return model.Type(kind, element=_type(reader.list.elementType))
    if kind in ("enum", "struct", "interface"):
        inner = getattr(reader, kind)
        return model.Type(kind, type_id=inner.typeId, brand=_brand(inner, "brand"))
    if kind != "anyPointer":
        return model.Type(kind)
    inner = reader.anyPointer
    which = str(inner.which())
    if which == "unconstrained":
        return model.Type(kind, any_kind=str(inner.unconstrained.which()))
    if which == "parameter":
        return model.Type(
            kind, any_kind=which, scope_id=inner.parameter.scopeId,
            parameter_index=inner.parameter.parameterIndex,
        )
    return model.Type(
        kind, any_kind=which, parameter_index=inner.implicitMethodParameter.parameterIndex,
    )


def _value(reader: Any) -> model.Value:
    kind = str(reader.which())
    if kind in POINTER_VALUES:
        return model.Value(kind, _pointer_bytes(reader))
    if kind in ("void", "interface"):
        return model.Value(kind)
    raw = _raw_value(reader)
    if kind == "float32":
        bits = struct.unpack_from("<I", raw, 4)[0]
        return model.Value(kind, reader.float32, bits)
    if kind == "float64":
        bits = struct.unpack_from("<Q", raw, 8)[0]
        return model.Value(kind, reader.float64, bits)
    if kind in ("text", "data"):
        words = _pointer_bytes(reader)
        if words is None:
            return model.Value(kind)
        count = struct.unpack_from("<I", words, 4)[0] >> 3
        return model.Value(kind, words[8 : 8 + count - (kind == "text")])
    return model.Value(kind, getattr(reader, kind))


def _raw_value(reader: Any) -> bytes:
    """The Value struct alone in a message: its two data words, its pointer, what that points to."""
    builder = reader.as_builder(1 << 16)
    segments = builder.to_segments()
    assert len(segments) == 1, "a value larger than the test's first segment"
    return bytes(segments[0])[8:]


def _pointer_bytes(reader: Any) -> bytes | None:
    raw = _raw_value(reader)[16:]
    return None if raw[:8] == bytes(8) else raw


def _source_info(reader: Any) -> model.SourceInfo:
    members = _maybe(reader, "members")
    return model.SourceInfo(
        reader.id, doc_comment=reader.docComment if reader._has("docComment") else None,
        members=None
        if members is None
        else [
            model.SourceMember(item.docComment if item._has("docComment") else None)
            for item in members
        ],
        start_byte=reader.startByte, end_byte=reader.endByte,
    )


def _file(reader: Any) -> model.RequestedFile:
    identifiers = []
    for item in reader.fileSourceInfo.identifiers:
        if item.which() == "typeId":
            identifiers.append(model.Identifier(item.startByte, item.endByte, item.typeId))
        else:
            member = (item.member.parentTypeId, item.member.ordinal)
            identifiers.append(model.Identifier(item.startByte, item.endByte, 0, member))
    imports = [(item.name, item.id) for item in reader.imports]
    return model.RequestedFile(reader.id, reader.filename, imports, identifiers)
