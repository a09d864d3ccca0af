"""What is sent, what is bought, and what is told: with a key, against a double."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from farebox import (
    AnswerLost,
    CallFailed,
    CannotPay,
    Farebox,
    FareboxError,
    FileStore,
    LimitReached,
    Limits,
    MemoryStore,
    PaymentRefused,
    Quote,
    StoreError,
)
from server import KEY, PRICE, FakeServer, lose_answer, lose_request, say, sell

ETH = {"symbol": "ETH"}


def test_a_call_brings_its_answer_and_a_receipt() -> None:
    server = FakeServer()
    with server.client() as farebox:
        answer = farebox.call("token-price", ETH)
        assert answer["price"] == 2927.865
        assert (answer.receipt.micros, answer.receipt.rail, answer.receipt.verified) == (250_000, "key", True)
        assert farebox.receipts() == [answer.receipt]
        assert farebox.spent_micros() == 250_000
    assert server.paid[0].headers["x-api-key"] == KEY


def test_each_call_is_bought_by_itself() -> None:
    server = FakeServer()
    with server.client() as farebox:
        farebox.call("token-price", ETH)
        farebox.call("token-price", ETH)
    assert len(set(server.charged)) == 2


@pytest.mark.parametrize("fault", [lose_answer, lose_request])
def test_a_lost_answer_is_asked_for_with_the_same_payment(fault: Any) -> None:
    server = FakeServer(fault, fault)
    with server.client() as farebox:
        assert farebox.call("token-price", ETH)["price"] == 2927.865
        assert farebox.spent_micros() == 250_000
    assert len(server.names) == 3 and len(set(server.names)) == 1
    assert len(server.charged) == 1


def test_a_lost_answer_is_not_bought_twice_by_the_next_process(tmp_path: Any) -> None:
    server = FakeServer(lose_answer)
    with server.client(FileStore(tmp_path / "book"), patience_s=0) as farebox:
        with pytest.raises(AnswerLost) as lost:
            farebox.call("token-price", ETH)
        assert lost.value.charged is None
    with server.client(FileStore(tmp_path / "book")) as farebox:
        # Another question is another purchase.
        farebox.call("token-price", {"symbol": "BTC"})
        assert farebox.call("token-price", ETH).receipt.replayed
        assert farebox.spent_micros() == 500_000
    assert len(server.charged) == 2
    assert (tmp_path / "book").stat().st_mode & 0o777 == 0o600


def test_the_server_says_how_long_to_wait() -> None:
    busy = say(503, {"retry-after": "7"}, code="BUSY", charged=False)
    limited = say(429, {"retry-after": "3"}, code="RATE_LIMIT_EXCEEDED", charged=None)
    server = FakeServer(busy, limited)
    with server.client() as farebox:
        farebox.call("token-price", ETH)
    assert server.slept == [7.0, 3.0]
    # The first sending did nothing: what is sent again is the same purchase all the same.
    assert len(set(server.names)) == 1


def test_the_patience_ends() -> None:
    busy = say(503, {"retry-after": "50"}, code="BUSY", message="Nothing was charged.", charged=False, requestId="req_9")
    server = FakeServer(busy, busy)
    with server.client() as farebox:
        with pytest.raises(CallFailed) as failed:
            farebox.call("token-price", ETH)
        assert farebox.spent_micros() == 0
    assert (failed.value.code, failed.value.charged, failed.value.request_id) == ("BUSY", False, "req_9")
    assert failed.value.doc_url == "https://farebox.example/x402/recipes/token-price"


def test_without_a_word_of_the_server_it_may_be_charged() -> None:
    server = FakeServer(lose_answer, say(502), say(502), lose_request)
    with server.client(patience_s=4) as farebox:
        with pytest.raises(FareboxError) as failed:
            farebox.call("token-price", ETH)
        assert failed.value.charged is None
        assert farebox.spent_micros() == 250_000
        farebox.call("token-price", ETH)
    assert len(server.charged) == 1


def test_a_no_to_one_sending_says_nothing_of_the_lost_one() -> None:
    """The first was taken and its answer lost; the second came too early for the server to know."""
    server = FakeServer(lose_answer, say(429, code="RATE_LIMIT_EXCEEDED", charged=False))
    with server.client(patience_s=1) as farebox:
        with pytest.raises(CallFailed) as failed:
            farebox.call("token-price", ETH)
        assert failed.value.charged is None
        assert farebox.call("token-price", ETH).receipt.replayed
        assert farebox.spent_micros() == 250_000
    assert len(server.charged) == 1


@pytest.mark.parametrize(
    ("status", "body", "charged"),
    [
        (400, {"code": "INVALID_REQUEST", "charged": False}, False),
        (404, {"code": "NOT_FOUND", "charged": False}, False),
        (422, {"code": "NOT_SEA", "charged": False}, False),
        (500, {"code": "SERVICE_ERROR", "charged": False}, False),
        (409, {"code": "ANSWER_EXPIRED", "charged": True}, True),
        (302, {}, None),
        (403, {}, None),
    ],
)
def test_an_error_is_told_as_it_is(status: int, body: dict[str, Any], charged: bool | None) -> None:
    server = FakeServer(say(status, **body))
    with server.client() as farebox:
        with pytest.raises(CallFailed) as failed:
            farebox.call("token-price", ETH)
        assert (failed.value.charged, failed.value.status) == (charged, status)
        assert farebox.spent_micros() == (0 if charged is False else 250_000)
    assert len(server.paid) == 1


def test_a_refused_key_costs_nothing() -> None:
    refused = say(402, last_error_reason={"code": "INSUFFICIENT_CREDITS", "message": "too little"}, code="PAYMENT_REQUIRED")
    server = FakeServer(refused)
    with server.client() as farebox:
        with pytest.raises(PaymentRefused) as failed:
            farebox.call("token-price", ETH)
        assert (failed.value.code, failed.value.charged, farebox.spent_micros()) == ("INSUFFICIENT_CREDITS", False, 0)


def test_a_name_of_the_callers_brings_the_same_answer_again() -> None:
    server = FakeServer()
    with server.client() as farebox:
        first = farebox.call("token-price", ETH, idempotency_key="order-1")
        again = farebox.call("token-price", ETH, idempotency_key="order-1")
        assert (first.receipt.replayed, again.receipt.replayed) == (False, True)
        assert farebox.spent_micros() == 250_000
    assert server.names == ["order-1", "order-1"]
    assert len(farebox.receipts()) == 1


@pytest.mark.parametrize(
    "limits",
    [Limits(per_call=249_999), Limits(per_day=249_999), Limits(per_service={"token-price": 249_999})],
)
def test_limits_hold(limits: Limits) -> None:
    server = FakeServer()
    with server.client(limits=limits) as farebox:
        with pytest.raises(LimitReached) as reached:
            farebox.call("token-price", ETH)
        assert (reached.value.code, reached.value.charged) == ("LIMIT_REACHED", False)
        assert farebox.price("token-price", ETH) == 250_000
    assert server.paid == []


def test_what_was_lost_counts_and_the_next_day_begins_anew() -> None:
    server = FakeServer(lose_answer)
    with server.client(limits=Limits(per_day=499_999), patience_s=0) as farebox:
        with pytest.raises(AnswerLost):
            farebox.call("token-price", ETH)
        with pytest.raises(LimitReached):
            farebox.call("ping")
        farebox.call("token-price", ETH)
        server.now_ms += 86_400_000
        farebox.call("ping")


def test_somebody_may_agree_to_more() -> None:
    server, asked = FakeServer(), list[Quote]()

    def approve(quote: Quote) -> bool:
        asked.append(quote)
        return quote.service == "token-price"

    with server.client(limits=Limits(per_call=0), approve=approve) as farebox:
        farebox.call("token-price", ETH)
        with pytest.raises(LimitReached) as declined:
            farebox.call("ping")
    assert [(each.micros, each.rail) for each in asked] == [(250_000, "key")] * 2
    assert declined.value.code == "DECLINED"


def test_no_word_but_true_is_a_yes() -> None:
    server = FakeServer()
    for word in ("yes", 1, None, False):
        with server.client(limits=Limits(per_call=0), approve=lambda _: word) as farebox:
            with pytest.raises(LimitReached):
                farebox.call("token-price", ETH)
    assert server.paid == []


async def _agrees(_: Quote) -> bool:
    return True


def test_a_coroutine_is_no_yes() -> None:
    server = FakeServer()
    with server.client(limits=Limits(per_call=0), approve=_agrees) as farebox:
        with pytest.raises(CannotPay):
            farebox.call("token-price", ETH)
    assert server.paid == []


def test_a_key_buys_from_whoever_gave_it_a_sandbox_or_not() -> None:
    server = FakeServer(terms={**PRICE, "sandbox": True})
    for made_for_one in (False, True):
        with server.client(sandbox=made_for_one) as farebox:
            assert farebox.call("token-price", ETH).receipt.sandbox
        with FakeServer().client(sandbox=made_for_one) as farebox:
            assert not farebox.call("token-price", ETH).receipt.sandbox


def test_more_than_the_price_is_seen() -> None:
    server = FakeServer(say(200, {"x-credits-used": "0.90"}, success=True))
    with server.client() as farebox:
        receipt = farebox.call("token-price", ETH).receipt
        assert (receipt.micros, receipt.verified, farebox.spent_micros()) == (900_000, False, 900_000)


@pytest.mark.parametrize("price", [None, "free", -1, 0.1234567, True, float("1e30"), [0.25]])
def test_a_price_that_is_none_is_not_paid(price: Any) -> None:
    server = FakeServer(terms={**PRICE, "price_usd": price})
    with server.client() as farebox:
        with pytest.raises(CannotPay):
            farebox.call("token-price", ETH)
    assert server.paid == []


@pytest.mark.parametrize("service", ["", "../keys", "a/b", "a?dryRun=1", "a#b", "x" * 101])
def test_a_name_leads_nowhere_else(service: str) -> None:
    server = FakeServer()
    with server.client() as farebox:
        with pytest.raises(CallFailed):
            farebox.call(service)


@pytest.mark.parametrize("input", [{"x": float("nan")}, {"x": object()}])
def test_an_input_that_is_no_json_is_not_sent(input: Any) -> None:
    server = FakeServer()
    with server.client() as farebox:
        with pytest.raises(CallFailed):
            farebox.call("ping", input)


def test_nothing_is_bought_while_the_store_cannot_be_used(tmp_path: Any) -> None:
    (tmp_path / "book").write_text("{")
    server = FakeServer()
    for store in (FileStore(tmp_path / "book"), FileStore(tmp_path / "book" / "below")):
        with server.client(store) as farebox:
            with pytest.raises(StoreError):
                farebox.call("ping")
    assert server.paid == []
    assert (tmp_path / "book").read_text() == "{"


def test_addresses_and_keys_that_cannot_be_used() -> None:
    for url in ("farebox.example", "ftp://farebox.example", "https://a:b@farebox.example", "https://farebox.example?x=1"):
        with pytest.raises(ValueError):
            Farebox(url, key=KEY)
    with pytest.raises(ValueError):
        Farebox("http://farebox.example", key=KEY)
    Farebox("http://127.0.0.1:8402", key=KEY).close()
    with pytest.raises(ValueError) as told:
        Farebox("https://farebox.example", key="a secret with spaces")
    assert "secret" not in str(told.value)


def test_limits_are_whole() -> None:
    for amount in (0.25, True, -1, "1"):
        with pytest.raises(ValueError):
            Limits(per_call=amount)  # type: ignore[arg-type]


def test_no_request_leaves_for_another_address() -> None:
    server = FakeServer(say(307, {"location": "https://elsewhere.example/"}))
    seen: list[str] = []

    def watch(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.host)
        return server(request)

    with Farebox("https://farebox.example", key=KEY, transport=httpx.MockTransport(watch)) as farebox:
        with pytest.raises(CallFailed):
            farebox.call("ping")
    assert set(seen) == {"farebox.example"}


def test_two_equal_calls_at_once_are_one_purchase_and_two_names_are_two() -> None:
    server = FakeServer()
    farebox = server.client()

    def inner(named: str | None) -> Any:
        def turn(_: FakeServer, request: httpx.Request) -> httpx.Response:
            farebox.call("ping", idempotency_key=named)
            return sell(server, request)

        return turn

    server.turns = [inner(None)]
    farebox.call("ping")
    assert (len(server.paid), len(server.charged), farebox.spent_micros()) == (2, 1, 250_000)
    farebox.call("ping")
    assert len(server.charged) == 2
    server.turns = [inner("one")]
    farebox.call("ping", idempotency_key="one")
    assert len(server.charged) == 3
    server.turns = [inner("three")]
    farebox.call("ping", idempotency_key="two")
    assert server.charged[3:] == ["three", "two"]
    assert farebox.spent_micros() == 1_250_000
    farebox.close()


def test_whoever_lost_the_answer_of_an_equal_call_that_was_answered_gets_it_all_the_same() -> None:
    server = FakeServer()
    farebox = server.client()

    def inner(_: FakeServer, request: httpx.Request) -> httpx.Response:
        # The other call is answered while this one waits, whose own answer is lost.
        farebox.call("ping")
        raise httpx.RemoteProtocolError("cut")

    server.turns = [inner]
    assert farebox.call("ping").receipt.replayed
    assert (len(server.paid), len(server.charged), farebox.spent_micros()) == (3, 1, 250_000)
    assert len(farebox.receipts()) == 1
    assert not farebox.call("ping").receipt.replayed
    farebox.close()


def test_a_day_has_room_for_more_names_than_are_remembered() -> None:
    server = FakeServer()
    with server.client(limits=Limits(per_day=10**12)) as farebox:
        for n in range(503):
            farebox.call("ping", idempotency_key=f"order-{n}")
        assert farebox.spent_micros() == 503 * 250_000
        assert farebox.call("ping", idempotency_key="order-502").receipt.replayed
        assert farebox.spent_micros() == 503 * 250_000


def test_an_old_purchase_counts_as_spent_on_its_day() -> None:
    server = FakeServer(lose_answer)
    store = MemoryStore()
    with server.client(store, patience_s=0) as farebox:
        with pytest.raises(AnswerLost):
            farebox.call("ping")
        server.now_ms += 25 * 3_600_000
        assert farebox.spent_micros() == 0
        farebox.call("ping")
    assert len(server.charged) == 2
