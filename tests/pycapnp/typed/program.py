"""A program in pycapnp's manner, which is only type-checked (test_types.py)."""

from __future__ import annotations

import asyncio
import io
import pickle
from typing import Any

from typing_extensions import assert_type

import capnwire.pycapnp as capnp
from capnwire.pycapnp.lib.capnp import KjException, _EnumModule, _StructModule

capnp.remove_import_hook()
schema = capnp.load("person.capnp", imports=["/usr/include"])
Person: _StructModule = schema.Person
Color: _EnumModule = schema.Color
parser = capnp.SchemaParser()
loader = capnp.SchemaLoader()


def names(data: bytes) -> list[str]:
    found: list[str] = []
    for person in Person.read_multiple_bytes(data, traversal_limit_in_words=2**63):
        try:
            if person.which() == "name" and person.which == "name":
                found.append(person.name)
        except KjException as error:
            print(error.type, error.description)
    return found


def build(count: int) -> capnp._DynamicStructBuilder:
    person = Person.new_message(name="x", friends=[{"name": "y"}])
    assert_type(person, capnp._DynamicStructBuilder)
    person.age = count
    friends: capnp._DynamicListBuilder = person.init("friends", count)
    friends[0].name = "z"
    for friend in friends:
        friend.age += 1
    assert_type(Person.from_bytes(b"", builder=True), capnp._DynamicStructBuilder)
    with Person.from_bytes(person.to_bytes(), nesting_limit=10) as reader:
        assert_type(reader, capnp._DynamicStructReader)
        age: int = reader.age
        print(age, reader.total_size.word_count, reader.to_dict(verbose=True))
        print(reader.schema.node.id, reader.schema.fields["age"].proto.name)
        print(reader.as_builder().copy().to_segments(), len(reader.friends))
    person.write(io.BytesIO())
    assert_type(Person.read(io.BytesIO()), capnp._DynamicStructReader)
    for read in Person.read_multiple_packed(io.BytesIO()):
        assert_type(read.which(), str)
    print(pickle.dumps(person), Color.red, capnp.types.UInt8, capnp._ListSchema(Person))
    message = capnp._MallocMessageBuilder()
    root = message.init_root(Person)
    orphan: capnp._DynamicOrphan = message.new_orphan(Person)
    root.adopt("friend", orphan)
    any_reader = root.any.as_reader()
    print(any_reader.as_struct(Person))
    return person


def describe(value: Any) -> str:
    if isinstance(value, capnp._DynamicStructReader):
        return value.which()
    if isinstance(value, (capnp._DynamicListReader, capnp._DynamicListBuilder)):
        return str(value[0])
    if isinstance(value, capnp.lib.capnp._DynamicEnum):
        return str(value) + str(value.raw)
    return ", ".join(value.schema.fields)


async def serve(stream: capnp.AsyncIoStream) -> None:
    await capnp.TwoPartyServer(stream, bootstrap=schema.Store.Server()).on_disconnect()


async def main() -> None:
    server = await capnp.AsyncIoStream.create_server(serve, "localhost", 0)
    stream = await capnp.AsyncIoStream.create_connection("localhost", 5)
    client = capnp.TwoPartyClient(stream, traversal_limit_in_words=2**60, nesting_limit=64)
    store = client.bootstrap().cast_as(schema.Store)
    promise = store.get(1)
    print((await promise).value, (await store.get_request(key=2).send()).value)
    reader = await Person.read_async(stream)
    if reader is not None:
        print(reader.name)
    await build(1).write_async(stream)
    server.close()
    client.close()


asyncio.run(capnp.run(main()))
print(capnp.__version__, capnp.version.LIBCAPNP_VERSION)
for message in capnp.read_multiple_bytes_packed(b""):
    print(message.as_struct(Person))
