"""The application of the recorded conversations (data/probe.capnp), for the test loop."""

from __future__ import annotations

from typing import Any

from capnwire.errors import RemoteError
from capnwire.service.client import client_for
from capnwire.service.server import reference_to
from tests.rpc.pair import Cancelled, Reply, StepRuntime
from tests.rpc.wire import SCHEMA


class State:
    """What all Probes of one vat share."""

    def __init__(self, runtime: StepRuntime) -> None:
        self.runtime = runtime
        self.notes: list[int] = []
        self.held: Any = None
        self.gates: list[Reply] = []
        self.child: Any = None

    def open(self, mode: int) -> None:
        gates, self.gates = self.gates, []
        for gate in gates:
            if not gate.done():
                gate.set_result(mode)


class Probe(SCHEMA.Probe.Server):
    """A Probe, and no Sub."""

    def __init__(self, state: State) -> None:
        self.state = state

    def client(self) -> Any:
        return client_for(SCHEMA.Probe, reference_to(self, self.state.runtime))

    def get_child(self) -> Any:
        if self.state.child is None:
            self.state.child = Probe(self.state).client()
        return self.state.child

    def echo(self, n: int) -> int:
        self.state.notes.append(n)
        return n

    def getCap(self) -> Any:
        return self.get_child()

    def getFresh(self) -> Any:
        return Probe(self.state)

    def hold(self, cap: Any) -> None:
        self.state.held = cap

    def getHeld(self) -> Any:
        return self.state.held

    async def callHeld(self, n: int) -> int:
        if self.state.held is None:
            raise RuntimeError("nothing held")
        value: int = (await self.state.held.echo(n)).n
        return value

    async def gate(self) -> int:
        gate = self.state.runtime.future()
        self.state.gates.append(gate)
        mode: int = await gate
        return mode

    async def block(self) -> Any:
        mode = await self.gate()
        if mode == 0:
            return self.get_child()
        if mode == 1:
            return self.state.held
        if mode == 2:
            raise RuntimeError("gate broke")
        return {}

    def unblock(self, mode: int) -> None:
        self.state.open(mode)

    def fail(self, text: str) -> None:
        raise RemoteError(text)

    def getPromise(self) -> Any:
        return Probe(self.state).client().block().pipeline.cap

    def tail(self, n: int) -> Any:
        return self.state.held.echo(n)

    def nested(self) -> Any:
        return {"outer": {"inner": {"pad": "x", "cap": self.get_child()}}}

    def same(self, cap: Any) -> Any:
        return {} if cap is None else cap

    def two(self) -> Any:
        return self.get_child(), self.get_child()

    def drop(self) -> None:
        self.state.held = None

    async def push(self, n: int) -> None:
        self.state.notes.append(n)
        if n == 666:
            raise RuntimeError("bad number")
        if n == 77:
            await self.gate()

    def notes(self) -> Any:
        return self.state.notes,

    def twice(self, a: Any, b: Any) -> None: ...

    async def blockThenCap(self) -> Any:
        self.state.notes.append(1000)
        try:
            await self.gate()
        except Cancelled:
            self.state.notes.append(9999)
            raise
        return self.get_child()

    def big(self, words: int) -> bytes:
        return bytes(8 * words)
