"""Each peer's client against each peer's server: before they judge capnwire, they agree.

What two of them cannot do together stands in scenarios.py and is held to be so: a limit that is
gone fails here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.peers.programs import PATIENCE_S, ServerProgram, run_client
from tests.peers.scenarios import (
    ALONE,
    HANGS,
    LIMIT_WORDS,
    PEERS,
    RACES,
    SCENARIOS,
    Limit,
    limits_of,
)

pytestmark = pytest.mark.slow

HANG_S = 1.0  # a client that cannot succeed is given so long to do it all the same


@pytest.fixture(params=["tcp", "unix"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "tcp://127.0.0.1:0" if request.param == "tcp" else f"unix:{tmp_path}/peer"


pairs = pytest.mark.parametrize(
    ("client", "server"),
    [
        pytest.param(client, server, id=f"{client} to {server}")
        for client in PEERS
        for server in PEERS
    ],
)


@pairs
def test_peers_agree(client: str, server: str, address: str) -> None:
    cannot = limits_of(client, server)
    possible = [name for name in SCENARIOS if name not in cannot]
    with ServerProgram(server, address) as running:
        assert run_client(client, running.address, possible) == dict.fromkeys(possible, "")


@pairs
@pytest.mark.parametrize("scenario", ALONE)
def test_peers_agree_on_the_size_of_a_message_and_on_the_end(
    client: str, server: str, scenario: str, address: str
) -> None:
    with ServerProgram(server, address, limit_words=LIMIT_WORDS) as running:
        assert run_client(client, running.address, [scenario]) == {scenario: ""}


@pytest.mark.parametrize(
    ("client", "server", "scenario", "limit"),
    [
        pytest.param(client, server, scenario, limit, id=f"{client} to {server}, {scenario}")
        for client in PEERS
        for server in PEERS
        for scenario, limit in limits_of(client, server).items()
        if limit.ending != RACES
    ],
)
def test_what_peers_cannot_do_together_is_still_so(
    client: str, server: str, scenario: str, limit: Limit
) -> None:
    patience_s = HANG_S if limit.ending == HANGS else PATIENCE_S
    with ServerProgram(server, "tcp://127.0.0.1:0") as running:
        outcomes = run_client(client, running.address, [scenario], patience_s=patience_s)
    assert (limit.detail or limit.ending) in outcomes[scenario], limit.reason
