"""A loop of one's own for the core: steps are counted, nothing is timed; and two cores joined.

`StepRuntime` runs methods by hand; `Pair` joins two connections by bytes that go over only when a
test says so, whole or in pieces.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from capnwire.rpc.connection import Connection
from capnwire.service.client import client_for, pipeline_of
from capnwire.service.reference import Runtime, cancel_outcome
from capnwire.service.server import ReplyBase, reference_to


class Cancelled(BaseException):
    """What a cancelled task of the test loop gets."""


class Reply(ReplyBase):
    """The least that the core wants of a future, and that a coroutine can await."""

    def __init__(self) -> None:
        self.state = "pending"
        self.value: Any = None
        self.callbacks: list[Callable[[], None]] = []
        self._outcome: Any = None
        self._method: Any = None

    @property
    def _callbacks(self) -> list[Any] | None:
        return self.callbacks or None

    def done(self) -> bool:
        return self.state != "pending"

    def _end(self, state: str, value: Any) -> None:
        assert self.state == "pending"
        self.state, self.value = state, value
        callbacks, self.callbacks = self.callbacks, []
        for callback in callbacks:
            callback()

    def set_result(self, value: Any) -> None:
        self._end("result", value)

    def set_exception(self, error: BaseException) -> None:
        self._end("error", error)

    def result(self) -> Any:
        assert self.done(), "not there yet"
        if self.state == "result":
            return self.value
        raise self.value

    def cancel(self) -> None:
        if not self.done():
            self._end("error", Cancelled())
            if self._outcome is not None:
                cancel_outcome(self._outcome)

    @property
    def pipeline(self) -> Any:
        return pipeline_of(self._outcome, self._method)

    def __await__(self) -> Generator[Any, None, Any]:
        if not self.done():
            yield self
        return self.result()


class Task:
    """A coroutine that is stepped by the runtime."""

    def __init__(self, runtime: StepRuntime, coroutine: Any, context: Any) -> None:
        self.runtime, self.coroutine, self.context = runtime, coroutine, context
        self.cancelled = self.ended = False
        self.waits: Reply | None = None
        runtime.tasks.add(self)
        runtime.soon(self.step)

    def cancel(self) -> None:
        self.cancelled = True
        if self.waits is not None:
            self.waits.cancel()
        self.runtime.soon(self.step)

    def step(self) -> None:
        if self.ended or (self.waits is not None and not self.waits.done() and not self.cancelled):
            return
        self.context.started()
        self.waits = None
        try:
            if self.cancelled:
                self.cancelled = False
                waits = self.coroutine.throw(Cancelled())
            else:
                waits = self.coroutine.send(None)
        except StopIteration as end:
            self.end()
            self.context.complete(end.value)
        except Cancelled:
            self.end()
            self.context.abandoned()
        except Exception as error:
            self.end()
            self.context.fail(error)
        else:
            self.waits = waits
            waits.callbacks.append(lambda: self.runtime.soon(self.step))

    def end(self) -> None:
        self.ended = True
        self.runtime.tasks.discard(self)


class StepRuntime(Runtime):
    """A loop that runs only when told to."""

    def __init__(self) -> None:
        self.reply_type = Reply
        self.tasks: set[Task] = set()
        self.errors: list[BaseException] = []

    def spawn(self, coroutine: Coroutine[Any, Any, Any], context: Any) -> Task:
        return Task(self, coroutine, context)

    def report(self, error: BaseException, text: str) -> None:
        self.errors.append(error)

    def run_ready(self) -> None:
        """Run until nothing is ready any more."""
        super().run_ready()
        while self.has_ready:
            super().run_ready()

    def future(self) -> Reply:
        return Reply()


class End:
    """One end of a connection under test: what it wants to say waits in `output`."""

    def __init__(self, runtime: StepRuntime, bootstrap: Any = None, **options: Any) -> None:
        self.runtime = runtime
        self.output = bytearray()
        self.ended: BaseException | None = None
        if bootstrap is not None and not callable(bootstrap):
            bootstrap = reference_to(bootstrap)
        options.setdefault("tail_calls", True)
        self.connection = Connection(runtime, self, bootstrap=bootstrap, **options)

    def wake(self) -> None: ...

    def flush(self) -> None:
        self.take()

    def ring(self) -> None: ...

    def closed(self, error: BaseException) -> None:
        self.ended = error

    def take(self) -> bytearray:
        for chunk in self.connection.data_to_send():
            self.output += chunk
        return self.output

    def rest(self) -> bytes:
        """Run everything that is ready; gives all output and forgets it."""
        self.runtime.run_ready()
        self.take()
        self.runtime.run_ready()
        self.take()
        output, self.output = bytes(self.output), bytearray()
        return output

    def feed(self, data: bytes) -> None:
        self.connection.receive_data(data)

    def bootstrap(self, interface: Any) -> Any:
        return client_for(interface, self.connection.bootstrap())

    def tables(self) -> dict[str, Any]:
        self.take()
        tables: dict[str, Any] = self.connection.tables()
        return tables

    def is_empty(self) -> bool:
        tables = self.tables()
        return not any(tables.values())


class Pair:
    """Two ends; frames go over one by one, in the order and pieces that the test chooses."""

    def __init__(
        self, left: Any = None, right: Any = None, runtime: StepRuntime | None = None,
        **options: Any,
    ) -> None:
        self.runtime = runtime or StepRuntime()
        self.left = End(self.runtime, left, **options)
        self.right = End(self.runtime, right, **options)
        self.wires: dict[str, deque[bytes]] = {"left": deque(), "right": deque()}

    def collect(self) -> None:
        """Run what is ready and put what both ends say onto the wires, frame by frame."""
        for name, end in (("left", self.left), ("right", self.right)):
            self.wires[name].extend(frames_of(end.rest()))

    def move(self, name: str, pieces: random.Random | None = None) -> bool:
        """Deliver the next frame that the end called `name` has sent."""
        if not self.wires[name]:
            return False
        frame = self.wires[name].popleft()
        other = self.right if name == "left" else self.left
        if pieces is None:
            other.feed(frame)
        else:
            at = 0
            while at < len(frame):
                size = pieces.randrange(1, len(frame) - at + 1)
                other.feed(frame[at : at + size])
                at += size
        return True

    def settle(self) -> None:
        """Deliver until both ends are at rest."""
        self.collect()
        while self.wires["left"] or self.wires["right"]:
            self.move("left")
            self.move("right")
            self.collect()


def frames_of(data: bytes) -> list[bytes]:
    """The framed messages in a stream of them."""
    frames = []
    while data:
        count = int.from_bytes(data[:4], "little") + 1
        sizes = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "little") for i in range(count)]
        size = (count + 2) // 2 * 8 + 8 * sum(sizes)
        frames.append(data[:size])
        data = data[size:]
    return frames
