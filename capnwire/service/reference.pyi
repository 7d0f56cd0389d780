"""References, promises, calls and outcomes: the half of RPC that needs no connection."""

from collections.abc import Callable, Coroutine
from typing import Any, final

from typing_extensions import disjoint_base

from capnwire._any import AnyPointerReader

# `Any` below: replies, methods and contexts are of the session's or the schema's making.

@disjoint_base
class Runtime:
    """The loop that objects live in, as the core sees it; `aio` and the tests derive from it.

    `reply_type(**reply_options)` makes what a caller gets: something with `done`, `set_result` and
    `set_exception`, and room for `_outcome` and `_method`.  `clock()` gives nanoseconds; without
    it, the windows of streams are fixed.
    """

    reply_type: Any
    reply_options: dict[str, Any]
    stream_window: int
    stream_window_limit: int
    clock: Callable[[], int] | None
    is_over: bool
    def __new__(cls, *args: Any, **options: Any) -> Any: ...
    def soon(self, work: Callable[[], object]) -> None:
        """Let `work()` run soon, not within the caller."""

    def run_ready(self) -> None:
        """Run what is ready now; what that makes ready waits for the next time."""

    @property
    def has_ready(self) -> bool:
        """Whether something waits to be run."""

    def wake(self) -> None:
        """See to it that `run_ready()` is called soon."""

    def ring(self) -> None:
        """As `wake`, but callable from any thread and from finalisers."""

    def spawn(self, coroutine: Coroutine[Any, Any, Any], context: Any) -> Any:
        """Run a method's coroutine: `context.started()`, then `complete(value)` or `fail(error)`.

        Gives something with `cancel()`.
        """

    @property
    def starts_eagerly(self) -> bool:
        """Whether `spawn` runs the coroutine up to its first wait before it returns."""

    def report(self, error: BaseException, text: str) -> None:
        """Tell somebody about an exception that no caller gets."""

@final
class Call:
    """One call on its way."""

    @property
    def interface_id(self) -> int: ...
    @property
    def method_id(self) -> int: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def runtime(self) -> Runtime: ...

@disjoint_base
class Outcome:
    """The results of a call once they are known."""

    @property
    def results(self) -> AnyPointerReader | None: ...
    @property
    def error(self) -> BaseException | None: ...

@disjoint_base
class Reference:
    """A capability as calls see it."""

    @property
    def runtime(self) -> Runtime | None: ...

@disjoint_base
class Waiter:
    """Is told when a promise took its next step."""

@disjoint_base
class Promise(Reference):
    """A reference to what is not known yet."""

    @property
    def target(self) -> Reference | None: ...

@disjoint_base
class QueuedReference(Promise):
    """A promise of this process: calls wait in it."""

@final
class SwitchedReference(QueuedReference):
    """A place of an answer whose earlier calls wait for an embargo: later ones wait here."""

@final
class StrictSwitch(Waiter):
    """Lets calls through to a target once the embargo before them is lifted."""

    def place_dropped(self, weak: object) -> None: ...

@disjoint_base
class BrokenReference(Reference):
    """Every call on it fails alike."""

    @property
    def error(self) -> BaseException: ...
    @property
    def is_null(self) -> bool: ...

def new_promise(
    runtime: Runtime,
) -> tuple[Reference, Callable[[Reference | BaseException | None], None]]:
    """A local promise and the function that resolves it: with a reference or an exception."""

def broken_reference(error: BaseException) -> Reference:
    """A reference on which every call fails with `error`."""

def cancel_outcome(outcome: Outcome) -> None:
    """Tell the callee that nobody wants the results any more."""

def pipelined(outcome: Outcome, path: bytes) -> Reference:
    """The capability at `path` in results that need not be there yet."""

def misuse(text: str) -> BaseException:
    """An error for what a program may not do now."""

CANCELLED: str
__pyx_capi__: dict[str, object]
__test__: dict[str, str]
