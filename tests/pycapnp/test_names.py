"""What outside code reaches: names, modules, the import hook, old pickles."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pycapnp.processes import environment

DATA = Path(__file__).parent / "data" / "kinds.capnp"

PUBLIC = [
    "AsyncIoStream", "KjException", "SchemaLoader", "SchemaParser", "TwoPartyClient",
    "TwoPartyServer", "_CapabilityClient", "_DynamicCapabilityClient", "_DynamicListBuilder",
    "_DynamicListReader", "_DynamicOrphan", "_DynamicResizableListBuilder",
    "_DynamicStructBuilder", "_DynamicStructReader", "_EventLoop", "_InterfaceModule",
    "_ListSchema", "_MallocMessageBuilder", "_PackedFdMessageReader",
    "_PyCustomMessageBuilder", "_StreamFdMessageReader", "_StructModule", "__version__",
    "_init_capnp_api", "_write_message_to_fd", "_write_packed_message_to_fd",
    "add_import_hook", "cleanup_global_schema_parser", "deregister_all_types", "fill_context",
    "kj_loop", "lib", "load", "read_multiple_bytes_packed", "register_type",
    "remove_import_hook", "run", "types", "version", "void_task_done_callback", "asyncio",
    "array", "base64", "contextlib",
]

PRIVATE = [
    "KjException", "_CallContext", "_CapabilityClient", "_DynamicCapabilityClient",
    "_DynamicCapabilityServer", "_DynamicEnum", "_DynamicEnumField", "_DynamicListBuilder",
    "_DynamicListReader", "_DynamicObjectBuilder", "_DynamicObjectReader", "_DynamicOrphan",
    "_DynamicStructBuilder", "_DynamicStructReader", "_EnumModule", "_EnumSchema",
    "_InterfaceMethod", "_InterfaceModule", "_InterfaceSchema", "_ListSchema", "_NodeReader",
    "_ParsedSchema", "_RemotePromise", "_Request", "_Response", "_Schema", "_SchemaType",
    "_StructModule", "_StructSchema", "_StructSchemaField", "_capnp_paths",
    "_global_schema_parser", "_struct_reducer", "SchemaParser", "load",
]

KINDS_OF_TYPES = [
    "Void", "Bool", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64",
    "Float32", "Float64", "Text", "Data", "AnyPointer",
]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_name_of_the_package(capnp: Any, name: str) -> None:
    assert hasattr(capnp, name)
    assert name in dir(capnp)


@pytest.mark.parametrize("name", PRIVATE)
def test_a_name_of_the_extension(capnp: Any, name: str) -> None:
    assert hasattr(capnp.lib.capnp, name)


def test_types_and_versions(capnp: Any) -> None:
    assert all(hasattr(capnp.types, name) for name in KINDS_OF_TYPES)
    assert (capnp.__version__, capnp.version.LIBCAPNP_VERSION) == ("2.2.4", 1004000)
    with pytest.raises(AttributeError, match="nothing"):
        capnp.nothing  # noqa: B018


def python(program: str, *arguments: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, cwd=cwd, check=False,
        env=environment(of_pycapnp="capnwire" not in program), timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


INSTALLED = "import capnwire.pycapnp; capnwire.pycapnp.install()\n"


def test_an_installed_drop_in_answers_to_every_import() -> None:
    assert python(INSTALLED + """
import capnp, capnp.version
import capnp.lib.capnp
from capnp.lib.capnp import KjException, _DynamicStructReader
from capnp import stream_capnp, types
import capnp.schema_capnp
print(capnp.__name__, KjException is capnp.KjException, capnp.schema_capnp.Node.schema.node.id)
""") == "capnwire.pycapnp True 16610026722781537303"


def test_the_drop_in_is_not_put_over_pycapnp() -> None:
    pytest.importorskip("capnp")
    assert python("""
import capnp, capnwire.pycapnp
try:
    capnwire.pycapnp.install()
except ImportError as error:
    print(error)
""") == "pycapnp was imported before capnwire.pycapnp.install()"


def test_the_import_hook_finds_what_pycapnps_finds(tmp_path: Path) -> None:
    text = "@0xb0c6f0c5a5b6d1{:02x};\nstruct A {{ a @0 :Text; }}\n"
    (tmp_path / "with-dash.capnp").write_text(text.format(1))
    (tmp_path / "with blank.capnp").write_text(text.format(2))
    package = tmp_path / "package"
    package.mkdir()
    (package / "inner.capnp").write_text(
        '@0xb0c6f0c5a5b6d103;\nusing Other = import "/with-dash.capnp";\n'
        "struct B { a @0 :Other.A; }\n"
    )
    assert python(INSTALLED + """
import sys; sys.path.insert(0, "")
import with_dash_capnp, with_blank_capnp, package.inner_capnp as inner
print(inner.B.new_message(a={"a": "x"}).a.a, with_dash_capnp.A, inner.__name__, inner.__file__)
print(repr(inner.B.new_message()))
try:
    import absent_capnp
except ImportError:
    print("absent")
import capnp
capnp.remove_import_hook()
del sys.modules["with_dash_capnp"]
try:
    import with_dash_capnp
except ImportError:
    print("removed")
""", cwd=tmp_path).splitlines()[1:] == [
        "<package.inner_capnp:B builder ()>", "absent", "removed",
    ]


WRITE = f"""
import sys, pickle, capnp
capnp.remove_import_hook()
kinds = capnp.load({str(DATA)!r})
message = kinds.Kinds.new_message(text="kept", shorts=[1, 2])
sys.stdout.write(pickle.dumps([message, message.as_reader()]).hex())
"""
READ = f"""
import sys, pickle, capnp
capnp.remove_import_hook()
kinds = capnp.load({str(DATA)!r})
print([(type(found).__name__, found.text, list(found.shorts))
       for found in pickle.loads(bytes.fromhex(sys.argv[1]))])
"""


@pytest.mark.parametrize(("writer", "reader"), [("", INSTALLED), (INSTALLED, "")])
def test_pickles_go_both_ways(writer: str, reader: str) -> None:
    pytest.importorskip("capnp")
    expected = [("_DynamicStructReader", "kept", [1, 2])] * 2
    assert python(reader + READ, python(writer + WRITE)) == str(expected)


WRITE_OLD = f"""
import sys, pickle, capnp
from capnp.lib.pickle_helper import _struct_reducer
capnp.remove_import_hook()
kinds = capnp.load({str(DATA)!r})

class Old:
    def __reduce__(self):
        data = kinds.Kinds.new_message(text="kept", shorts=[1, 2]).to_bytes()
        return _struct_reducer, (kinds.Kinds.schema.node.id, data)

sys.stdout.write(pickle.dumps([Old()]).hex())
"""


@pytest.mark.parametrize("writer", ["", INSTALLED])
def test_pickles_of_old_versions_are_read(writer: str) -> None:
    pytest.importorskip("capnp")
    expected = [("_DynamicStructReader", "kept", [1, 2])]
    assert python(INSTALLED + READ, python(writer + WRITE_OLD)) == str(expected)
