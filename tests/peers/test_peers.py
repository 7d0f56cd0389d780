"""capnwire against other implementations: every scenario, both roles, TCP and Unix sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

import capnwire
from tests.peers.ours import Serving, at_rest, run_scenario
from tests.peers.programs import (
    PATIENCE_S,
    ServerProgram,
    client_command,
    environment,
    read_outcomes,
)
from tests.peers.scenarios import ALONE, LEFTOVERS, LIMIT_WORDS, PEERS, SCENARIOS, limits_of

KINDS = ("tcp", pytest.param("unix", marks=pytest.mark.slow))  # the sanitizers see TCP alone


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(coroutine, PATIENCE_S)

    asyncio.run(limited())


def address_of(kind: str, folder: Path) -> str:
    return "tcp://127.0.0.1:0" if kind == "tcp" else f"unix:{folder}/peer"


@pytest.fixture(scope="module")
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """A peer's name and the address of its server."""
    server, kind = request.param
    with ServerProgram(server, address_of(kind, tmp_path_factory.mktemp("peer"))) as running:
        yield server, running.address


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize(
    "served",
    [
        *(pytest.param((name, "tcp"), id=f"{name}, tcp") for name in PEERS),
        *(
            pytest.param((name, "unix"), id=f"{name}, unix", marks=pytest.mark.slow)
            for name in PEERS
        ),
    ],
    indirect=True,
)
def test_we_use_what_a_peer_serves(served: tuple[str, str], scenario: str) -> None:
    server, address = served
    coroutine = run_scenario(scenario, address, leftovers=LEFTOVERS.get((server, scenario)))
    limit = limits_of("capnwire", server).get(scenario)
    if limit is None:
        run(coroutine)
    else:
        with pytest.raises(AssertionError, match=limit.detail):
            run(coroutine)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scenario", ALONE)
@pytest.mark.parametrize("server", PEERS)
def test_we_agree_with_a_server_on_the_size_of_a_message_and_on_the_end(
    server: str, scenario: str, kind: str, tmp_path: Path
) -> None:
    place = address_of(kind, tmp_path)
    with ServerProgram(server, place, limit_words=LIMIT_WORDS) as running:
        run(run_scenario(scenario, running.address, limit_words=LIMIT_WORDS))


async def serve_client(client: str, scenario: str, place: str) -> None:
    """Serve a peer's client one scenario, and be empty afterwards."""
    limits = {"message_words": LIMIT_WORDS} if scenario == "size_limit" else {}
    listeners: list[Any] = []
    serving = Serving(quit=lambda: [session.close() for session in listeners[0].sessions])
    async with capnwire.serve(serving, place, **limits) as listener:
        listeners.append(listener)
        process = await asyncio.create_subprocess_exec(
            *client_command(client, listener.addresses[0], [scenario]),
            stdout=asyncio.subprocess.PIPE, env=environment(),
        )
        output, _ = await process.communicate()
        assert (read_outcomes(output.decode()), process.returncode) == ({scenario: ""}, 0)
        for session in listener.sessions:
            await session.on_disconnect()
    await at_rest(serving)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("client", "scenario"),
    [
        pytest.param(client, scenario, id=f"{client}, {scenario}")
        for client in PEERS
        for scenario in (*SCENARIOS, *ALONE)
        if scenario not in limits_of(client, "capnwire")
    ],
)
def test_a_peer_uses_what_we_serve(
    client: str, scenario: str, kind: str, tmp_path: Path
) -> None:
    run(serve_client(client, scenario, address_of(kind, tmp_path)))
