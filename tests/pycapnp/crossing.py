"""One end of a connection, under pycapnp or the drop-in.

`crossing.py pycapnp|capnwire serve|call PATH`; the caller prints what its calls gave, as JSON.
"""

import asyncio
import json
import os
import sys

if sys.argv[1] == "capnwire":
    import capnwire.pycapnp

    capnwire.pycapnp.install()

import capnp

capnp.remove_import_hook()
HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLED = os.path.join(os.path.dirname(HERE), "..", "capnwire", "std")
calls = capnp.load(os.path.join(HERE, "data", "calls.capnp"), imports=[BUNDLED])


class Item(calls.Item.Server):
    def __init__(self, text):
        self.text = text

    async def name(self, **_):
        return self.text


class Store(calls.Store.Server):
    def __init__(self):
        self.log = []

    async def put(self, n, **_):
        self.log.append(n)

    async def count(self, **_):
        return len(self.log)

    async def open(self, _context, **_):
        held = _context.results.held
        _context.results.item = held.item = held.any = held.group.item = Item("opened")
        held.number = 3

    async def keep(self, any, **_):
        return any

    async def wait(self, **_):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.log.append("cancelled")
            raise

    async def add(self, left, right, **_):
        return left + right

    async def nameOf(self, item, **_):
        return (await item.name()).name

    async def tail_context(self, context):
        await context.tail_call(context.params.item.name_request())

    async def fail(self, text, **_):
        raise ValueError(text)


async def serve(path):
    ended = asyncio.Event()

    async def accept(stream):
        await capnp.TwoPartyServer(stream, bootstrap=Store()).on_disconnect()
        ended.set()

    server = await capnp.AsyncIoStream.create_unix_server(accept, path)
    print("ready", flush=True)
    await ended.wait()
    server.close()


async def call(path):
    stream = await capnp.AsyncIoStream.create_unix_connection(path)
    store = capnp.TwoPartyClient(stream).bootstrap().cast_as(calls.Store)
    found = [(await store.add(1, 2)).sum, (await store.add(left=4)).sum]
    for n in range(3):
        await store.put(n)
    found.append((await store.count()).n)
    promise = store.open()
    found.append((await promise.item.name()).name)
    found.append((await promise.held.group.item.name()).name)
    found.append((await promise).held.number)
    found.append((await store.nameOf(Item("of the caller"))).name)
    found.append((await store.nameOf(store.open().item)).name)
    found.append((await store.nameOf(store.open().held.item)).name)
    found.append((await store.tail(Item("by a tail call"))).name)
    kept = (await store.keep(Item("kept"))).any
    found.append((await kept.as_interface(calls.Item).name()).name)
    found.append((await store.nameOf(kept.as_interface(calls.Item))).name)
    try:
        await store.fail("on purpose")
    except capnp.KjException as error:
        found.append([error.type, "on purpose" in str(error)])
    task = asyncio.ensure_future(store.wait())
    await store.count()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        found.append("cancelled")
    found.append(sum(r.sum for r in await asyncio.gather(*[store.add(n, n) for n in range(50)])))
    print(json.dumps(found))
    stream.close()


asyncio.run(capnp.run((serve if sys.argv[2] == "serve" else call)(sys.argv[3])))
