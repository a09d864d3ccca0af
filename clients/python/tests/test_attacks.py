"""A server that lies or hangs, a store without room, and processes that die, against both clients over real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Generator

import httpx
import pytest

from farebox import (
    AnswerLost,
    AsyncFarebox,
    CallFailed,
    Farebox,
    FareboxError,
    FileStore,
    LimitReached,
    Limits,
    MemoryStore,
    PaymentRefused,
    StoreError,
)
from server import KEY, FakeServer, lose_answer, say, sell

PRICE_REPLY = b'HTTP/1.1 402 x\r\ncontent-type: application/json\r\ncontent-length: 19\r\nconnection: close\r\n\r\n{"price_usd": 0.25}'


class Wire:
    """A server of bytes: each connection gets the price, or what a test says to a request that pays."""

    def __init__(self, speak: Callable[[socket.socket, threading.Event], None]) -> None:
        self._speak = speak
        self.over = threading.Event()
        self.names: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65_536)
            lines = dict(line.split(": ", 1) for line in head.decode().split("\r\n\r\n")[0].split("\r\n")[1:])
            name = {key.lower(): text for key, text in lines.items()}.get("idempotency-key")
            try:
                if name is None:
                    connection.sendall(PRICE_REPLY)
                else:
                    self.names.append(name)
                    self._speak(connection, self.over)
            except OSError:
                pass

    def close(self) -> None:
        self.over.set()
        self._listener.close()


@contextmanager
def wire(speak: Callable[[socket.socket, threading.Event], None]) -> Generator[Wire, None, None]:
    server = Wire(speak)
    try:
        yield server
    finally:
        server.close()


def call_both(url: str, **options: Any) -> Generator[FareboxError, None, None]:
    """Makes the call with each of the two clients, and yields what each raises."""
    with Farebox(url, key=KEY, patience_s=0, **options) as farebox:
        with pytest.raises(FareboxError) as failed:
            farebox.call("ping")
        yield failed.value

    async def buy() -> None:
        async with AsyncFarebox(url, key=KEY, patience_s=0, **options) as farebox:
            await farebox.call("ping")

    with pytest.raises(FareboxError) as failed:
        asyncio.run(buy())
    yield failed.value


def drip(head: bytes, piece: bytes) -> Callable[[socket.socket, threading.Event], None]:
    def speak(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(head)
        # Each piece comes before a time-out that begins anew with it.
        while not over.wait(0.05):
            connection.sendall(piece)

    return speak


@pytest.mark.parametrize(
    "speak",
    [
        drip(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n", b" "),
        drip(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        drip(b"HTTP/1.1 200 OK\r\nx-slow: ", b"x"),
        drip(b"", b""),
    ],
)
def test_an_answer_that_comes_in_drops_ends_with_the_time_of_the_request(speak: Any) -> None:
    with wire(speak) as server:
        for failed in call_both(server.url, timeout_s=0.5):
            assert isinstance(failed, AnswerLost) and failed.charged is None


@pytest.mark.parametrize(
    "garbage",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZZ\r\n{}\r\n",
        b'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"a":',
        b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nx-long: " + b"x" * 200_000 + b"\r\n\r\n{}",
        b"not HTTP at all\r\n\r\n",
        b"",
    ],
)
def test_what_is_no_answer_of_http_is_a_lost_answer(garbage: bytes) -> None:
    with wire(lambda connection, _: connection.sendall(garbage)) as server:
        for failed in call_both(server.url):
            assert isinstance(failed, AnswerLost) and failed.charged is None


def test_of_an_answer_without_end_no_more_is_read_than_fits() -> None:
    def speak(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while not over.is_set():
            connection.sendall(b"f4240\r\n" + b" " * 1_000_000 + b"\r\n")

    with wire(speak) as server:
        for failed in call_both(server.url):
            assert "too large" in failed.message and failed.charged is None


def test_a_redirect_takes_no_key_elsewhere() -> None:
    seen: list[bytes] = []
    with wire(lambda connection, _: seen.append(b"x")) as elsewhere:
        moved = f"HTTP/1.1 307 x\r\nlocation: {elsewhere.url}/\r\ncontent-length: 0\r\n\r\n".encode()
        with wire(lambda connection, _: connection.sendall(moved)) as server:
            for failed in call_both(server.url):
                assert (failed.status, failed.charged) == (307, None)
    assert (seen, elsewhere.names) == ([], [])


@pytest.mark.parametrize(("told", "slept"), [("31536000", []), ("9" * 300, []), ("1e9", [0.25]), ("-5", [0.25]), ("٣", [0.25])])
def test_no_wait_is_longer_than_the_patience_and_none_is_cut_short(told: str, slept: list[float]) -> None:
    busy = say(503, {"retry-after": told} if told.isascii() else {}, code="BUSY", charged=False)
    server = FakeServer(busy)
    with server.client() as farebox:
        if not slept:
            with pytest.raises(CallFailed) as failed:
                farebox.call("ping")
            assert failed.value.charged is False
            assert farebox.spent_micros() == 0
        else:
            farebox.call("ping")
    assert server.slept == slept


def test_a_server_that_refuses_for_ever_is_sent_one_payment_a_call() -> None:
    refused = say(402, last_error_reason={"code": "PAYMENT_INVALID", "message": "again"})
    server = FakeServer(*[refused] * 20)
    with server.client() as farebox:
        for _ in range(3):
            with pytest.raises(PaymentRefused):
                farebox.call("ping")
    assert len(server.paid) == 3


def test_words_of_a_server_hold_nothing_that_nobody_sees() -> None:
    words = "no\x1b[2J\x9b31m\u202e\u200b\U000e0041\u2028!"
    server = FakeServer(
        say(422, {"x-request-id": "r"}, code="A\x1b[2J", message=words, charged=False, docUrl="https://a\x1b[2J", requestId=words)
    )
    with server.client() as farebox:
        with pytest.raises(CallFailed) as failed:
            farebox.call("ping")
    told = f"{failed.value}{failed.value.code}{failed.value.doc_url}{failed.value.request_id}"
    assert failed.value.message == "no[2J31m!"
    assert not set(words) & set(told) - set("no[2J31m!")


class FullStore(MemoryStore):
    """Has no room from some time on."""

    is_full = False

    def update(self, change: Callable[[str], str]) -> None:
        if self.is_full:
            raise StoreError("STORE_UNUSABLE", "no space left on device")
        super().update(change)


def test_an_answer_that_came_is_given_though_the_disk_is_full_by_then() -> None:
    store = FullStore()

    def fill(server: FakeServer, request: httpx.Request) -> httpx.Response:
        store.is_full = True
        return sell(server, request)

    server = FakeServer(fill)
    with server.client(store) as farebox:
        assert farebox.call("token-price")["price"] == 2927.865
        store.is_full = False
        assert farebox.spent_micros() == 250_000
        assert farebox.call("token-price").receipt.replayed
        assert farebox.spent_micros() == 250_000
    assert len(server.charged) == 1


def test_what_may_be_paid_is_not_called_free_for_a_store_that_is_full() -> None:
    store = FullStore()

    def lose(server: FakeServer, request: httpx.Request) -> httpx.Response:
        store.is_full = True
        return lose_answer(server, request)

    server = FakeServer(lose)
    with server.client(store) as farebox:
        with pytest.raises(AnswerLost) as lost:
            farebox.call("ping")
        assert lost.value.charged is None
        with pytest.raises(StoreError):
            farebox.call("ping")
        store.is_full = False
        farebox.call("ping")
    assert len(server.charged) == 1

    class Reads(FullStore):
        """Full once a purchase was found in it."""

        def update(self, change: Callable[[str], str]) -> None:
            super().update(change)
            self.is_full = True

    reads = Reads()
    reads._text = store._text
    server.turns = [lose_answer]
    with server.client(store, patience_s=0) as farebox:
        with pytest.raises(AnswerLost):
            farebox.call("ping")
    reads._text = store._text
    with server.client(reads) as farebox:
        with pytest.raises(StoreError) as unknown:
            farebox.call("ping")
    assert unknown.value.charged is None


@pytest.mark.parametrize("part", ["{", '{"version":1}', "[]", "null", '{"version":2}'])
def test_half_of_a_book_is_none(tmp_path: Path, part: str) -> None:
    book = tmp_path / "book"
    server = FakeServer(lose_answer)
    with server.client(FileStore(book), patience_s=0) as farebox:
        with pytest.raises(AnswerLost):
            farebox.call("ping")
    whole = book.read_text()
    parts = [part]
    for name in ("purchases", "spent", "receipts"):
        parts.append(json.dumps({**json.loads(whole), name: [1] if name != "receipts" else {}}))
    row = json.loads(whole)
    next(iter(row["purchases"].values())).pop("sends")
    for each in (*parts, json.dumps(row)):
        book.write_text(each)
        with server.client(FileStore(book)) as farebox:
            with pytest.raises(StoreError):
                farebox.call("ping")
        assert book.read_text() == each
    book.write_text(whole)
    with server.client(FileStore(book)) as farebox:
        farebox.call("ping")
    assert len(server.charged) == 1


def test_calls_at_once_pass_no_limit(tmp_path: Path) -> None:
    server = FakeServer()
    clients = [server.client(FileStore(tmp_path / "book"), limits=Limits(per_day=1_000_000)) for _ in range(2)]

    def buy(n: int) -> str:
        try:
            clients[n % 2].call("ping", {"message": str(n)})
        except LimitReached:
            return "limit"
        return "sold"

    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(buy, range(16)))
    assert (ends.count("sold"), len(server.charged)) == (4, 4)


def test_an_approval_that_fails_buys_nothing() -> None:
    def approve(_: Any) -> bool:
        raise RuntimeError("no window")

    server = FakeServer()
    with server.client(limits=Limits(per_call=0), approve=approve) as farebox:
        with pytest.raises(RuntimeError, match="no window"):
            farebox.call("ping")
        assert farebox.spent_micros() == 0
    assert server.paid == []


def test_a_clock_that_is_put_back_or_forth_gives_the_day_no_second_limit() -> None:
    server, store = FakeServer(), MemoryStore()
    noon, day = server.now_ms, 86_400_000

    def buy(ms: int) -> bool:
        server.now_ms = ms
        with server.client(store, limits=Limits(per_day=250_000)) as farebox:
            try:
                farebox.call("ping")
            except LimitReached:
                return False
            return True

    assert [buy(noon), buy(noon), buy(noon - day), buy(noon)] == [True, False, True, False]
    for n in range(1, 20):
        buy(noon + n * 400 * day)
    assert [buy(noon - day), buy(noon)] == [False, False]


PROGRAM = """
import sys
from farebox import Farebox, FileStore
with Farebox(sys.argv[1], key=sys.argv[2], store=FileStore(sys.argv[3])) as farebox:
    print(farebox.call("ping").receipt.replayed, farebox.spent_micros())
"""


@pytest.mark.skipif(os.name != "posix", reason="NOT TESTED: no SIGKILL here")
def test_a_process_that_is_killed_before_its_answer_leaves_the_purchase_to_the_next(tmp_path: Path) -> None:
    sold: list[int] = []
    running: list[subprocess.Popen[str]] = []

    def speak(connection: socket.socket, over: threading.Event) -> None:
        sold.append(1)
        if len(sold) < 3:
            running[-1].send_signal(signal.SIGKILL)
            over.wait(1)
            return
        body = b'{"success":true}'
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-credits-used: 0.25\r\ncontent-length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)

    with wire(speak) as server:
        words = [sys.executable, "-c", PROGRAM, server.url, KEY, str(tmp_path / "book")]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent / "src")}
        for _ in range(3):
            running.append(subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True))
            said, _error = running[-1].communicate()
        assert said == "False 250000\n"
        assert (len(server.names), len(set(server.names))) == (3, 1)
