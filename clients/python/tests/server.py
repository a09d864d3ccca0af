"""A double of a Farebox for tests without a network: takes each Idempotency-Key once, and does what a test tells it."""

from __future__ import annotations

import json
from typing import Any, Callable

import httpx

from farebox import Farebox, Limits, MemoryStore, Store

PRICE = {"success": False, "code": "PAYMENT_REQUIRED", "message": "costs 0.25 USD", "price_usd": 0.25, "requestId": "req_1"}
KEY = "fbx_live_0123456789abcdef"

Turn = Callable[["FakeServer", httpx.Request], httpx.Response]


class FakeServer:
    def __init__(self, *turns: Turn, terms: dict[str, Any] | None = None, headers: dict[str, str] | None = None) -> None:
        self.turns = list(turns)
        self.terms = PRICE if terms is None else terms
        self.headers = headers or {}
        #: Idempotency keys that were charged.
        self.charged: list[str] = []
        #: Requests that paid, in order.
        self.paid: list[httpx.Request] = []
        self.slept: list[float] = []
        self.now_ms = 1_800_000_000_000

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if not {"x-api-key", "payment-signature", "authorization"} & set(request.headers):
            return httpx.Response(402, json=self.terms, headers=self.headers)
        self.paid.append(request)
        return (self.turns.pop(0) if self.turns else sell)(self, request)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_ms += round(seconds * 1_000)

    def client(self, store: Store | None = None, **options: Any) -> Farebox:
        settings: dict[str, Any] = {"key": KEY, "limits": Limits(), "store": store or MemoryStore(), **options}
        return Farebox(
            "https://farebox.example",
            transport=httpx.MockTransport(self),
            sleep=self.sleep,
            now_ms=lambda: self.now_ms,
            **settings,
        )

    @property
    def names(self) -> list[str]:
        """The Idempotency-Key of each request that paid."""
        return [each.headers["idempotency-key"] for each in self.paid]


def sell(server: FakeServer, request: httpx.Request) -> httpx.Response:
    name = request.headers.get("idempotency-key", "")
    headers = {"x-credits-used": "0.250000", "x-call-id": f"call-{name[:8]}"}
    if name in server.charged:
        headers["idempotent-replayed"] = "true"
    else:
        server.charged.append(name)
    return httpx.Response(200, json={"success": True, "price": 2927.865}, headers=headers)


def lose_answer(server: FakeServer, request: httpx.Request) -> httpx.Response:
    sell(server, request)
    raise httpx.RemoteProtocolError("the peer closed the connection")


def lose_request(server: FakeServer, request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("nobody answers")


def say(status: int, headers: dict[str, str] | None = None, **body: Any) -> Turn:
    return lambda server, request: httpx.Response(status, content=json.dumps(body).encode(), headers=headers)
