"""A `Request` as the message that code generator plugins read, byte for byte the reference's.

The order of allocation is part of that: nodes are built on the side and copied in, the lists that
the reference makes as orphans are made as orphans here.  Spec: code-generator-request.md, 4.5.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import Any

from capnwire._any import new_any_root, new_orphan
from capnwire.compiler.cache import compile_cached
from capnwire.compiler.files import BUNDLED_DIRECTORY
from capnwire.message.nodes import node_to_dict, set_schema_source
from capnwire.message.types import list_of, struct_class
from capnwire.schema.model import (
    Node,
    Request,
    RequestedFile,
    SourceInfo,
    StructBody,
    Type,
    Value,
)
from capnwire.schema.registry import Registry

NODE, SOURCE_INFO = 0xE682AB4CF923A417, 0xF38E1DE3041357AE
SOURCE_MEMBER = 0xC2BA9038898E1FA2
REQUESTED_FILE, CODE_GENERATOR_REQUEST = 0xCFEA0EB02E810062, 0xBFC546F6210AD7CE

# What 1.1 added: the fields, and by how many words and pointers their structs grew.
_ADDED_IN_1_1 = {
    NODE: (("startByte", "endByte"), 1, 0),
    SOURCE_INFO: (("startByte", "endByte"), 1, 0),
    REQUESTED_FILE: (("fileSourceInfo",), 0, 1),
}

_schemas: dict[bool, tuple[Any, Any, Any]] = {}
_schemas_lock = Lock()


def emit_request(request: Request) -> bytes:
    """The framed CodeGeneratorRequest.

    A request of a version before 1.1 is written with the structs of that time.
    """
    is_current = request.version >= (1, 1, 0)
    request_type, node_type, info_type = _types(is_current)
    root_pointer = new_any_root()
    root = root_pointer.init_as_struct(request_type)
    version = root.init("capnpVersion")
    version.major, version.minor, version.micro = request.version
    nodes = root.init("nodes", len(request.nodes))
    for index, node in enumerate(request.nodes):
        nodes[index] = node_type.new_message(**node_to_dict(node, positions=is_current))
    infos = new_orphan(root, list_of(info_type), len(request.source_info))
    filled = infos.get()
    for index, info in enumerate(request.source_info):
        _fill_source_info(filled[index], info, is_current)
    root.adopt("sourceInfo", infos)
    files = root.init("requestedFiles", len(request.files))
    for index, file in enumerate(request.files):
        _fill_file(files[index], file, is_current)
    framed: bytes = root_pointer.to_bytes()
    return framed


def bundled_schema() -> Request:
    """The request for the bundled schema.capnp."""
    path = os.path.join(BUNDLED_DIRECTORY, "capnp", "schema.capnp")
    return compile_cached(path, src_prefixes=(BUNDLED_DIRECTORY,))[0]


def _types(is_current: bool) -> tuple[Any, Any, Any]:
    """CodeGeneratorRequest, Node and SourceInfo as they are now or were before 1.1."""
    with _schemas_lock:
        found = _schemas.get(is_current)
        if found is None:
            set_schema_source(bundled_schema)
            nodes = bundled_schema().nodes
            if is_current:
                _grow_members(nodes)
            else:
                _take_back(nodes)
            _take_any_bytes(nodes)
            registry = Registry()
            registry.add(nodes)
            request, node, info = (
                struct_class(registry, registry.struct_info(id))
                for id in (CODE_GENERATOR_REQUEST, NODE, SOURCE_INFO)
            )
            found = _schemas[is_current] = (request, node, info)
    return found


def _grow_members(nodes: list[Node]) -> None:
    """Give SourceInfo.Member the size that the reference writes, though it leaves it empty."""
    for node in nodes:
        if node.id == SOURCE_MEMBER and isinstance(node.body, StructBody):
            node.body.data_word_count, node.body.pointer_count = 1, 2


def _take_any_bytes(nodes: list[Node]) -> None:
    """Make the doc comments' type Data, which looks like Text in a message."""
    for node in nodes:
        if node.id in (SOURCE_INFO, SOURCE_MEMBER) and isinstance(node.body, StructBody):
            for field in node.body.fields or ():
                if field.name == "docComment":
                    field.type, field.default_value = Type("data"), Value("data")


def _take_back(nodes: list[Node]) -> None:
    """Give the structs the sizes and fields that they had before 1.1."""
    sizes: dict[int, tuple[int, int]] = {}
    for node in nodes:
        added = _ADDED_IN_1_1.get(node.id)
        body = node.body
        if added is not None and isinstance(body, StructBody):
            names, words, pointers = added
            body.fields = [field for field in body.fields or () if field.name not in names]
            body.data_word_count -= words
            body.pointer_count -= pointers
            sizes[node.id] = (body.data_word_count, body.pointer_count)
    for node in nodes:
        if isinstance(node.body, StructBody) and node.body.is_group and node.scope_id in sizes:
            node.body.data_word_count, node.body.pointer_count = sizes[node.scope_id]


# --- lists that are filled in place -------------------------------------------------------------


def _fill_source_info(target: Any, info: SourceInfo, is_current: bool) -> None:
    target.id = info.id
    if is_current:
        target.startByte, target.endByte = info.start_byte, info.end_byte
    if info.doc_comment is not None:
        target.docComment = _doc_bytes(info.doc_comment)
    if info.members is not None:
        members = target.init("members", len(info.members))
        for index, member in enumerate(info.members):
            if member.doc_comment is not None:
                members[index].docComment = _doc_bytes(member.doc_comment)


def _doc_bytes(text: str) -> bytes:
    """A doc comment as it is in the file, which need not be UTF-8."""
    return text.encode("utf-8", "surrogateescape") + b"\0"


def _fill_file(target: Any, file: RequestedFile, is_current: bool) -> None:
    target.id = file.id
    target.filename = file.filename
    imports = new_orphan(target, _list_type(target, "imports"), len(file.imports))
    filled = imports.get()
    for index, (name, id) in enumerate(file.imports):
        filled[index].id = id
        filled[index].name = name
    target.adopt("imports", imports)
    if not is_current:
        return
    identifiers = file.identifiers or []
    items = target.init("fileSourceInfo").init("identifiers", len(identifiers))
    for index, identifier in enumerate(identifiers):
        item = items[index]
        item.startByte, item.endByte = identifier.start_byte, identifier.end_byte
        if identifier.member is None:
            item.typeId = identifier.type_id
        else:
            member = item.init("member")
            member.parentTypeId, member.ordinal = identifier.member


def _list_type(struct: Any, name: str) -> Any:
    return struct._info.field(name)[1]
