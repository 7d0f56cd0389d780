"""The asyncio loop as the core sees it: replies are futures, methods run as tasks."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from capnwire.service.client import pipeline_of, set_runtime_finder
from capnwire.service.reference import Runtime, cancel_outcome
from capnwire.service.server import ReplyBase

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["LoopRuntime", "Reply", "runtime_of"]

READ_BYTES = 256 * 1024
EAGER = sys.version_info >= (3, 12)
log = logging.getLogger("capnwire.rpc")


class Reply(asyncio.Future, ReplyBase):  # type: ignore[type-arg]
    """What a call gives: await it for the results.

    Structs and capabilities in the results can be used before, as attributes, or by
    `reply.pipeline.<field>` when a field is named like an attribute of futures.  Cancelling it
    cancels the call; dropping it does not.
    """

    __slots__ = ("_method", "_outcome")

    @property
    def pipeline(self) -> Any:
        """The results as far as they can be used before they are there."""
        return pipeline_of(self._outcome, self._method)

    def cancel(self, msg: Any = None) -> bool:
        """Cancel the call."""
        if not super().cancel(msg):
            return False
        cancel_outcome(self._outcome)
        return True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.pipeline, name)


class _Task(asyncio.Task):  # type: ignore[type-arg]
    """A method's task that always begins: cancelled before, it would end without a word."""

    running: _Running

    def cancel(self, msg: Any = None) -> bool:
        """Cancel the task, or see to it that its method does not start."""
        if self.running.context.is_started:
            return super().cancel(msg)
        self.running.unwanted = True
        return True


class _Running:
    """A method's task; cancelled before its first line, it does not start."""

    __slots__ = ("context", "task", "unwanted")

    def __init__(self, context: Any) -> None:
        self.context = context
        self.task: asyncio.Task[None] | None = None
        self.unwanted = False

    def cancel(self) -> None:
        """Cancel the task, if its method has begun."""
        if self.context.is_started and self.task is not None:
            self.task.cancel()


class LoopRuntime(Runtime):
    """One for each loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.thread = threading.get_ident()
        self.reply_type = Reply
        self.reply_options = {"loop": loop}
        self.clock = time.perf_counter_ns
        # One for all connections: of its own, each would keep it until the collector finds it.
        self.inbox = memoryview(bytearray(READ_BYTES))
        self.running: set[_Running] = set()
        self.kept: set[Any] = set()

    def wake(self) -> None:
        """Let `run_ready` run in the next turn."""
        self.schedule(self.run_ready)

    def ring(self) -> None:
        """As `wake`, from any thread."""
        self.call(self.run_ready)

    def schedule(self, function: Any) -> None:
        """Call a function in the loop, from any thread."""
        if threading.get_ident() == self.thread:
            self.loop.call_soon(function)
        else:
            self.loop.call_soon_threadsafe(function)

    def call(self, function: Any) -> None:
        """As `schedule`; not at all when the loop is closed."""
        try:
            self.schedule(function)
        except RuntimeError:
            pass

    @property
    def starts_eagerly(self) -> bool:
        """Whether coroutines run up to their first wait at once."""
        return EAGER

    def spawn(self, coroutine: Coroutine[Any, Any, Any], context: Any) -> _Running:
        """Run a method's coroutine as a task."""
        running = _Running(context)
        self.running.add(running)
        body = self._serve(coroutine, running)
        if EAGER and self.loop.is_running():
            running.task = asyncio.Task(body, loop=self.loop, eager_start=True)  # type: ignore[call-arg, unused-ignore]
        else:
            running.task = task = _Task(body, loop=self.loop)
            task.running = running
        return running

    def keep(self, task: Any) -> None:
        """Hold a task until it is done: the loop itself does not."""
        self.kept.add(task)
        task.add_done_callback(self.kept.discard)

    async def _serve(self, coroutine: Any, running: _Running) -> None:
        context = running.context
        context.started()
        try:
            if running.unwanted or context.is_cancelled:
                coroutine.close()
                context.abandoned()
                return
            value = await coroutine
        except asyncio.CancelledError:
            context.abandoned()
            raise
        except Exception as error:
            log.debug("a method raised", exc_info=error)
            context.fail(error)
        except BaseException as error:
            if not self.loop.is_closed():  # else it is the collector, which ends what was left
                context.fail(error)
            raise
        else:
            context.complete(value)
        finally:
            self.running.discard(running)
            running.task = None  # it has this, and the results would wait for the collector

    def report(self, error: BaseException, text: str) -> None:
        """Give an exception that no caller gets to the loop's handler."""
        self.loop.call_exception_handler({"message": text, "exception": error})


_runtimes: dict[asyncio.AbstractEventLoop, LoopRuntime] = {}


def runtime_of(loop: asyncio.AbstractEventLoop | None = None) -> LoopRuntime:
    """The runtime of a loop, by default the running one.

    Raises:
        RuntimeError: no loop is running.
    """
    loop = loop or asyncio.get_running_loop()
    runtime = _runtimes.get(loop)
    if runtime is None:
        # Not a weak dictionary: a runtime has its loop, which would never be dropped.
        for other in [other for other in list(_runtimes) if other.is_closed()]:
            over = _runtimes.pop(other, None)
            if over is not None:
                over.is_over = True
        runtime = _runtimes[loop] = LoopRuntime(loop)
    return runtime


set_runtime_finder(runtime_of)
