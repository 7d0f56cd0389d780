"""Streaming calls against a window, over a path whose rate and delay are known.

The clock is moved by hand: what takes time is computed, nothing is waited for.
"""

from __future__ import annotations

import heapq
import random
from itertools import pairwise
from typing import Any

import pytest

import capnwire
from capnwire.errors import RemoteError
from capnwire.service.client import stream_bytes_in_flight, stream_window
from tests.rpc.pair import Pair, Reply, StepRuntime, frames_of

SCHEMA = capnwire.load_text("""@0xf10e0f10e0f10e01;
interface Sink { write @0 (data :Data) -> stream; }
""")

MS = 1_000_000
S = 1000 * MS
SIZE = 10_000  # bytes of data in a call
CALL = SIZE + 15 * 8  # Call and Payload 13 words, parameters 1, a landing pad for the data
LEAST, MOST = 0x10000, 0x400000


class Sink(SCHEMA.Sink.Server):
    def __init__(self) -> None:
        self.taken = 0

    def write(self, data: bytes) -> None:
        if data == b"bad":
            raise RemoteError("full", kind="OVERLOADED")
        self.taken += len(data)


class Path:
    """Two vats on a path that takes `rate` bytes a nanosecond and `delay` nanoseconds each way."""

    def __init__(self, *, rate: float = 0.01, delay: int = 25 * MS, clock: bool = True) -> None:
        self.now = 0
        self.rate, self.delay = rate, delay
        self.sink = Sink()
        runtime = StepRuntime()
        runtime.clock = (lambda: self.now) if clock else None
        self.pair = Pair(self.sink, runtime=runtime)
        self.under_way: list[tuple[int, int, Any, bytes]] = []
        self.free = {self.pair.left: 0, self.pair.right: 0}
        self.count = 0
        self.client = self.pair.right.bootstrap(SCHEMA.Sink)
        self.last: Reply | None = None
        self.most_in_flight = 0
        self.windows: list[int] = []
        self.collect()
        while self.under_way:
            self.step()

    def collect(self) -> None:
        for sender, receiver in (
            (self.pair.left, self.pair.right), (self.pair.right, self.pair.left)
        ):
            for frame in frames_of(sender.rest()):
                start = max(self.free[sender], self.now)
                self.free[sender] = start + round(len(frame) / self.rate)
                self.count += 1
                arrival = self.free[sender] + self.delay
                heapq.heappush(self.under_way, (arrival, self.count, receiver, frame))

    def step(self) -> None:
        """Let the next message arrive, and what comes at the same time."""
        self.now = self.under_way[0][0]
        while self.under_way and self.under_way[0][0] == self.now:
            _, _, receiver, frame = heapq.heappop(self.under_way)
            receiver.feed(frame)
        self.collect()

    def write(self, size: int = SIZE) -> Reply:
        self.last = self.client.write(bytes(size))
        self.most_in_flight = max(self.most_in_flight, stream_bytes_in_flight(self.client))
        window = stream_window(self.client)
        if self.windows[-1:] != [window]:
            self.windows.append(window)
        self.collect()
        return self.last

    @property
    def most_window(self) -> int:
        return max(self.windows)

    def stream(self, duration: int, rng: random.Random | None = None) -> float:
        """Write whenever the window has room; gives the bytes taken in a nanosecond."""
        until, before = self.now + duration, self.sink.taken
        while self.now < until:
            while self.last is None or self.last.done():
                window = stream_window(self.client) or LEAST
                self.write(rng.randrange(SIZE) if rng else SIZE)
                assert stream_bytes_in_flight(self.client) < window + 2 * CALL
            self.step()
        return (self.sink.taken - before) / duration

    def rest(self) -> None:
        """Let everything arrive."""
        while self.under_way:
            self.step()


def test_without_a_clock_the_window_stays_as_it_is() -> None:
    path = Path(clock=False)
    rate = path.stream(2 * S)
    assert path.most_window == stream_window(path.client) == LEAST
    # The eighth call is sent with 70 840 bytes in flight, less than 65 536 and a call.
    assert path.most_in_flight == 8 * CALL
    assert rate == pytest.approx(8 * SIZE / (51 * MS), rel=0.03), "eight calls a round trip"


def test_the_window_becomes_twice_what_the_path_holds() -> None:
    path = Path()
    path.stream(2 * S)
    # One call alone takes 1 ms to be sent and 50 to be answered; 10 bytes a microsecond.
    assert stream_window(path.client) == pytest.approx(2 * 0.01 * 51 * MS, rel=0.02)
    assert path.stream(1 * S) == pytest.approx(0.01 * SIZE / CALL, rel=0.01), "the path is full"


def test_the_window_doubles_from_one_answer_to_the_next() -> None:
    path = Path(rate=10.0)
    path.stream(1 * S)
    # From the least to 64 times as much, less what the calls at both ends of a round make of it.
    assert path.windows[0] == LEAST
    assert path.windows[-1] == MOST
    assert len(path.windows) == 7
    factors = [after / before for before, after in pairwise(path.windows)]
    assert all(1.9 < factor < 2.7 for factor in factors[:-1]), path.windows


def test_the_window_grows_where_all_that_is_in_flight_is_answered_in_one_go() -> None:
    path = Path(rate=1e6)
    path.stream(1 * S)
    assert path.windows[0] == LEAST
    assert stream_window(path.client) == MOST


def test_the_window_ends_at_its_limit() -> None:
    path = Path(rate=10.0)  # holds 500 MB
    path.stream(2 * S)
    assert stream_window(path.client) == MOST
    assert path.most_in_flight < MOST + 2 * CALL
    assert path.stream(1 * S) == pytest.approx(MOST / (50 * MS), rel=0.05)


def test_a_path_that_holds_little_leaves_the_window_at_its_least() -> None:
    path = Path(delay=10_000)
    assert path.stream(1 * S) == pytest.approx(0.01 * SIZE / CALL, rel=0.01)
    assert path.most_window == LEAST


def test_the_window_does_not_take_its_own_queue_for_a_longer_path() -> None:
    path = Path()
    path.stream(2 * S)
    settled = stream_window(path.client)
    rate = path.stream(25 * S)
    assert path.most_window <= settled * 1.1
    assert rate > 0.97 * 0.01, "a look at the path now and then costs little"


def test_the_window_follows_a_path_that_becomes_slower() -> None:
    path = Path()
    path.stream(2 * S)
    path.rate = 0.002
    path.stream(20 * S)
    # One call takes 5 ms and 50; then the queue is let run empty, with `LEAST` in flight.
    assert stream_window(path.client) < 2 * 0.002 * 100 * MS
    assert path.stream(2 * S) == pytest.approx(0.002 * SIZE / CALL, rel=0.02)


def test_the_window_follows_a_path_that_becomes_longer() -> None:
    path = Path(delay=5 * MS)
    path.stream(2 * S)
    assert stream_window(path.client) == pytest.approx(2 * 0.01 * 11 * MS, rel=0.05)
    path.delay = 50 * MS
    path.stream(15 * S)
    assert stream_window(path.client) == pytest.approx(2 * 0.01 * 101 * MS, rel=0.1)


def test_a_caller_that_writes_little_does_not_narrow_the_window() -> None:
    path = Path()
    path.stream(2 * S)
    path.rest()
    before = stream_window(path.client)
    for _ in range(100):
        path.write()
        path.rest()
    assert path.now < 10 * S
    assert stream_window(path.client) == pytest.approx(before, rel=0.05)


def test_a_caller_that_never_waits_gains_nothing() -> None:
    path = Path()
    replies = [path.write() for _ in range(1000)]
    assert sum(reply.done() for reply in replies) == 7
    path.rest()
    assert all(reply.done() for reply in replies)
    assert stream_window(path.client) <= 2 * 0.01 * 51 * MS * 1.02


def test_in_flight_is_never_more_than_the_window_and_a_call(rng: random.Random) -> None:
    for _ in range(5):
        path = Path(rate=10 ** rng.uniform(-4, 1), delay=round(10 ** rng.uniform(3, 8)))
        path.stream(20 * path.delay + 10 * MS, rng)
        assert path.most_window <= MOST
        assert path.most_in_flight < path.most_window + 2 * CALL
        path.rest()
        assert stream_bytes_in_flight(path.client) == 0


def test_a_window_that_was_set_is_fixed_or_between_its_limits() -> None:
    path = Path()
    capnwire.set_stream_window(path.client, 100_000)
    path.stream(2 * S)
    assert path.most_window == stream_window(path.client) == 100_000
    capnwire.set_stream_window(path.client, 100_000, 300_000)
    path.stream(2 * S)
    assert path.most_window == stream_window(path.client) == 300_000
    capnwire.set_stream_window(path.client, 50_000)
    assert stream_window(path.client) == 50_000


def test_a_wider_window_ends_what_waits_for_it() -> None:
    path = Path()
    replies = [path.write() for _ in range(20)]
    assert not replies[-1].done()
    capnwire.set_stream_window(path.client, 1 << 20)
    assert replies[-1].done()


def test_an_error_ends_what_waits_and_fails_what_follows() -> None:
    path = Path()
    path.client.write(b"bad")
    replies = [path.write() for _ in range(20)]
    assert not replies[-1].done()
    path.rest()
    for reply in (replies[-1], path.write()):
        with pytest.raises(RemoteError, match="full") as caught:
            reply.result()
        assert caught.value.kind == "OVERLOADED"
    path.rest()
    assert stream_bytes_in_flight(path.client) == 0
