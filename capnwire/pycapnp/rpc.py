"""pycapnp's RPC over capnwire's: clients, requests, promises, servers, contexts.

Everything here is a thin face; calls, references and connections are `capnwire.service`'s, `rpc`'s
and `aio`'s.  What lives as long as the loop is in `capnwire.pycapnp.streams`.
"""

from __future__ import annotations

import inspect
import traceback
from typing import TYPE_CHECKING, Any

from capnwire._info import InterfaceInfo, StructInfo
from capnwire.errors import KjException, RemoteError
from capnwire.pycapnp import _assign, objects
from capnwire.pycapnp._face import _DynamicStructReader
from capnwire.pycapnp.registry import DropInRegistry
from capnwire.pycapnp.schemas import schema_of
from capnwire.pycapnp.streams import (
    AsyncIoStream,
    _AsyncIoStream,
    _EventLoop,
    current_loop,
    kj_loop,
    open_session,
    read_async,
    run,
    write_message,
)
from capnwire.service.client import Capability, ClientMethod, client_for, reference_behind
from capnwire.service.interface import Server as NativeServer
from capnwire.service.interface import methods_of
from capnwire.service.reference import broken_reference, cancel_outcome
from capnwire.service.server import CONTEXT, ServerMethod

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator

    from capnwire.service.method import Method

__all__ = [
    "AsyncIoStream", "TwoPartyClient", "TwoPartyServer", "_AsyncIoStream", "_CallContext",
    "_CapabilityClient", "_DynamicCapabilityClient", "_DynamicCapabilityServer",
    "_DynamicStructPipeline", "_EventLoop", "_Promise", "_RemotePromise", "_Request", "_Response",
    "fill_context", "kj_loop", "new_client", "read_async", "run", "server_class",
    "void_task_done_callback", "write_message",
]

BOOTSTRAP_WORDS = 4


def _info_of(interface: Any) -> InterfaceInfo:
    info = getattr(interface, "_info", interface)
    if not isinstance(info, InterfaceInfo):
        raise TypeError(f"an interface is wanted, not {interface!r}")
    return info


# ------------------------------------------------------------------ clients


class _CapabilityClient(Capability):
    """A capability of no known interface: `cast_as(I)` gives one."""

    __slots__ = ()

    @property
    def _parent(self) -> object:
        return self._reference

    def cast_as(self, schema: Any) -> Any:
        """The same capability as a client of an interface; nothing is checked."""
        return client_for(_info_of(schema), self._reference)


class _DynamicCapabilityClient(_CapabilityClient):
    """A capability of an interface: its methods start calls and give promises."""

    __slots__ = ()

    _info: InterfaceInfo
    _methods: dict[str, Method]

    @property
    def schema(self) -> Any:
        """The schema of the interface."""
        return schema_of(self._info)

    def upcast(self, schema: Any) -> Any:
        """The same capability as a client of an interface that this one extends.

        Raises:
            KjException: it does not extend it.
        """
        info = _info_of(schema)
        if info.node.id not in type(self)._capnwire_interfaces:  # type: ignore[attr-defined]
            raise KjException(f"Can't upcast to non-superclass: {self._info.name} to {info.name}")
        return self.cast_as(schema)

    def _request(self, name: str, *args: Any, **kwargs: Any) -> _Request:
        method = self._methods.get(name)
        if method is None:
            raise AttributeError(f"interface {self._info.name} has no method {name!r}")
        current_loop()
        bound = ClientMethod(method).__get__(self, type(self))
        return _Request(bound.request(), method, args, kwargs)

    def _send(self, name: str, *args: Any, **kwargs: Any) -> _RemotePromise:
        return self._request(name, *args, **kwargs).send()

    def __getattr__(self, name: str) -> Any:
        methods = self._methods
        if name in methods:
            return lambda *args, **kwargs: self._send(name, *args, **kwargs)
        if name.endswith("_request") and name[:-8] in methods:
            return lambda *args, **kwargs: self._request(name[:-8], *args, **kwargs)
        raise AttributeError(f"'{self._info.name}' client has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._methods})


def _client_type(info: InterfaceInfo) -> type:
    table = methods_of(info, with_streams=False)
    methods: dict[str, Method] = {}
    for own in table.values():
        for method in own:
            methods.setdefault(method.name, method)
    body = {
        "__slots__": (), "_info": info, "_methods": methods,
        "_capnwire_interfaces": frozenset(table), "__module__": "capnp.lib.capnp",
    }
    return type("_DynamicCapabilityClient", (_DynamicCapabilityClient,), body)


_ANY = InterfaceInfo("any", None)
"""Stands for the interface of a capability whose interface is not known."""
_ANY.client = _CapabilityClient


def _wrap(value: Any, info: Any) -> Any:
    """A capability from a message as a client; one that leads nowhere fails every call."""
    if not isinstance(value, Capability):
        error = "Called null capability." if value is None else "Invalid capability pointer."
        reference = broken_reference(RemoteError(error))
    elif isinstance(value, _CapabilityClient):
        return value
    else:
        reference = value._reference
    return client_for(info if isinstance(info, InterfaceInfo) else _ANY, reference)


def _capability_of(value: Any, info: Any) -> Any:
    """What is stored for a client or a server.

    Raises:
        KjException: it is neither, or of another interface.
    """
    if isinstance(value, Capability) or hasattr(type(value), "_capnwire_methods"):
        known = getattr(type(value), "_capnwire_interfaces", None)
        if isinstance(info, InterfaceInfo) and known is not None and info.node.id not in known:
            raise KjException(f"Value type mismatch: {value!r} is no {info.name}")
        return reference_behind(value)
    raise KjException(
        f"Value type mismatch: a capability is wanted, not {type(value).__name__} {value!r}"
    )


DropInRegistry.client_maker = staticmethod(_client_type)
objects.set_capability_wrapper(_wrap)
_assign.set_capability_source(_capability_of)


# ------------------------------------------------------------------ calls


class _Request:
    """A call that has not been sent: its parameters are attributes, `send()` starts it.

    For `isinstance` it is a builder of the parameters too.
    """

    __slots__ = ("_call", "_method", "_params")

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._params)

    def __init__(self, call: Any, method: Method, args: Any, kwargs: dict[str, Any]) -> None:
        object.__setattr__(self, "_call", call)
        object.__setattr__(self, "_method", method)
        object.__setattr__(self, "_params", call.params)
        if args:
            names = method.parameter_names
            if method.named_params:
                raise KjException("Cannot call method with positional arguments: its parameters "
                                  "are a struct of their own")
            if len(args) > len(names):
                raise KjException(f"{method.name}() takes {len(names)} arguments, not {len(args)}")
            for name, value in zip(names, args, strict=False):
                self._params._set(name, value)
        if kwargs:
            self._params.from_dict(kwargs)

    @property
    def is_consumed(self) -> bool:
        """Whether it was sent."""
        return self._call is None

    def send(self) -> _RemotePromise:
        """Start the call.

        Raises:
            KjException: it was sent before.
        """
        call = self._call
        if call is None:
            raise KjException("Request has already been sent. You can only send a request once.")
        current_loop()
        object.__setattr__(self, "_call", None)
        return _RemotePromise(call.send(), self._method)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._params, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._params, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*dir(self._params), "send"})

    def __str__(self) -> str:
        return str(self._params)

    def __repr__(self) -> str:
        return repr(self._params)


class _ResponseMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _DynamicStructReader)


class _Response(metaclass=_ResponseMeta):
    """The results of a call: a struct reader, which keeps its message by itself."""


class _Promise:
    """The ancestor of promises, kept for its name."""

    __slots__ = ()


class _DynamicStructPipeline:
    """A struct in results that are not there yet: structs and capabilities in it are attributes."""

    __slots__ = ("_info", "_name", "_parent", "_pipeline")

    def __init__(self, parent: Any, name: str, pipeline: Any, info: StructInfo) -> None:
        self._parent, self._name = parent, name
        self._pipeline, self._info = pipeline, info

    @property
    def schema(self) -> Any:
        """The schema of the struct."""
        return schema_of(self._info)

    def to_dict(self, verbose: bool = False, ordered: bool = False) -> dict[str, Any]:
        """The struct, once the results are there."""
        result: dict[str, Any] = self._result().to_dict(verbose, ordered)
        return result

    def _result(self) -> Any:
        return self._parent._result()._get(self._name)

    def _get(self, name: str) -> Any:
        return _pipelined(self, name, self._pipeline, self._info)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._get(name)

    def __dir__(self) -> list[str]:
        self._info.ensure()
        return sorted({*super().__dir__(), *self._info.by_name})


def _pipelined(parent: Any, name: str, pipeline: Any, info: StructInfo) -> Any:
    """A field of results that are not there yet; an AnyPointer can only be a capability."""
    found = pipeline[name]
    if isinstance(found, Capability):
        return _wrap(found, None)
    sub = info.field(name)[1]
    if sub is None:
        return found.cast_as(_ANY)
    return _DynamicStructPipeline(parent, name, found, sub)


class _RemotePromise(_Promise):
    """What a call gives: await it once; capabilities in the results can be used before.

    Dropping a promise of which nothing was used cancels the call.
    """

    __slots__ = ("__weakref__", "_kept", "_loop", "_method", "_reply", "_used")

    def __init__(self, reply: Any, method: Any) -> None:
        self._reply, self._method = reply, method
        self._used = self._kept = False
        self._loop = current_loop()
        self._loop.promises.add(self)

    def __await__(self) -> Generator[Any, None, Any]:
        current_loop()
        if self._used:
            raise KjException("Promise was already used in a consuming operation. You can no "
                              "longer use this Promise object")
        self._used = True
        return (yield from self._reply.__await__())

    def cancel(self) -> None:
        """Cancel the call; the promise cannot be awaited any more."""
        self._used = True
        self._reply.cancel()

    @property
    def schema(self) -> Any:
        """The schema of the results."""
        return schema_of(self._method.results)

    def to_dict(self, verbose: bool = False, ordered: bool = False) -> dict[str, Any]:
        """The results, once they are there."""
        result: dict[str, Any] = self._result().to_dict(verbose, ordered)
        return result

    def _result(self) -> Any:
        if not self._reply.done():
            raise KjException("the results are not there yet: await the promise")
        return self._reply.result()

    def _get(self, name: str) -> Any:
        current_loop()
        self._kept = True
        return _pipelined(self, name, self._reply.pipeline, self._method.results)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._get(name)

    def __dir__(self) -> list[str]:
        self._method.results.ensure()
        return sorted({*super().__dir__(), *self._method.results.by_name})

    def break_off(self) -> None:
        """The loop has ended: the call is cancelled, and whoever awaits it gets an exception."""
        if not self._reply.done():
            self._reply.set_exception(
                KjException("the KJ event-loop was left before this call was answered")
            )
            self._reply.exception()
            cancel_outcome(self._reply._outcome)

    def __del__(self) -> None:
        if not self._used and not self._kept:
            try:
                self._reply.cancel()
            except RuntimeError:
                pass


# ------------------------------------------------------------------ servers


class _CallContext:
    """One running call, as a server method sees it."""

    __slots__ = ("_context", "_tail")

    def __init__(self, context: Any) -> None:
        self._context = context
        self._tail: Any = None

    @property
    def params(self) -> Any:
        """The parameters."""
        return self._context.params

    @property
    def results(self) -> Any:
        """A builder of the results."""
        return self._context.results

    def _get_results(self) -> Any:
        return self._context.results

    def release_params(self) -> None:
        """Drop the parameters early."""
        self._context.release_params()

    def tail_call(self, tailRequest: _Request) -> _TailCall:
        """Answer this call with the results of another; await what it gives."""
        self._tail = tailRequest.send()
        self._tail._used = True
        return _TailCall()


class _TailCall:
    """What `tail_call` gives: awaiting it costs nothing."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


class _DynamicCapabilityServer(NativeServer):
    """What implements interfaces: `class Impl(I.Server)` with `async def method(self, a, b, **kw)`.

    Or `async def method_context(self, context)` with `context.params` and `context.results`.
    """

    __slots__ = ("__dict__",)

    @classmethod
    def _capnwire_method(cls, method: Method) -> ServerMethod:
        name = method.name

        async def serve(server: Any, context: Any) -> Any:
            return await _serve(server, name, method, context)

        return ServerMethod(
            method, serve, bound=False, asynchronous=True, positional=(CONTEXT,)
        )


async def _serve(server: Any, name: str, method: Method, native: Any) -> Any:
    context = _CallContext(native)
    try:
        whole = getattr(server, f"{name}_context", None)
        if whole is not None:
            value = await _coroutine(whole(context), server, name)
        else:
            function = getattr(server, name, None)
            if function is None:
                raise AttributeError(f"{type(server).__name__} has no method {name!r}")
            params = context.params
            given = {field: params._get(field) for field in method.parameter_names}
            value = await _coroutine(function(_context=context, **given), server, name)
        if context._tail is not None:
            return context._tail._reply
        if value is not None:
            fill_context(method, native, value)
    except KjException as error:
        if isinstance(error, RemoteError):
            raise
        raise RemoteError(_described(error), kind=error.type) from error
    except Exception as error:
        raise RemoteError(_described(error)) from error
    return None


def _coroutine(value: Any, server: Any, name: str) -> Coroutine[Any, Any, Any]:
    if not inspect.isawaitable(value):
        raise KjException(
            f"Server function ({name}) is not a coroutine: {type(server).__name__}"
        )
    return value  # type: ignore[return-value]


def _described(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def fill_context(method: Any, context: Any, value: Any) -> None:
    """Store what a server method returned: a value, or a tuple of values by their order.

    Raises:
        KjException: there are more values than results.
    """
    names = method.result_names
    values = value if isinstance(value, tuple) else (value,)
    if len(values) > len(names):
        raise KjException(
            f"Too many values returned from `{method.name}`. Expected {len(names)} and got "
            f"{len(values)}"
        )
    results = context.results
    for name, item in zip(names, values, strict=False):
        results._set(name, item)


def void_task_done_callback(*_: object) -> None:
    """Kept for its name."""


def server_class(module: Any) -> type:
    """`I.Server`: the class that servers of an interface derive from."""
    info = _info_of(module)
    if info.server is None:
        interfaces = frozenset(methods_of(info))

        class Server(_DynamicCapabilityServer):
            __doc__ = f"What implements {info.name} derives from this."
            _info = info
            _capnwire_interfaces = interfaces

        Server.__name__ = Server.__qualname__ = f"{info.name}.Server"
        Server.schema = module.schema  # type: ignore[attr-defined]
        info.server = Server
    made: type = info.server
    return made


def new_client(module: Any, server: Any) -> Any:
    """`I._new_client(server)`: a client of an object of this process."""
    current_loop()
    info = _info_of(module)
    if not isinstance(server, _DynamicCapabilityServer):
        raise TypeError(f"an instance of a server class is wanted, not {type(server).__name__}")
    table = type(server)._capnwire_methods()
    for id, methods in methods_of(info).items():
        # A server may be served as an interface that its class does not derive from.
        if id not in table:
            table[id] = tuple(server._capnwire_method(method) for method in methods)
    return client_for(info, reference_behind(server))


# ------------------------------------------------------------------ two parties


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < BOOTSTRAP_WORDS:
        raise KjException(
            f"a message of {BOOTSTRAP_WORDS} words is larger than traversal_limit_in_words, {limit}"
        )


class _Party:
    """One end of a connection between two parties."""

    _name = ""

    def __init__(
        self, stream: _AsyncIoStream, bootstrap: Any, limit: int | None, nesting: int | None
    ) -> None:
        self._limit = limit
        self._stream = stream
        self._session: Any = open_session(stream, bootstrap, limit, nesting)

    def _open(self) -> Any:
        if self._session is None or self._session.is_left:
            raise RuntimeError(f"This {self._name} is closed")
        return self._session

    def bootstrap(self) -> _CapabilityClient:
        """The object that the other side offers to everybody.

        Raises:
            RuntimeError: this end was closed.
        """
        session = self._open()
        _check_limit(self._limit)
        return client_for(_ANY, session.bootstrap()._reference)  # type: ignore[no-any-return]

    def on_disconnect(self) -> Any:
        """Await it to wait until the connection has ended.

        Raises:
            RuntimeError: this end was closed.
        """
        return self._open().disconnected()

    def close(self) -> None:
        """End the connection."""
        session, self._session = self._session, None
        if session is not None:
            session.close()


class TwoPartyClient(_Party):
    """The end of a connection that calls: `bootstrap()` gives the other side's object."""

    _name = "client"

    def __init__(
        self, socket: Any = None, traversal_limit_in_words: int | None = None,
        nesting_limit: int | None = None,
    ) -> None:
        super().__init__(socket, None, traversal_limit_in_words, nesting_limit)


class TwoPartyServer(_Party):
    """The end of a connection that serves `bootstrap`."""

    _name = "server"

    def __init__(
        self, socket: Any = None, bootstrap: Any = None,
        traversal_limit_in_words: int | None = None, nesting_limit: int | None = None,
    ) -> None:
        if bootstrap is None:
            raise KjException("You must provide a bootstrap interface to a server constructor.")
        super().__init__(socket, bootstrap, traversal_limit_in_words, nesting_limit)
