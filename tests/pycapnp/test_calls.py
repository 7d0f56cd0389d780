"""Calls as pycapnp's programs make them: requests, promises, capabilities, the KJ loop."""

import asyncio
import gc
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

SCHEMA = str(Path(__file__).parent / "data" / "calls.capnp")


@pytest.fixture
def calls(capnp: Any) -> Any:
    """The schema by a parser of its own: no class of a client or server is there yet."""
    return capnp.SchemaParser().load(SCHEMA)


def store_of(calls: Any, log: list[Any]) -> Any:
    class Item(calls.Item.Server):  # type: ignore[name-defined, misc]
        async def name(self, **_: Any) -> str:
            return "an item"

    class Store(calls.Store.Server):  # type: ignore[name-defined, misc]
        async def put(self, n: int, **_: Any) -> None:
            await asyncio.sleep(0)
            log.append(n)
            if n < 0:
                raise ValueError("too small")

        async def count(self, **_: Any) -> int:
            return len(log)

        async def open(self, _context: Any, **_: Any) -> None:
            held = _context.results.held
            _context.results.item = held.item = held.any = held.group.item = Item()
            held.number = 3

        async def keep(self, any: Any, **_: Any) -> Any:
            log.append(type(any).__name__)
            return any

        async def wait(self, **_: Any) -> None:
            log.append("waiting")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                log.append("cancelled")
                raise

        async def deep(self, levels: int, _context: Any, **_: Any) -> None:
            chain = _context.results.init("chain")
            for _ in range(levels):
                chain = chain.init("next")

        async def add(self, left: int, right: int, **_: Any) -> int:
            return left + right

    return Store()


def connected(
    capnp: Any, calls: Any, main: Callable[..., Awaitable[Any]], *, client: Any = None,
    **options: Any,
) -> list[Any]:
    """Run `main(store)` against a store behind a socket pair; gives the store's log."""
    log: list[Any] = []

    async def run() -> None:
        left, right = socket.socketpair()
        near = await capnp.AsyncIoStream.create_connection(sock=left)
        far = await capnp.AsyncIoStream.create_connection(sock=right)
        server = capnp.TwoPartyServer(far, bootstrap=store_of(calls, log))
        party = capnp.TwoPartyClient(near, **options)
        await main(party.bootstrap().cast_as((client or calls).Store))
        del server

    asyncio.run(capnp.run(run()))
    return log


def local(capnp: Any, calls: Any, main: Callable[..., Awaitable[Any]]) -> list[Any]:
    """Run `main(store)` against a store of this process; gives the store's log."""
    log: list[Any] = []

    async def run() -> None:
        await main(calls.Store._new_client(store_of(calls, log)))

    asyncio.run(capnp.run(run()))
    return log


@pytest.mark.parametrize("run", [local, connected])
def test_a_streaming_call_ends_when_it_is_answered(capnp: Any, calls: Any, run: Any) -> None:
    async def main(store: Any) -> None:
        assert (await store.put(1)).schema.node.displayName.endswith("StreamResult")
        assert (await store.count()).n == 1
        with pytest.raises(capnp.KjException, match="too small"):
            await store.put(-1)

    assert run(capnp, calls, main) == [1, -1]


def test_a_capability_that_is_not_there_yet_is_a_client(capnp: Any, calls: Any) -> None:
    """Also when its interface was never used before."""
    other = capnp.SchemaParser().load(SCHEMA)

    async def main(store: Any) -> None:
        promise = store.open()
        item = promise.item
        assert isinstance(item, capnp._DynamicCapabilityClient)
        assert item.schema == other.Item.schema
        assert (await item.name_request().send()).name == "an item"
        for found in (promise.held.item, promise.held.group.item, promise._get("item")):
            assert (await found.name()).name == "an item"
        assert (await promise.held.any.cast_as(other.Item).name()).name == "an item"

    connected(capnp, calls, main, client=other)


def test_structs_that_are_not_there_yet_say_what_they_have(capnp: Any, calls: Any) -> None:
    async def main(store: Any) -> None:
        promise = store.open()
        assert {"item", "held"} < set(dir(promise))
        assert {"item", "any", "number", "group"} < set(dir(promise.held))
        assert promise.held.schema == calls.Held.schema
        assert promise.held._parent is promise
        with pytest.raises(capnp.KjException, match="not there yet"):
            promise.held.to_dict()
        await promise
        assert promise.held.to_dict()["number"] == 3

    connected(capnp, calls, main)


@pytest.mark.parametrize("run", [local, connected])
def test_a_field_of_any_capability_is_an_object(capnp: Any, calls: Any, run: Any) -> None:
    async def main(store: Any) -> None:
        item = (await store.open()).item
        kept = (await store.keep(item)).any
        assert isinstance(kept, capnp.lib.capnp._DynamicObjectReader)
        assert (await kept.as_interface(calls.Item).name()).name == "an item"
        again = (await store.keep(any=kept)).any
        assert (await again.as_interface(calls.Item).name()).name == "an item"
        held = calls.Held.new_message(any=kept)
        assert (await held.any.as_interface(calls.Item).name()).name == "an item"
        assert str(held.as_reader().any) == "<opaque pointer>"

    assert run(capnp, calls, main) == ["_DynamicObjectReader"] * 2


def test_capabilities_of_a_message_without_table_fail_every_call(capnp: Any, calls: Any) -> None:
    async def main(store: Any) -> None:
        data = calls.Held.new_message(item=(await store.open()).item).to_bytes()
        with calls.Held.from_bytes(data) as held, pytest.raises(capnp.KjException, match="nvalid"):
            await held.item.name()
        with pytest.raises(capnp.KjException, match="null capability"):
            await calls.Held.new_message().item.name()

    local(capnp, calls, main)


def test_a_request_is_a_builder_of_its_parameters(capnp: Any, calls: Any) -> None:
    async def main(store: Any) -> None:
        request = store.add_request(1)
        assert isinstance(request, capnp._DynamicStructBuilder)
        assert isinstance(request, capnp.lib.capnp._Request)
        assert (request.left, request.right, str(request)) == (1, 5, "(left = 1, right = 5)")
        request.right = 2
        assert (await request.send()).sum == 3
        assert request.is_consumed
        # A keyword goes before a position.
        assert (await store.add(1, left=10)).sum == 15

    local(capnp, calls, main)


@pytest.mark.parametrize("levels", [10, 100])
def test_results_may_be_as_deep_as_the_nesting_limit_says(
    capnp: Any, calls: Any, levels: int
) -> None:
    async def main(store: Any) -> None:
        chain = (await store.deep(levels)).chain
        for _ in range(levels):
            chain = chain.next
        assert not chain._has("next")

    if levels > 64:
        with pytest.raises(capnp.KjException, match="nesting"):
            connected(capnp, calls, main)
    connected(capnp, calls, main, nesting_limit=200)


@pytest.mark.parametrize("run", [local, connected])
def test_leaving_the_loop_cancels_what_runs(capnp: Any, calls: Any, run: Any) -> None:
    tasks: list[asyncio.Task[Any]] = []

    async def main(store: Any) -> None:
        async def wait() -> None:
            await store.wait()

        tasks.append(asyncio.ensure_future(wait()))
        await store.count()
        await store.count()

    assert run(capnp, calls, main) == ["waiting", "cancelled"]
    with pytest.raises(capnp.KjException):
        tasks[0].result()


def test_the_kj_loop_is_an_attribute_of_the_loop(capnp: Any) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert not hasattr(loop, "_kj_loop")
        async with capnp.kj_loop():
            assert isinstance(loop._kj_loop, capnp._EventLoop)  # type: ignore[attr-defined]
            with pytest.raises(RuntimeError, match="already running"):
                await capnp.kj_loop().__aenter__()
        assert not hasattr(loop, "_kj_loop")

    asyncio.run(main())


def test_the_end_of_a_connection_is_a_future(capnp: Any, calls: Any) -> None:
    """Whoever does not await it gets no warning."""
    async def main() -> None:
        left, right = socket.socketpair()
        near = await capnp.AsyncIoStream.create_connection(sock=left)
        far = await capnp.AsyncIoStream.create_connection(sock=right)
        server = capnp.TwoPartyServer(far, bootstrap=store_of(calls, []))
        client = capnp.TwoPartyClient(near)
        ends = [server.on_disconnect(), client.on_disconnect(), client.on_disconnect()]
        assert all(isinstance(end, asyncio.Future) and not end.done() for end in ends)
        client.close()
        assert await asyncio.gather(*ends) == [None, None, None]

    asyncio.run(capnp.run(main()))


def test_servers_are_named_after_their_interface(calls: Any) -> None:
    assert calls.Store.Server.__name__ == "Store.Server"
    assert calls.Store.Server.schema == calls.Store.schema


def test_a_party_wants_a_stream(capnp: Any) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match="AsyncIoStream"):
            capnp.TwoPartyClient()
        with pytest.raises(ValueError, match="AsyncIoStream"):
            capnp.TwoPartyClient(5)

    asyncio.run(capnp.run(main()))


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)
        gc.collect()


def test_a_stream_that_nobody_holds_is_closed(capnp: Any, calls: Any) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        near = await capnp.AsyncIoStream.create_connection(sock=left)
        far = await capnp.AsyncIoStream.create_connection(sock=right)
        del near
        assert await calls.Held.read_async(far) is None

    asyncio.run(capnp.run(main()))


def test_a_connection_lives_as_long_as_a_client_or_a_capability(capnp: Any, calls: Any) -> None:
    async def main() -> None:
        left, right = socket.socketpair()
        near = await capnp.AsyncIoStream.create_connection(sock=left)
        far = await capnp.AsyncIoStream.create_connection(sock=right)
        ended = capnp.TwoPartyServer(far, bootstrap=store_of(calls, [])).on_disconnect()
        del far
        client = capnp.TwoPartyClient(near)
        del near
        store = client.bootstrap().cast_as(calls.Store)
        del client
        await turns()
        assert (await store.add(1, 2)).sum == 3
        await turns()
        assert not ended.done()
        del store
        await turns()
        await ended

    asyncio.run(capnp.run(main()))


@pytest.mark.parametrize("fails", [False, True])
def test_a_stream_is_closed_when_its_callback_ends(
    capnp: Any, calls: Any, fails: bool
) -> None:
    kept: list[Any] = []

    async def serve(stream: Any) -> None:
        kept.append(stream)
        if fails:
            raise ValueError("in the callback")
        message = await calls.Held.read_async(stream)
        await calls.Held.new_message(number=message.number + 1).write_async(stream)

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        server = await capnp.AsyncIoStream.create_server(serve, "127.0.0.1", 0)
        stream = await capnp.AsyncIoStream.create_connection(*server.sockets[0].getsockname())
        if not fails:
            await calls.Held.new_message(number=4).write_async(stream)
            assert (await calls.Held.read_async(stream)).number == 5
        assert await calls.Held.read_async(stream) is None
        server.close()

    asyncio.run(capnp.run(main()))
    assert len(kept) == 1


def test_a_stream_may_be_closed_under_its_client(capnp: Any, calls: Any) -> None:
    async def main(store: Any, stream: Any) -> None:
        item = (await store.open()).item
        stream.close()
        del item                 # its release has nowhere to go
        await turns()
        with pytest.raises(capnp.KjException) as caught:
            await store.count()
        assert caught.value.type == "DISCONNECTED"

    async def run() -> None:
        left, right = socket.socketpair()
        near = await capnp.AsyncIoStream.create_connection(sock=left)
        far = await capnp.AsyncIoStream.create_connection(sock=right)
        ended = capnp.TwoPartyServer(far, bootstrap=store_of(calls, [])).on_disconnect()
        await main(capnp.TwoPartyClient(near).bootstrap().cast_as(calls.Store), near)
        await ended

    asyncio.run(capnp.run(run()))
