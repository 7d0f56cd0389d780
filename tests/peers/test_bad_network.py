"""capnwire and its peers over a bad network: late, in pieces, spoilt, cut; and peers that die.

What must hold: a network that only delays changes nothing.  Whatever else happens ends the calls
and the connection, leaves nothing behind and disturbs no other connection.
"""

from __future__ import annotations

import asyncio
import os
import random
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

import capnwire
from capnwire.aio.runtime import runtime_of
from capnwire.errors import DecodeError, RpcError
from tests.peers import ours, proxy
from tests.peers.ours import Run, Serving, all_gone, at_rest, peer
from tests.peers.programs import (
    PATIENCE_S,
    ServerProgram,
    client_command,
    environment,
    read_outcomes,
)
from tests.peers.scenarios import LEFTOVERS, PEERS, SCENARIOS, limits_of

ROUNDS = int(os.environ.get("CAPNWIRE_ROUNDS") or 3)
GRACE_S = 0.3  # for a peer that may wait for ever for what was lost

HEAVY = ("echo_data", "big_result", "burst", "order", "stream", "relay", "client_gone")
LIGHT = tuple(name for name in SCENARIOS if name not in HEAVY)
TELLING = ("pipeline", "callback_reentrant", "forward", "late_param_drop", "embargo_resolve")

slow_peers = [
    pytest.param(name, marks=[pytest.mark.slow] if name == "pycapnp" else []) for name in PEERS
]


@asynccontextmanager
async def watched(bystander_at: str) -> AsyncIterator[None]:
    """Another connection to the same place works before and after; nothing breaks unseen."""
    broken: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(
        # A scenario cut short leaves replies that nobody awaits.
        lambda _, context: None
        if "never retrieved" in context["message"]
        else broken.append(context)
    )
    async with capnwire.connect(bystander_at) as session:
        bystander = session.bootstrap(peer.Peer)
        assert (await bystander.echoInt(1)).value == 1
        yield
        assert (await bystander.echoInt(2)).value == 2
    while runtime_of().running:
        await asyncio.sleep(0)
    assert not broken


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def limited() -> Any:
        return await asyncio.wait_for(coroutine, PATIENCE_S)

    return asyncio.run(limited())


async def attempt(scenario: str, address: str, *, grace_s: float | None = None) -> None:
    """A scenario as far as it goes; then nothing may be left."""
    async with capnwire.connect(address) as session:
        running = Run(session, address, 0)
        try:
            await asyncio.wait_for(getattr(running, scenario)(), grace_s)
        except (RpcError, DecodeError, asyncio.TimeoutError):
            pass
        except (AssertionError, AttributeError, TypeError) as error:
            # What a scenario makes of spoilt results; raised by its own lines only.
            if traceback.extract_tb(error.__traceback__)[-1].filename != ours.__file__:
                raise
    assert session.is_closed
    assert not ours.rest(session)
    await all_gone(running.alive)


async def attempt_by(
    client: str, scenario: str, address: str, *, grace_s: float = PATIENCE_S,
    started: Callable[[asyncio.subprocess.Process], None] = lambda _: None,
) -> str | None:
    """The same by a peer's client; gives why it failed, "" for a success, None if it died."""
    process = await asyncio.create_subprocess_exec(
        *client_command(client, address, [scenario]), env=environment(),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )
    started(process)
    reading = asyncio.ensure_future(process.communicate())
    await asyncio.wait([reading], timeout=grace_s)
    if not reading.done():
        process.kill()
    output, _ = await reading
    return read_outcomes(output.decode(errors="replace")).get(scenario)


# ── a network that is merely bad ────────────────────────────────────────────────────────────────

SLOWED = {"by the byte": lambda rng: proxy.bytewise, "late and in pieces": proxy.delayed}


@pytest.mark.parametrize("how", SLOWED)
@pytest.mark.parametrize("server", slow_peers)
def test_a_slow_network_changes_nothing_for_our_client(
    server: str, how: str, rng: random.Random
) -> None:
    async def main(address: str) -> None:
        for scenario in LIGHT:
            if scenario in limits_of("capnwire", server):
                continue
            shapes = {"to_server": SLOWED[how](rng), "to_client": SLOWED[how](rng)}
            async with proxy.Proxy(address, **shapes) as between:
                await ours.run_scenario(
                    scenario, between.address, leftovers=LEFTOVERS.get((server, scenario))
                )

    with ServerProgram(server, "tcp://127.0.0.1:0") as running:
        run(main(running.address))


@pytest.mark.parametrize("how", SLOWED)
@pytest.mark.parametrize("client", slow_peers)
def test_a_slow_network_changes_nothing_for_our_server(
    client: str, how: str, rng: random.Random
) -> None:
    async def main() -> None:
        serving = Serving()
        async with capnwire.serve(serving, "tcp://127.0.0.1:0") as listener:
            for scenario in LIGHT:
                if scenario in limits_of(client, "capnwire"):
                    continue
                shapes = {"to_server": SLOWED[how](rng), "to_client": SLOWED[how](rng)}
                async with proxy.Proxy(listener.addresses[0], **shapes) as between:
                    assert await attempt_by(client, scenario, between.address) == ""
                for session in listener.sessions:
                    await session.on_disconnect()
        await at_rest(serving)

    run(main())


# ── a network that spoils what passes ───────────────────────────────────────────────────────────

SPOILT: dict[str, Callable[[random.Random], proxy.Shape]] = {
    "corrupted": proxy.corrupted,
    "dropped": proxy.dropped,
    "cut": lambda rng: proxy.cut_after(rng.randrange(1, 2000)),
}


def spoilt_ways(how: str, rng: random.Random) -> dict[str, proxy.Shape]:
    """One direction or both."""
    ways = {"to_server": SPOILT[how](rng), "to_client": SPOILT[how](rng)}
    if rng.random() < 0.7:
        del ways[rng.choice(list(ways))]
    return ways


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("server", slow_peers)
def test_a_spoilt_connection_ends_without_a_trace_in_our_client(
    server: str, how: str, rng: random.Random
) -> None:
    async def main(address: str, bystander_at: str) -> None:
        async with watched(bystander_at), proxy.Proxy(address, **spoilt_ways(how, rng)) as between:
            scenario = rng.choice(LIGHT)
            await attempt(scenario, between.address, grace_s=GRACE_S)

    with ServerProgram(server, "tcp://127.0.0.1:0") as bystander:
        for _ in range(ROUNDS):
            with ServerProgram(server, "tcp://127.0.0.1:0", may_crash=True) as running:
                run(main(running.address, bystander.address))


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("client", slow_peers)
def test_a_spoilt_connection_ends_without_a_trace_in_our_server(
    client: str, how: str, rng: random.Random
) -> None:
    async def main() -> None:
        serving = Serving()
        async with capnwire.serve(serving, "tcp://127.0.0.1:0") as listener:
            (address,) = listener.addresses
            for _ in range(ROUNDS):
                async with watched(address):
                    async with proxy.Proxy(address, **spoilt_ways(how, rng)) as between:
                        await attempt_by(
                            client, rng.choice(LIGHT), between.address, grace_s=GRACE_S
                        )
                    for session in listener.sessions[1:]:
                        await session.on_disconnect()
                        assert not ours.rest(session)
        await at_rest(serving)

    run(main())


# ── a peer that dies ────────────────────────────────────────────────────────────────────────────


class Kill:
    """Kills a process once so many messages have passed, in either direction."""

    def __init__(self, after: int) -> None:
        self.left = after
        self.process: Any = None

    def __call__(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.process.kill()


@pytest.mark.parametrize("scenario", TELLING)
@pytest.mark.parametrize("server", slow_peers)
def test_a_server_killed_at_any_message_ends_our_client_s_calls(server: str, scenario: str) -> None:
    async def main(address: str, kill: Kill) -> None:
        async with proxy.Proxy(address, on_message=kill) as between:
            await attempt(scenario, between.address)

    after, passed = 0, False
    while not passed:
        after += 1
        kill = Kill(after)
        with ServerProgram(server, "tcp://127.0.0.1:0") as running:
            kill.process = running.process
            run(main(running.address, kill))
        passed = kill.left > 0
    assert after > 4


@pytest.mark.parametrize(
    ("client", "scenario"),
    [
        pytest.param(client, scenario, marks=[pytest.mark.slow] if client == "pycapnp" else [])
        for client in PEERS
        for scenario in TELLING
        if scenario not in limits_of(client, "capnwire")
    ],
)
def test_a_client_killed_at_any_message_leaves_nothing_in_our_server(
    client: str, scenario: str
) -> None:
    async def main() -> None:
        serving = Serving()
        async with capnwire.serve(serving, "tcp://127.0.0.1:0") as listener:
            (address,) = listener.addresses
            after, passed = 0, False
            while not passed:
                after += 1
                kill = Kill(after)
                async with watched(address):
                    async with proxy.Proxy(address, on_message=kill) as between:
                        await attempt_by(
                            client, scenario, between.address,
                            started=lambda process, kill=kill: setattr(kill, "process", process),
                        )
                    for session in listener.sessions[1:]:
                        await session.on_disconnect()
                        assert not ours.rest(session)
                passed = kill.left > 0
            assert after > 4
        await at_rest(serving)

    run(main())
