"""A blocking face of sessions, for programs without a loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from capnwire._fast import Struct
from capnwire.aio.network import connect
from capnwire.aio.runtime import Reply
from capnwire.errors import RemoteError
from capnwire.service.client import BoundMethod, Capability, Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from capnwire.aio.session import Session

__all__ = ["BlockingCapability", "BlockingReply", "BlockingSession", "connect_sync"]


class BlockingSession:
    """A session whose calls block; usable from any thread.

    It keeps one thread with a loop of its own, until `close()`: methods of objects that are given
    to the peer run there.
    """

    def __init__(self, url: str, timeout: float | None, options: dict[str, Any]) -> None:
        self._loop = asyncio.new_event_loop()
        self._timeout = timeout
        self._session: Session
        self._lock = threading.Lock()  # of `_ended`: nothing is given to the loop afterwards
        self._ended = False
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"capnwire session {url}", daemon=True
        )
        self._thread.start()
        try:
            self._session = self._wait(connect(url, timeout=timeout, **options)._connect())
        except BaseException:
            self._stop()
            raise

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._stopped.wait())
        finally:  # also when a method raised SystemExit
            with self._lock:
                self._ended = True
            self._loop.run_until_complete(self._end())
            self._loop.close()

    async def _end(self) -> None:
        if hasattr(self, "_session"):
            self._session.close()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._session.wait_closed(), 1)
        await asyncio.sleep(0)  # what was given to the loop before are tasks then
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1)
        await asyncio.sleep(0)

    def _stop(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def _wait(self, coroutine: Any, timeout: float | None = None) -> Any:
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a blocking call from the session's own thread would never end")
        with self._lock:
            if self._ended:
                coroutine.close()
                raise session_closed()
            future: Future[Any] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(timeout)
        except BaseException as error:
            future.cancel()
            if isinstance(error, CancelledError) and self._ended:
                raise session_closed() from None
            raise

    def _in_loop(self, function: Callable[[], Any]) -> Any:
        async def run() -> Any:
            return function()

        return self._wait(run())

    @property
    def peer(self) -> Any:
        """The address of the other side."""
        return self._session.peer

    @property
    def is_closed(self) -> bool:
        """Whether the connection has ended."""
        return self._ended or self._session.is_closed

    def bootstrap(self, interface: Any = None) -> BlockingCapability:
        """The object that the other side offers to everybody, seen as `interface`."""
        made = self._in_loop(lambda: self._session.bootstrap(interface))
        return BlockingCapability(self, made)

    def close(self) -> None:
        """End the connection and the thread."""
        if self._thread.is_alive():
            with suppress(RemoteError):  # its thread has ended by itself
                self._wait(self._session.__aexit__())
            self._stop()

    def __enter__(self) -> BlockingSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _seen(self, value: Any) -> Any:
        """A value as this face shows it."""
        if isinstance(value, Capability):
            return BlockingCapability(self, value)
        if isinstance(value, Pipeline):
            return BlockingPipeline(self, value)
        if isinstance(value, Struct):
            return BlockingResults(self, value)
        return value


def session_closed() -> RemoteError:
    """What every use of a session that has ended fails with."""
    return RemoteError("the session is closed", kind="DISCONNECTED")


def _inner(value: Any) -> Any:
    if isinstance(value, BlockingCapability):
        return value._capability
    if isinstance(value, BlockingResults):
        return value._struct
    return value


class BlockingCapability:
    """A capability whose methods block until the results are there.

    `capability.method.start(…)` gives a reply at once.
    """

    def __init__(self, session: BlockingSession, capability: Capability) -> None:
        self._blocking, self._capability = session, capability

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._capability, name)
        if isinstance(found, BoundMethod):
            return BlockingMethod(self._blocking, found)
        return found

    def cast_as(self, interface: Any) -> BlockingCapability:
        """The same capability seen as another interface."""
        return BlockingCapability(self._blocking, self._capability.cast_as(interface))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BlockingCapability):
            return NotImplemented
        return self._capability == other._capability

    def __hash__(self) -> int:
        return hash(self._capability)

    def __repr__(self) -> str:
        return f"<blocking {self._capability!r}>"


class BlockingMethod:
    """A method of a blocking capability."""

    def __init__(
        self, session: BlockingSession, method: BoundMethod, timeout: float | None = None
    ) -> None:
        self._blocking, self._method = session, method
        self._seconds = session._timeout if timeout is None else timeout

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.start(*args, **named).result(self._seconds)

    def with_timeout(self, seconds: float) -> BlockingMethod:
        """The same method; its calls are cancelled and raise TimeoutError after `seconds`."""
        return BlockingMethod(self._blocking, self._method, seconds)

    def start(self, *args: Any, **named: Any) -> BlockingReply:
        """Start a call; gives its reply at once."""
        given = [_inner(value) for value in args]
        named = {name: _inner(value) for name, value in named.items()}
        reply = self._blocking._in_loop(lambda: self._method(*given, **named))
        return BlockingReply(self._blocking, reply)


class BlockingReply:
    """A call that was started: `result()` waits for it, `pipeline` is there before."""

    def __init__(self, session: BlockingSession, reply: Reply) -> None:
        self._blocking, self._reply = session, reply

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the results.

        Raises:
            RemoteError: the call failed.
            TimeoutError: they were not there in time; the call is cancelled.
        """
        async def wait() -> Any:
            return await asyncio.wait_for(self._reply, timeout)

        try:
            return self._blocking._seen(self._blocking._wait(wait()))
        except asyncio.TimeoutError:
            raise TimeoutError(f"no results within {timeout} seconds") from None

    def cancel(self) -> None:
        """Cancel the call."""
        self._blocking._in_loop(self._reply.cancel)

    @property
    def pipeline(self) -> Any:
        """The results as far as they can be used before they are there."""
        return BlockingPipeline(self._blocking, self._reply.pipeline)


class BlockingPipeline:
    """Structs and capabilities in results that need not be there yet."""

    def __init__(self, session: BlockingSession, pipeline: Pipeline) -> None:
        self._blocking, self._pipeline = session, pipeline

    def __getattr__(self, name: str) -> Any:
        return self._blocking._seen(
            self._blocking._in_loop(lambda: getattr(self._pipeline, name))
        )


class BlockingResults:
    """A struct of results: capabilities in it are blocking ones."""

    def __init__(self, session: BlockingSession, struct: Struct) -> None:
        self._blocking, self._struct = session, struct

    def __getattr__(self, name: str) -> Any:
        return self._blocking._seen(getattr(self._struct, name))

    def __getitem__(self, name: str) -> Any:
        return self._blocking._seen(self._struct[name])

    def __repr__(self) -> str:
        return repr(self._struct)

    def __str__(self) -> str:
        return str(self._struct)


def connect_sync(
    url: str, *, timeout: float | None = None, **options: Any
) -> BlockingSession:
    """Connect to the vat at a url, blocking: `with capnwire.connect_sync("tcp://…") as session`.

    `timeout` is for connecting and for each call.  The session keeps one private thread with a
    loop.  The other options are those of `connect`.

    Raises:
        OSError: there is nobody at the url.
        TimeoutError: connecting took too long.
    """
    return BlockingSession(url, timeout, options)
