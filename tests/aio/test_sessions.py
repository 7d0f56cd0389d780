"""What programs do with sessions, over memory unless a transport is the point."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest

import capnwire
from capnwire.errors import EncodeTypeError, RemoteError
from tests.aio.service import SCHEMA, Calculator, Counter, Double, Loud, Sink, run


class Held:
    """A pair in memory whose left side serves a Calculator."""

    def __init__(self, served: Any = None, **options: Any) -> None:
        self.served = served if served is not None else Calculator()
        self.server, self.client = capnwire.memory_pair(self.served, None, **options)
        self.calculator = self.client.bootstrap(SCHEMA.Calculator)

    def tables(self) -> list[dict[str, Any]]:
        return [side.connection.tables() for side in (self.server, self.client)]

    async def at_rest(self) -> None:
        """Let everything under way arrive."""
        for _ in range(6):
            await asyncio.sleep(0)


def test_a_call_takes_arguments_by_position_and_by_name() -> None:
    async def main() -> None:
        calculator = Held().calculator
        assert (await calculator.add(1, 2)).value == 3
        assert (await calculator.add(left=40, right=2)).value == 42
        assert (await calculator.add(40, right=3)).value == 43
        assert (await calculator.divide(7)).quotient == 7, "the schema's default"

    run(main())


@pytest.mark.parametrize(
    ("args", "named", "text"),
    [
        ((1, 2, 3), {}, "takes 2 arguments, not 3"),
        ((1,), {"left": 2}, "got 'left' twice"),
        ((), {"lefft": 2}, "unexpected argument 'lefft'"),
    ],
)
def test_a_call_with_wrong_arguments_raises_at_once(
    args: tuple[int, ...], named: dict[str, int], text: str
) -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match=text):
            Held().calculator.add(*args, **named)

    run(main())


def test_an_unknown_method_is_an_attribute_error() -> None:
    async def main() -> None:
        with pytest.raises(AttributeError):
            _ = Held().calculator.subtract

    run(main())


def test_results_are_a_dict_a_tuple_a_value_a_struct_or_built_in_place() -> None:
    async def main() -> None:
        calculator = Held().calculator
        assert (await calculator.divide(17, 5)).to_dict() == {"quotient": 3, "rest": 2}
        counter = (await calculator.counter(5)).counter
        assert (await counter.next()).value == 6
        stamped = await calculator.stamp(text="a", number=1)
        assert stamped.to_dict() == {"text": "a!", "number": 2}
        assert (await calculator.stamp(SCHEMA.Stamp.new_message(text="b"))).text == "b!"
        assert (await calculator.stamp({"text": "c"})).text == "c!"
        outer = (await calculator.nested()).outer
        assert outer.inner.name == "x"
        assert (await outer.inner.counter.next()).value == 51

    run(main())


def test_results_of_another_shape_fail_the_call() -> None:
    class Wrong(SCHEMA.Calculator.Server):
        def divide(self, left: int, right: int) -> Any:
            return left if right == 1 else (1, 2, 3)

        def add(self, left: int, right: int) -> Any:
            return "three"

    async def main() -> None:
        calculator = Held(Wrong()).calculator
        for right in (1, 2):
            with pytest.raises(RemoteError, match="divide has 2 results") as caught:
                await calculator.divide(1, right)
            assert caught.value.kind == "FAILED"
        with pytest.raises(RemoteError):
            await calculator.add(1, 2)

    run(main())


def test_capabilities_in_results_can_be_used_before_they_are_there() -> None:
    async def main() -> None:
        calculator = Held().calculator
        assert (await calculator.counter(1).counter.child().counter.next()).value == 102
        assert (await calculator.nested().outer.inner.counter.next()).value == 51
        reply = calculator.wait()
        first = reply.pipeline.result.next()
        with pytest.raises(AttributeError):
            _ = reply.nothing
        with pytest.raises(AttributeError, match="neither a struct nor a capability"):
            _ = calculator.nested().outer.inner.name
        held = Held()
        reply = held.calculator.wait()
        first = reply.pipeline.result.next()
        await held.at_rest()
        held.served.gate.set()
        assert (await first).value == 1001

    run(main())


def test_a_client_s_object_is_called_back() -> None:
    async def main() -> None:
        calculator = Held().calculator
        double = Double()
        assert (await calculator.apply(double, 3)).value == 8
        assert double.seen == [1, 2, 4]

    run(main())


def test_own_objects_that_come_home_are_recognised() -> None:
    async def main() -> None:
        held = Held()
        mine = Counter()
        home = (await held.calculator.same(mine)).object
        assert capnwire.local_object(home) is mine
        assert home == (await held.calculator.same(mine)).object
        theirs = (await held.calculator.counter(1)).counter
        assert capnwire.local_object(theirs) is None
        assert capnwire.local_object(None) is None
        again = (await held.calculator.same(theirs)).object
        assert again == theirs

    run(main())


def test_capabilities_are_hashable_once_they_are_known() -> None:
    async def main() -> None:
        held = Held()
        mine = Counter()
        reply = held.calculator.same(mine)
        with pytest.raises(TypeError, match="is a promise"):
            hash(reply.object)
        first, second = (await reply).object, (await held.calculator.same(mine)).object
        assert len({first, second}) == 1

    run(main())


def test_null_capabilities_are_none() -> None:
    async def main() -> None:
        assert (await Held().calculator.same(None)).object is None

    run(main())


def test_only_an_object_of_the_interface_is_taken() -> None:
    async def main() -> None:
        with pytest.raises(EncodeTypeError, match="Operation is wanted"):
            Held().calculator.apply(Counter(), 1)
        with pytest.raises(EncodeTypeError, match="a capability or an instance"):
            Held().calculator.apply("text", 1)

    run(main())


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        ("", "FAILED"), ("NotImplementedError", "UNIMPLEMENTED"), ("OVERLOADED", "OVERLOADED"),
        ("DISCONNECTED", "DISCONNECTED"), ("FAILED", "FAILED"),
    ],
)
def test_what_a_method_raises_arrives_as_kind_and_message(raised: str, kind: str) -> None:
    async def main() -> None:
        held = Held()
        with pytest.raises(RemoteError) as caught:
            await held.calculator.fail(raised, "no luck")
        assert caught.value.kind == kind
        assert str(caught.value) == "remote exception: no luck"
        assert caught.value.trace == "", "tracebacks stay home"
        assert not held.client.is_closed

    run(main())


def test_a_method_that_is_not_served_is_unimplemented() -> None:
    async def main() -> None:
        held = Held()
        with pytest.raises(RemoteError) as caught:
            await held.calculator.unserved()
        assert caught.value.kind == "UNIMPLEMENTED"
        stranger = held.calculator.cast_as(SCHEMA.Counter)
        with pytest.raises(RemoteError) as caught:
            await stranger.next()
        assert caught.value.kind == "UNIMPLEMENTED"

    run(main())


def test_methods_of_all_ancestors_are_called() -> None:
    async def main() -> None:
        held = Held(Loud())
        loud = held.client.bootstrap(SCHEMA.LoudCounter)
        assert (await loud.next()).value == 7
        assert (await loud.name()).name == "loud"
        assert (await loud.shout()).text == "HEY"
        assert (await loud.cast_as(SCHEMA.Named).name()).name == "loud"

    run(main())


def test_calls_on_an_object_start_in_order_plain_and_async_alike() -> None:
    async def main() -> None:
        held = Held()
        calls = []
        for number in range(30):
            tag = str(number)
            if number % 3 == 0:
                calls.append(held.calculator.later(tag))
            else:
                calls.append(held.calculator.order(tag, number % 3 == 1))
        await asyncio.gather(*calls)
        assert held.served.log == [str(number) for number in range(30)]

    run(main())


def test_cancelling_a_call_cancels_the_method() -> None:
    async def main() -> None:
        held = Held()
        task = asyncio.ensure_future(wait_for(held.calculator.wait()))
        await held.served.started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await held.served.cancelled.wait()
        await held.at_rest()
        assert [tables["questions"] + tables["answers"] for tables in held.tables()] == [[], []]

    async def wait_for(reply: Any) -> Any:
        return await reply

    run(main())


def test_a_call_cancelled_at_once_does_not_start_or_is_cancelled() -> None:
    async def main() -> None:
        held = Held()
        reply = held.calculator.wait()
        reply.cancel()
        await held.at_rest()
        # Where tasks start eagerly (3.12), it has reached its first wait by then.
        assert held.served.cancelled.is_set() == held.served.started.is_set()
        assert (await held.calculator.add(1, 1)).value == 2

    run(main())


def test_a_timeout_cancels_the_call() -> None:
    async def main() -> None:
        held = Held()
        reply = held.calculator.wait()
        await held.served.started.wait()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(reply, 0.01)
        await held.served.cancelled.wait()

    run(main())


def test_a_dropped_reply_lets_the_call_run() -> None:
    async def main() -> None:
        held = Held()
        held.calculator.order("x", False)
        gc.collect()
        await held.calculator.add(1, 1)
        assert held.served.log == ["x"]

    run(main())


def test_dropped_capabilities_are_released() -> None:
    async def main() -> None:
        held = Held()
        counter = (await held.calculator.counter(1)).counter
        await held.at_rest()
        assert len(held.tables()[0]["exports"]) == 2
        del counter
        await held.at_rest()
        assert len(held.tables()[0]["exports"]) == 1

    run(main())


def test_capabilities_dropped_in_another_thread_are_released() -> None:
    async def main() -> None:
        held = Held()
        box = [(await held.calculator.counter(1)).counter]
        thread = threading.Thread(target=box.clear)
        thread.start()
        thread.join()
        await held.at_rest()
        assert len(held.tables()[0]["exports"]) == 1

    run(main())


def test_capabilities_in_garbage_cycles_are_released() -> None:
    async def main() -> None:
        held = Held()
        cycle: list[Any] = [(await held.calculator.counter(1)).counter]
        cycle.append(cycle)
        del cycle
        gc.collect()
        await held.at_rest()
        assert len(held.tables()[0]["exports"]) == 1

    run(main())


def test_lists_of_capabilities_go_both_ways() -> None:
    async def main() -> None:
        held = Held()
        counters = [Counter(10), Counter(20)]
        results = await held.calculator.list(counters)
        assert results.total == 32
        assert [capnwire.local_object(item) for item in results.counters] == counters

    run(main())


def test_any_pointers_carry_capabilities_and_structs() -> None:
    async def main() -> None:
        held = Held()
        mine = Counter(3)
        found = (await held.calculator.any(mine)).value
        assert (await found.as_interface(SCHEMA.Counter).next()).value == 4
        stamp = SCHEMA.Stamp.new_message(text="in any")
        found = (await held.calculator.any(stamp)).value
        assert found.as_struct(SCHEMA.Stamp).text == "in any"

    run(main())


def test_returning_an_unawaited_reply_is_a_tail_call() -> None:
    class Forwarder(SCHEMA.Calculator.Server):
        def __init__(self, target: Any) -> None:
            self.target = target

        def add(self, left: int, right: int) -> Any:
            return self.target.add(left, right)

        async def counter(self, start: int) -> Any:
            return self.target.counter(start)

    async def main() -> None:
        behind = Held()
        front = Held(Forwarder(behind.calculator))
        assert (await front.calculator.add(1, 2)).value == 3
        assert (await front.calculator.counter(5).counter.next()).value == 6

    run(main())


def test_a_tail_call_to_the_caller_s_own_object_stays_there() -> None:
    class Back(SCHEMA.Calculator.Server):
        def apply(self, operation: Any, times: int) -> Any:
            return operation.run(times)

    async def main() -> None:
        held = Held(Back())
        assert (await held.calculator.apply(Double(), 21)).value == 42

    run(main())


def test_both_sides_offer_an_object() -> None:
    async def main() -> None:
        left, right = capnwire.memory_pair(Calculator(), Counter(1))
        assert (await left.bootstrap(SCHEMA.Counter).next()).value == 2
        assert (await right.bootstrap(SCHEMA.Calculator).add(1, 1)).value == 2

    run(main())


def test_a_vat_that_offers_nothing_says_so() -> None:
    async def main() -> None:
        left, _ = capnwire.memory_pair(None, None)
        with pytest.raises(RemoteError, match="does not expose any public/bootstrap"):
            await left.bootstrap(SCHEMA.Counter).next()

    run(main())


def test_a_disconnect_fails_what_is_under_way_and_all_later_calls() -> None:
    async def main() -> None:
        held = Held()
        seen: list[Any] = []
        held.client.add_disconnect_callback(seen.append)
        reply = held.calculator.wait()
        await held.served.started.wait()
        held.server.close()
        with pytest.raises(RemoteError) as caught:
            await reply
        assert caught.value.kind == "DISCONNECTED"
        with pytest.raises(RemoteError) as caught:
            await held.calculator.add(1, 2)
        assert caught.value.kind == "DISCONNECTED"
        assert "disconnected" in str(await held.client.on_disconnect())
        await held.served.cancelled.wait()
        await held.at_rest()
        assert len(seen) == 1
        assert not any(any(tables.values()) for tables in held.tables())
        with pytest.raises(RemoteError):
            held.client.bootstrap(SCHEMA.Calculator)

    run(main())


def test_an_abort_tells_the_other_side_why() -> None:
    async def main() -> None:
        held = Held()
        await held.calculator.add(1, 1)
        held.server.abort("enough")
        assert "enough" in str(await held.client.on_disconnect())

    run(main())


def test_draining_answers_what_runs_and_refuses_the_rest() -> None:
    async def main() -> None:
        held = Held()
        running = held.calculator.wait()
        await held.served.started.wait()
        drained = asyncio.ensure_future(held.server.drain())
        await held.at_rest()
        with pytest.raises(RemoteError, match="shutting down"):
            await held.calculator.add(1, 1)
        assert not drained.done()
        held.served.gate.set()
        assert (await running).result is not None
        assert await drained is True

    run(main())


def test_draining_gives_up_after_its_timeout() -> None:
    async def main() -> None:
        held = Held()
        held.calculator.wait()
        await held.served.started.wait()
        assert await held.server.drain(0.01) is False

    run(main())


def test_calls_beyond_the_limit_are_overloaded() -> None:
    async def main() -> None:
        held = Held(call_limit=2)
        first, second = held.calculator.wait(), held.calculator.wait()
        with pytest.raises(RemoteError) as caught:
            await held.calculator.add(1, 1)
        assert caught.value.kind == "OVERLOADED"
        assert "call limit" in str(caught.value)
        held.served.gate.set()
        await asyncio.gather(first, second)
        assert (await held.calculator.add(1, 1)).value == 2

    run(main())


def test_bytes_beyond_the_limit_are_overloaded() -> None:
    async def main() -> None:
        held = Held(byte_limit=1000)
        waiting = held.calculator.wait()
        with pytest.raises(RemoteError, match="byte limit"):
            await held.calculator.blob(bytes(2000))
        held.served.gate.set()
        await waiting
        assert len((await held.calculator.blob(bytes(2000))).data) == 2000

    run(main())


def test_a_message_beyond_the_limit_is_refused_before_it_is_sent() -> None:
    async def main() -> None:
        held = Held(message_words=1000)
        assert len((await held.calculator.blob(bytes(7000))).data) == 7000
        with pytest.raises(RemoteError, match="message has at most 1000"):
            await held.calculator.blob(bytes(8000))
        assert not held.client.is_closed

    run(main())


def test_a_message_beyond_the_peer_s_limit_aborts_and_says_which() -> None:
    async def main() -> None:
        held = Held()
        await held.calculator.add(1, 1)
        small, big = capnwire.memory_pair(Calculator(), None, message_words=10_000)
        held.client._pipe.other.session = small
        small.attach(held.client._pipe.other)
        reply = held.calculator.blob(bytes(100_000))
        with pytest.raises(RemoteError, match="limit"):
            await reply
        big.close()

    run(main())


def test_streaming_calls_complete_while_the_window_has_room() -> None:
    async def main() -> None:
        sink = Sink()
        sink.gate = asyncio.Event()
        held = Held(sink)
        client = held.client.bootstrap(SCHEMA.Sink)
        replies = [client.write(bytes(10_000)) for _ in range(12)]
        done = [reply.done() for reply in replies]
        assert done[:6] == [True] * 6
        assert not any(done[-3:])
        sink.gate.set()
        await asyncio.gather(*replies)
        results = await client.done()
        assert (results.bytes, results.most) == (120_000, 1), "one at a time, in order"

    run(main())


def test_an_error_of_one_streaming_call_fails_the_later_ones() -> None:
    async def main() -> None:
        client = Held(Sink()).client.bootstrap(SCHEMA.Sink)
        await client.write(b"good")
        await client.write(b"bad")
        with pytest.raises(RemoteError) as caught:
            await client.done()
        assert caught.value.kind == "OVERLOADED"
        with pytest.raises(RemoteError) as caught:
            await client.write(b"good")
        assert caught.value.kind == "OVERLOADED"

    run(main())


def test_a_request_can_be_filled_before_it_is_sent() -> None:
    async def main() -> None:
        request = Held().calculator.stamp.request(number=1)
        request.params.text = "filled"
        assert (await request.send()).text == "filled!"
        with pytest.raises(capnwire.LocalProtocolError):
            request.send()

    run(main())


def test_local_objects_are_called_without_a_connection() -> None:
    from capnwire.service.client import client_for, reference_behind

    async def main() -> None:
        calculator = client_for(SCHEMA.Calculator, reference_behind(Calculator()))
        reply = calculator.add(1, 2)
        assert not reply.done(), "later, never within the call"
        assert (await reply).value == 3
        assert (await calculator.counter(1).counter.next()).value == 2

    run(main())


def test_objects_that_call_one_another_leave_the_loop_its_turns() -> None:
    from capnwire.service.client import client_for, reference_behind

    class Turning(SCHEMA.Operation.Server):
        other: Any = None

        def run(self, value: int) -> int:
            if self.other is not None:
                self.other.run(value)
            return value

    async def main() -> None:
        one, two = Turning(), Turning()
        clients = [client_for(SCHEMA.Operation, reference_behind(item)) for item in (one, two)]
        one.other, two.other = clients[1], clients[0]
        assert (await clients[0].run(1)).value == 1
        for _ in range(5):
            await asyncio.sleep(0)
        one.other = two.other = None

    run(main())


def test_many_sessions_and_loops_live_in_one_process() -> None:
    results: list[int] = []

    async def main() -> None:
        pairs = [Held() for _ in range(20)]
        for value in await asyncio.gather(*(pair.calculator.add(1, 1) for pair in pairs)):
            results.append(value.value)

    threads = [threading.Thread(target=lambda: run(main())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [2] * 80


def test_a_server_class_with_a_wrong_parameter_is_refused_when_it_is_made() -> None:
    with pytest.raises(TypeError, match="'lefft', which is no parameter"):

        class Wrong(SCHEMA.Calculator.Server):
            def add(self, lefft: int, right: int) -> int:
                return 0


def test_ten_thousand_calls_in_flight_leave_nothing_behind() -> None:
    async def main() -> None:
        held = Held(call_limit=20_000)
        replies = [held.calculator.wait() for _ in range(10_000)]
        await held.served.started.wait()
        held.served.gate.set()
        await asyncio.gather(*replies)
        del replies
        await held.at_rest()
        tables = held.tables()
        assert [len(table["questions"]) + len(table["answers"]) for table in tables] == [0, 0]
        assert len(tables[0]["exports"]) == 1

    run(main())
