"""Small expressions that pycapnp and the drop-in must answer alike: `python probes.py pycapnp|capnwire`.

Prints JSON: for each probe its value, or the classes of its exception that programs catch.
"""

import copy
import json
import os
import pickle
import sys
import tempfile

if sys.argv[1] == "capnwire":
    import capnwire.pycapnp

    capnwire.pycapnp.install()

import capnp

capnp.remove_import_hook()
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "kinds.capnp")
kinds = capnp.load(DATA)
Kinds, Leaf, Node, Choice, Event = kinds.Kinds, kinds.Leaf, kinds.Node, kinds.Choice, kinds.Event


def full():
    return Kinds.new_message(
        bool=True, i8=-5, i16=-300, i32=7, i64=-(2**62), u8=200, u16=60000, u32=4 * 10**9,
        u64=2**64 - 1, f32=0.1, f64=1e300, text="a 'text'\n", data=b"\0\xffb", color="green",
        leaf={"number": 3, "text": "three"}, void=None, shorts=[1, -2, 3], texts=["x", ""],
        datas=[b"d"], leaves=[{"number": 1}, {"text": "t"}], colors=["blue", "red"],
        bools=[True, False, True], floats=[0.5, 1e-30, float("inf")], nested=[[1], [], [2, 3]],
        group={"number": 9, "word": "w"}, choice={"two": "2"}, some=[5],
    )


def written(**values):
    return Kinds.new_message(**values).to_bytes()


def setting(field, value):
    def probe():
        message = Kinds.new_message()
        setattr(message, field, value)
        found = "any" if field == "any" else str(message._get(field))
        return [found, message.to_bytes().hex()]

    return probe


def in_dict(field, value):
    def probe():
        return Kinds.new_message(**{field: value}).to_bytes().hex()

    return probe


def raw(words):
    return b"".join(word.to_bytes(8, "little") for word in [len(words) << 32, *words])


kept = []  # pycapnp's readers do not hold on to the buffer that they read


def opened(kind, data, **options):
    kept.append(data)
    with kind.from_bytes(data, **options) as reader:
        return reader


message = full()
reader = opened(Kinds, full().to_bytes())
probes = {
    "bytes": lambda: full().to_bytes().hex(),
    "packed": lambda: full().to_bytes_packed().hex(),
    "segments": lambda: [s.hex() for s in full().to_segments()],
    "small first segment": lambda: Kinds.new_message(2, text="x" * 50, data=b"y" * 90).to_bytes().hex(),
    "no first segment": lambda: Kinds.new_message(0, text="x" * 50).to_bytes().hex(),
    "many segments": lambda: len(Kinds.new_message(1, texts=["z" * 20] * 300).to_segments()),
    "dir of a used type": lambda: [name for name in dir(Kinds) if name[0] != "_"],
    "str builder": lambda: str(message),
    "str reader": lambda: str(reader),
    "repr builder": lambda: repr(message),
    "repr reader": lambda: repr(reader),
    "repr lists": lambda: [repr(message.shorts), repr(reader.leaves), str(reader.nested)],
    "str group": lambda: [str(reader.group), repr(reader.choice)],
    "str empty": lambda: [str(Kinds.new_message()), repr(Leaf.new_message())],
    "str choice": lambda: [str(Choice.new_message()), str(Choice.new_message(number=0))],
    "to_dict": lambda: message.to_dict(),
    "to_dict reader": lambda: reader.to_dict(),
    "to_dict keys": lambda: list(Event.new_message(time=3, leaf={}).to_dict()),
    "to_dict verbose keys": lambda: list(Kinds.new_message().as_reader().to_dict(verbose=True)),
    "to_dict base64": lambda: message.to_dict(encode_bytes_as_base64=True)["datas"],
    "to_dict ordered": lambda: type(message.to_dict(ordered=True)).__name__ in ("dict", "OrderedDict"),
    "defaults": lambda: [
        list(Kinds.new_message().as_reader().some), Kinds.new_message().as_reader().preset.text,
        Kinds.new_message().group.word, Kinds.new_message().as_reader()._has("some"),
    ],
    "default list of a builder": lambda: list(Kinds.new_message().some),
    "default struct of a builder": lambda: str(Kinds.new_message().preset),
    "has": lambda: [reader._has(f) for f in Kinds.schema.fieldnames],
    "has of a union": lambda: [Choice.new_message(number=1)._has(f) for f in Choice.schema.fieldnames],
    "fields": lambda: [
        Kinds.schema.fieldnames, Event.schema.union_fields, Event.schema.non_union_fields,
        list(Kinds.schema.fields), [repr(f) for f in Event.schema.fields_list],
    ],
    "schemas": lambda: [
        repr(Kinds.schema), Kinds.schema.fields["leaf"].schema == Leaf.schema,
        Kinds.schema.fields["color"].schema.enumerants, repr(Kinds.schema.fields["group"].schema),
        Kinds.schema.fields["leaves"].schema.elementType == Leaf.schema,
    ],
    "field without schema": lambda: Kinds.schema.fields["i8"].schema,
    "list without schema": lambda: Kinds.schema.fields["shorts"].schema.elementType,
    "proto": lambda: [
        str(Kinds.schema.fields["group"].proto.which()), Kinds.schema.fields["i8"].proto.codeOrder,
        str(Kinds.schema.fields["some"].proto.slot.type.list.elementType.which()),
        Kinds.schema.node.displayName, Kinds.schema.node.id, Kinds.schema.get_proto().isStruct,
        Kinds.schema.node.struct.dataWordCount, str(Kinds.schema.node.which()),
    ],
    "nested schema": lambda: [
        kinds.schema.get_nested("answer").as_const_value(),
        repr(kinds.schema.get_nested("Leaf").as_struct()), kinds.schema.node.displayName,
    ],
    "nested schema unknown": lambda: kinds.schema.get_nested("nothing"),
    "constants": lambda: [
        kinds.answer, kinds.leaf.text, [str(c) for c in kinds.colors], str(kinds.favourite),
        kinds.favourite == 1, kinds.favourite == "green",
    ],
    "modules": lambda: [
        isinstance(Leaf, type), isinstance(Leaf.new_message(), Leaf.Builder),
        isinstance(Leaf.new_message(), Leaf.Reader), isinstance(message, Leaf.Builder),
        isinstance(reader, Kinds.Reader), kinds.Color.blue, kinds.__name__,
        type(Leaf).__name__, type(kinds.Color).__name__, type(kinds.Echo).__name__,
    ],
    "instances": lambda: [
        isinstance(message, capnp._DynamicStructBuilder), isinstance(reader, capnp._DynamicStructReader),
        isinstance(message.shorts, capnp._DynamicListBuilder),
        isinstance(reader.shorts, capnp._DynamicListReader),
        isinstance(reader.color, capnp.lib.capnp._DynamicEnum),
        isinstance(reader.any, capnp.lib.capnp._DynamicObjectReader),
        isinstance(message.any, capnp.lib.capnp._DynamicObjectBuilder),
        isinstance(Kinds.schema, capnp.lib.capnp._StructSchema), type(message).__name__,
        type(reader.leaves).__name__, type(reader.color).__name__,
    ],
    "no reader class": lambda: Leaf.Reader(),
    "group module": lambda: [type(Kinds.Group).__name__, Kinds.Group.schema.fieldnames],
    "named union": lambda: [
        [m.name for m in Kinds.Choice], Kinds.Choice.two == 1, Kinds.Choice.two == "two",
        Kinds.Choice.schema.fieldnames, message.choice.which == Kinds.Choice.two,
    ],
    "unnamed union": lambda: [
        [m.name for m in Choice.Union], hasattr(Event, "Union"),
        Choice.new_message(leaf={}).which == Choice.Union.Leaf, Choice.Union.Leaf == 2,
    ],
    "init by member": lambda: str(Choice.new_message().init(Choice.Union.Leaf)),
    "which": lambda: [
        str(reader.choice.which), reader.choice.which(), reader.choice.which == "two",
        reader.choice.which == 1, reader.choice.which.raw, repr(reader.choice.which),
        reader.choice._which() == "two", reader.choice._which_str(), reader.choice.which != "one",
        reader.choice.which < 5, reader.choice.which == None,  # noqa: E711
    ],
    "which without union": lambda: reader.which,
    "which unknown": lambda: opened(Choice, raw([1 << 32 | 1 << 48, 77, 0, 0])).which(),
    "dict of unknown": lambda: opened(Choice, raw([2 << 32 | 1 << 48, 0, 77, 0, 0])).to_dict(),
    "inactive": lambda: reader.choice.one,
    "inactive builder": lambda: message.choice.one,
    "enum": lambda: [
        str(reader.color), repr(reader.color), reader.color.raw, reader.color == "green",
        reader.color == 1, reader.color == kinds.Color.green, reader.color != "red",
        reader.color > 0, reader.color < "zzz", hash(reader.color) == hash("green"),
        {"green": 1}[reader.color], reader.color == reader.colors[0], bool(reader.colors[1]),
    ],
    "enum module unknown": lambda: kinds.Color.pink,
    "list": lambda: [
        len(reader.shorts), list(reader.shorts), reader.shorts[0], reader.shorts[-1],
        reader.shorts[True], -2 in reader.shorts, list(reversed(reader.shorts)),
        sorted(reader.shorts), sum(reader.shorts), tuple(reader.texts), reader.shorts._get(1),
        reader.shorts == [1, -2, 3],
    ],
    "list far negative": lambda: reader.shorts[-5],
    "list index too large": lambda: reader.shorts[3],
    "list text index": lambda: reader.shorts["a"],
    "list delete": lambda: message.shorts.__delitem__(0),
    "bytes of a list": lambda: bytes(Kinds.new_message(shorts=[1, 2, 255]).shorts).hex(),
    "no length": lambda: len(message),
    "not iterable": lambda: iter(message),
    "identity": lambda: [
        message == message, message.leaf == message.leaf, message != reader,
        hash(message) == hash(message),
    ],
    "unknown get": lambda: message.nothing,
    "unknown get reader": lambda: reader.nothing,
    "unknown set": lambda: setattr(message, "nothing", 1),
    "reader set": lambda: setattr(reader, "i8", 1),
    "reader delete": lambda: delattr(message, "i8"),
    "_get unknown": lambda: message._get("nothing"),
    "_has unknown": lambda: message._has("nothing"),
    "_set unknown": lambda: message._set("nothing", 1),
    "init unknown": lambda: message.init("nothing"),
    "kwargs unknown": lambda: Kinds.new_message(nothing=5),
    "init list without size": lambda: Kinds.new_message().init("shorts"),
    "init struct with size": lambda: Kinds.new_message().init("leaf", 3),
    "init scalar": lambda: Kinds.new_message().init("i8"),
    "init negative": lambda: Kinds.new_message().init("shorts", -1),
    "init text": lambda: repr(Kinds.new_message().init("text", 3)),
    "init data": lambda: Kinds.new_message().init("data", 2).hex(),
    "init nested": lambda: (
        lambda m: (m.init("nested", 2).init(1, 3), m.to_bytes().hex())[1]
    )(Kinds.new_message()),
    "init group": lambda: str(full().init("group")),
    "schema field": lambda: [
        message._get_by_field(Kinds.schema.fields["i8"]), reader._get_by_field(Kinds.schema.fields["i8"]),
        reader._has_by_field(Kinds.schema.fields["any"]),
    ],
    "names": lambda: (
        lambda n: [n._get("schema"), n._get("copy"), n.get, callable(n.copy), n.to_dict()]
    )(kinds.Names.new_message(schema="s", copy=4, get=-1)),
    "roots": lambda: [
        message.is_root, message.leaf.is_root, reader.is_root, reader.as_builder().is_root,
        message.copy().is_root,
        capnp._MallocMessageBuilder().init_root(Leaf).is_root,
    ],
    "write of a child": lambda: message.leaf.to_bytes(),
    "written": lambda: (lambda m: [m._is_written, m.to_bytes() and m._is_written])(full()),
    "size": lambda: [full().total_size.word_count, reader.total_size.cap_count],
    "size of a part": lambda: reader.leaf.total_size.word_count,
    "as_builder": lambda: [reader.as_builder().to_bytes().hex(), reader.leaf.as_builder().to_bytes().hex()],
    "copy of a part": lambda: message.leaf.copy().to_bytes().hex(),
    "as_reader sees changes": lambda: (
        lambda m, r: [setattr(m, "i32", 5), r.i32][1]
    )(*(lambda m: (m, m.as_reader()))(Kinds.new_message())),
    "pickle": lambda: [
        type(pickle.loads(pickle.dumps(message))).__name__,
        pickle.loads(pickle.dumps(reader)).to_dict() == reader.to_dict(),
    ],
    "from_bytes odd": lambda: opened(Leaf, b"1234567"),
    "from_bytes empty": lambda: opened(Leaf, b""),
    "from_bytes short": lambda: opened(Leaf, written(text="x" * 100)[:-8]),
    "from_bytes number": lambda: opened(Leaf, 42),
    "from_bytes builder": lambda: type(opened(Leaf, written(), builder=True)).__name__,
    "from_bytes of zeros": lambda: str(opened(Leaf, raw([0]))),
    "from_bytes limits": lambda: list(opened(Kinds, full().to_bytes(), traversal_limit_in_words=3).shorts),
    "from_bytes nesting": lambda: opened(
        Node, Node.new_message(next={"next": {"value": 1}}).to_bytes(), nesting_limit=1
    ).next.next.value,
    "from_bytes memory": lambda: opened(Leaf, memoryview(Leaf.new_message(number=4).to_bytes())).number,
    "from_segments": lambda: Kinds.from_segments(full().to_segments()).text,
    "packed round trip": lambda: Kinds.from_bytes_packed(full().to_bytes_packed()).to_dict(),
    "packed empty": lambda: Kinds.from_bytes_packed(b""),
    "multiple": lambda: [m.number for m in Leaf.read_multiple_bytes(
        Leaf.new_message(number=1).to_bytes() + Leaf.new_message(number=2).to_bytes())],
    "multiple cut": lambda: list(Leaf.read_multiple_bytes(Leaf.new_message(number=1).to_bytes()[:-1])),
    "multiple garbage": lambda: list(Leaf.read_multiple_bytes(Leaf.new_message().to_bytes() + b"  ")),
    "multiple packed": lambda: [m.number for m in Leaf.read_multiple_bytes_packed(
        Leaf.new_message(number=1).to_bytes_packed() * 2)],
    "any packed": lambda: [m.as_struct(Leaf).number for m in capnp.read_multiple_bytes_packed(
        Leaf.new_message(number=1).to_bytes_packed() * 2)],
    "file": lambda: file_probe(),
    "raw file": lambda: descriptor_probe(),
    "any": lambda: any_probe(),
    "any null": lambda: [reader.any.as_text(), reader.any.as_struct(Leaf).number],
    "orphan": lambda: orphan_probe(),
    "resizable": lambda: resizable_probe(),
    "views": lambda: [
        bytes(reader.get_data_as_view("data")).hex(), reader.get_data_as_view("data").readonly,
        message.get_data_as_view("data").readonly,
    ],
    "view of text": lambda: reader.get_data_as_view("text"),
    "view unknown": lambda: reader.get_data_as_view("nothing"),
    "group merge": lambda: (lambda m: [setattr(m, "group", {"word": "z"}), m.group.to_dict()][1])(full()),
    "struct merge": lambda: (lambda m: [setattr(m, "leaf", {"text": "z"}), m.leaf.to_dict()][1])(full()),
    "struct copy": lambda: (
        lambda m: [setattr(m, "leaf", Leaf.new_message(text="z")), m.leaf.to_dict()][1]
    )(full()),
    "wrong struct": lambda: setattr(full(), "leaf", Node.new_message()),
    "wrong element": lambda: setattr(full(), "leaves", [Node.new_message()]),
    "other parser": lambda: setattr(full(), "leaf", capnp.SchemaParser().load(DATA).Leaf.new_message()),
    "element set": lambda: (
        lambda m: [m.leaves.__setitem__(0, {"number": 8}), m.shorts.__setitem__(-1, 5), m.to_bytes().hex()][2]
    )(full()),
    "from_dict which": lambda: (lambda m: [m.from_dict({"which": 1, "i8": 2}), m.i8][1])(full()),
    "union from dict": lambda: [
        Choice.new_message(**v).to_bytes().hex() for v in (
            {"number": 3}, {"leaf": {"text": "t"}}, {"words": ["a"]}, {"pair": {"left": 1}},
            {"none": None},
        )
    ],
    "load missing": lambda: capnp.load("/nowhere.capnp"),
    "load other suffix": lambda: capnp.load(__file__),
    "same file twice": lambda: isinstance(capnp.load(DATA).Leaf.new_message(), Leaf.Builder),
    "display name": lambda: repr(capnp.SchemaParser().load(DATA, "other/name.capnp").Leaf.new_message()),
    "modules by id": lambda: (
        capnp.lib.capnp._global_schema_parser.modules_by_id[Leaf.schema.node.id].schema == Leaf.schema
    ),
    "interface": lambda: [
        kinds.Echo.schema.method_names, list(kinds.Echo.schema.methods),
        kinds.Echo.schema.methods["echo"].param_type.fieldnames,
    ],
    "init by a quotient": lambda: len(Kinds.new_message().init("shorts", 7 / 2)),
    "init too large": lambda: Kinds.new_message().init("shorts", 2**40),
    "ordered dict": lambda: [
        type(found).__name__ for found in (
            full().to_dict(ordered=True), full().to_dict(ordered=True)["leaf"],
            full().to_dict(ordered=True)["leaves"][0],
        )
    ],
    "more than 64 bits": lambda: Kinds.new_message(i64=2**64),
    "more than 64 bits in a list": lambda: Kinds.new_message(shorts=[-(2**70)]),
    "bytes as text": lambda: Kinds.new_message(text=b"\xff", texts=[b"\xfe"]).to_bytes().hex(),
    "bytes as text, read": lambda: Kinds.new_message(text=b"\xff").text,
    "from_dict of a list": lambda: Kinds.new_message().from_dict([]),
    "set_root": lambda: str(capnp._MallocMessageBuilder().set_root(Leaf.new_message(number=3))),
    "no segments": lambda: capnp._MallocMessageBuilder().get_segments_for_output(),
    "abstract builder": lambda: capnp.lib.capnp._MessageBuilder(),
    "union member by name": lambda: [
        Choice.Union.Leaf == "Leaf", Choice.Union.Leaf == "Words", Kinds.Choice.two == "two",
    ],
    "schemas again": lambda: [
        kinds.Color.schema == kinds.Color.schema, kinds.Echo.schema == kinds.Echo.schema,
        Leaf.schema is Leaf.schema,
    ],
    "orphaned text": lambda: (
        lambda root: [root.disown("text").get(), root._has("text"), root.texts.disown(0).get()]
    )((lambda root: (root.from_dict({"text": "t", "texts": ["u"]}), root)[1])(
        capnp._MallocMessageBuilder().init_root(Kinds))),
    "copied deeply": lambda: type(copy.deepcopy(message)).__name__,
    "versions": lambda: [capnp.__version__, capnp.version.LIBCAPNP_VERSION],
    "kj types": lambda: [
        capnp.KjException.Type.FAILED, capnp.KjException("x", type="DISCONNECTED").type,
    ],
}
VALUES = {
    "bool": [True, False, 1, None, "x"],
    "i8": [127, -128, 128, True, 1.0, 1.5, None, "1", float("nan")],
    "u64": [2**64 - 1, 0],
    "f32": [1, 0.1, 1e300, float("nan"), True, None, "1"],
    "f64": [2**53, -1.5, float("-inf")],
    "text": ["é☃", "a\0b", b"bytes", memoryview(b"m"), None, 5, ["a"], ""],
    "data": [b"", b"abc", "é", memoryview(b"m"), None, 5],
    "color": ["blue", 2, 77, "nothing", 70000, -1, None, 1.0, True, b"red"],
    "void": [None, 1],
    "leaf": [{"number": 1}, {}, None, 5, "x", [1], {"nothing": 1}],
    "shorts": [[1, 2], (3, 4), [], None, "ab", 5, ["x"], [1.0], [1.5], [40000], {}],
    "texts": [["a", "é"], [b"x"], [1], "ab"],
    "datas": [[b"a"], ["é"], [1]],
    "leaves": [[{"number": 1}, {}], [], [5], {}, [{"nothing": 1}]],
    "colors": [["red", "blue"], ["nothing"]],
    "bools": [[True, False], [1], []],
    "nested": [[[1, 2], []], [[]], [1]],
    "group": [{"number": 2}, {}, None, 5, {"nothing": 1}],
    "any": ["text", b"bytes", None, 5, {}, []],
}
for field, values in VALUES.items():
    for value in values:
        shown = bytes(value) if isinstance(value, memoryview) else value
        probes[f"set {field} {type(value).__name__} {shown!r}"] = setting(field, value)
        probes[f"dict {field} {type(value).__name__} {shown!r}"] = in_dict(field, value)


def file_probe():
    with tempfile.TemporaryFile() as file:
        for n in range(3):
            Leaf.new_message(number=n).write(file)
        file.seek(0)
        first = Leaf.read(file).number
        rest = [m.number for m in Leaf.read_multiple(file)]
        return [first, rest]


def descriptor_probe():
    with tempfile.TemporaryFile() as file:
        builder = capnp._MallocMessageBuilder()
        builder.init_root(Leaf).number = 6
        capnp._write_message_to_fd(file.fileno(), builder)
        file.seek(0)
        read = capnp._StreamFdMessageReader(file)
        return [read.get_root(Leaf).number, [s.hex() for s in builder.get_segments_for_output()]]


def any_probe():
    built = Kinds.new_message()
    built.any.as_struct(Leaf).number = 3
    kept = built.any.as_reader().as_struct(Leaf).number
    built.any = "text"
    text = built.any.as_text()
    built.any.set_as_text("more")
    items = built.any.init_as_list(capnp._ListSchema(capnp.types.UInt16), 2)
    items[1] = 9
    again = opened(Kinds, built.to_bytes()).any.as_list(capnp._ListSchema(capnp.types.UInt16))
    return [kept, text, list(again), opened(Kinds, written(any=Leaf.new_message(number=4))).any.as_struct(Leaf.schema).number]


def orphan_probe():
    builder = capnp._MallocMessageBuilder()
    root = builder.init_root(Kinds)
    orphan = builder.new_orphan(Leaf)
    orphan.get().number = 7
    shown = str(orphan)
    root.adopt("leaf", orphan)
    taken = root.disown("leaf")
    return [shown, taken.get().number, root._has("leaf")]


def resizable_probe():
    built = Kinds.new_message()
    items = built.init_resizable_list("leaves")
    for n in range(3):
        items.add().number = n
    count = len(items)
    items.finish()
    return [count, [leaf.number for leaf in built.leaves]]


def answer(probe):
    try:
        return json.loads(json.dumps(probe(), default=lambda v: v.hex() if isinstance(v, bytes) else str(v)))
    except Exception as error:
        kinds = (
            capnp.KjException, AttributeError, TypeError, IndexError, ValueError, OSError,
            NotImplementedError, OverflowError, UnicodeDecodeError,
        )
        found = [kind.__name__ for kind in kinds if isinstance(error, kind)]
        return {"raises": found or [type(error).__name__]}


json.dump({name: answer(probe) for name, probe in probes.items()}, sys.stdout)
