"""What a wallet signs, and what it refuses to sign."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import httpx
import pytest

from farebox import AnswerLost, AsyncFarebox, CannotPay, PaymentRefused, SandboxRefused, Wallet
from farebox._keccak import checksummed, keccak256
from farebox._wallet import challenges_of, signature_text
from server import PRICE, FakeServer, lose_answer, lose_request, say

PAYER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
OFFER: dict[str, Any] = {
    "scheme": "exact",
    "network": "eip155:8453",
    "amount": "250000",
    "asset": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    "payTo": "0xfeDcA9D4C60FA801fc7349C0E555108EF0340CaD",
    "maxTimeoutSeconds": 120,
    "extra": {"name": "Another Coin", "version": "9", "claimSecret": "a-claim-of-the-server"},
}


def as_header(value: Any) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


def terms_of(*offers: dict[str, Any]) -> dict[str, str]:
    return {"payment-required": as_header({"x402Version": 2, "accepts": list(offers), "resource": {"url": "u"}})}


class Signer:
    def __init__(self) -> None:
        self.signed: list[dict[str, Any]] = []

    def __call__(self, data: dict[str, Any]) -> str:
        self.signed.append(data)
        return "0x" + "11" * 64 + "1b"


def settled(server: FakeServer, request: httpx.Request) -> httpx.Response:
    told = {"success": True, "transaction": "0x" + "ab" * 32, "network": "eip155:8453", "payer": PAYER, "amount": "250000"}
    return httpx.Response(200, json={"success": True}, headers={"payment-response": as_header(told)})


def payment_of(request: httpx.Request) -> Any:
    return json.loads(base64.b64decode(request.headers["payment-signature"]))


@pytest.mark.parametrize("mark", ["body", "offer"])
def test_a_sandbox_is_paid_by_no_wallet_that_was_not_made_for_one_and_nothing_else_by_one_that_was(mark: str) -> None:
    marked = {**OFFER, "extra": {**OFFER["extra"], "sandbox": True}}
    terms = {**PRICE, "sandbox": True} if mark == "body" else PRICE
    sign = Signer()
    sandbox = FakeServer(settled, terms=terms, headers=terms_of(OFFER if mark == "body" else marked))
    real = FakeServer(settled, headers=terms_of(OFFER))
    for server, made_for_one, code in ((sandbox, False, "SANDBOX_REFUSED"), (real, True, "NOT_A_SANDBOX")):
        with server.client(key=None, wallet=Wallet(PAYER, sign), sandbox=made_for_one) as farebox:
            with pytest.raises(SandboxRefused) as refused:
                farebox.call("token-price")
        assert (refused.value.code, refused.value.charged, sign.signed) == (code, False, [])
    for server, made_for_one in ((sandbox, True), (real, False)):
        with server.client(key=None, wallet=Wallet(PAYER, sign), sandbox=made_for_one) as farebox:
            assert farebox.call("token-price").receipt.sandbox == made_for_one


def test_it_signs_one_transfer_of_usdc_for_the_price() -> None:
    sign, server = Signer(), FakeServer(settled, headers=terms_of(OFFER))
    with server.client(key=None, wallet=Wallet(PAYER, sign)) as farebox:
        receipt = farebox.call("token-price").receipt
    assert (receipt.rail, receipt.network, receipt.transaction, receipt.verified) == (
        "x402",
        "eip155:8453",
        "0x" + "ab" * 32,
        True,
    )
    [data] = sign.signed
    # As USDC is known here, whatever the terms call it.
    assert data["domain"] == {
        "name": "USD Coin",
        "version": "2",
        "chainId": 8453,
        "verifyingContract": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    }
    assert data["primaryType"] == "TransferWithAuthorization"
    message = data["message"]
    assert (message["from"], message["to"], message["value"]) == (PAYER, OFFER["payTo"], 250_000)
    assert message["validBefore"] == server.now_ms // 1_000 + 120
    sent = payment_of(server.paid[0])
    assert sent["accepted"] == OFFER
    assert sent["resource"] == {"url": "u"}
    assert sent["payload"]["authorization"]["nonce"] == message["nonce"]


@pytest.mark.parametrize(
    "change",
    [
        {"scheme": "upto"},
        {"network": "eip155:56"},
        {"asset": "0x0000000000000000000000000000000000000001"},
        {"asset": None},
        {"amount": "0"},
        {"amount": 250_000},
        {"amount": "-1"},
        {"amount": "1" * 16},
        {"payTo": "somebody"},
        {"maxTimeoutSeconds": 3_601},
        {"maxTimeoutSeconds": 9},
        {"maxTimeoutSeconds": True},
        {"extra": {"assetTransferMethod": "permit2"}},
        {"extra": None},
    ],
)
def test_it_signs_nothing_else(change: dict[str, Any]) -> None:
    sign, server = Signer(), FakeServer(headers=terms_of({**OFFER, **change}))
    with server.client(key=None, wallet=Wallet(PAYER, sign)) as farebox:
        with pytest.raises(CannotPay):
            farebox.call("token-price")
    assert (sign.signed, server.paid) == ([], [])


@pytest.mark.parametrize("header", ["", "@@@", "e30=", "bnVsbA==", as_header({"x402Version": 1, "accepts": [OFFER]}), "A" * 70_000])
def test_terms_that_cannot_be_read_are_not_signed(header: str) -> None:
    sign, server = Signer(), FakeServer(headers={"payment-required": header})
    with server.client(key=None, wallet=Wallet(PAYER, sign)) as farebox:
        with pytest.raises(CannotPay):
            farebox.call("token-price")
    assert sign.signed == []


def test_the_same_payment_is_sent_again_and_nothing_is_signed_anew() -> None:
    sign, server = Signer(), FakeServer(lose_answer, lose_request, settled, headers=terms_of(OFFER))
    with server.client(key=None, wallet=Wallet(PAYER, sign)) as farebox:
        farebox.call("token-price")
        assert farebox.spent_micros() == 250_000
    assert len(sign.signed) == 1
    assert len({each.headers["payment-signature"] for each in server.paid}) == 1


def test_a_refused_payment_counts_until_it_ends_and_is_bought_anew() -> None:
    refused = say(402, code="PAYMENT_REQUIRED", last_error_reason={"code": "PAYMENT_INSUFFICIENT_FUNDS", "message": "too little"})
    sign, server = Signer(), FakeServer(refused, settled, headers=terms_of(OFFER))
    with server.client(key=None, wallet=Wallet(PAYER, sign)) as farebox:
        with pytest.raises(PaymentRefused) as failed:
            farebox.call("token-price")
        assert (failed.value.code, failed.value.charged) == ("PAYMENT_INSUFFICIENT_FUNDS", False)
        # Whoever holds the signature may still have it settled.
        assert farebox.spent_micros() == 250_000
        farebox.call("token-price")
        assert farebox.spent_micros() == 500_000
    assert len(sign.signed) == 2


def test_a_lost_payment_that_is_refused_later_is_bought_anew() -> None:
    sign, server = Signer(), FakeServer(lose_request, headers=terms_of(OFFER))
    with server.client(key=None, wallet=Wallet(PAYER, sign), patience_s=0) as farebox:
        with pytest.raises(AnswerLost):
            farebox.call("token-price")
        server.turns = [say(402, last_error_reason={"code": "PAYMENT_EXPIRED"}), settled]
        farebox.call("token-price")
    assert len(sign.signed) == 2


def test_a_receipt_that_does_not_fit_is_told() -> None:
    told = {"success": True, "transaction": "0x" + "ab" * 32, "network": "eip155:1", "payer": "0x" + "00" * 20, "amount": "9"}
    lies = [{"payment-response": as_header(told)}, {"payment-response": "@@"}, {}, {"payment-response": as_header({"success": False})}]
    server = FakeServer(*(say(200, each, success=True) for each in lies), headers=terms_of(OFFER))
    with server.client(key=None, wallet=Wallet(PAYER, Signer())) as farebox:
        receipts = [farebox.call("token-price").receipt for _ in lies]
    assert [each.verified for each in receipts] == [False] * 4
    assert len(receipts[0].problems) == 3


@pytest.mark.parametrize("signature", ["", "0x", "0x" + "11" * 64, b"short", None, 7, "0x" + "zz" * 65])
def test_no_signature_is_no_payment(signature: Any) -> None:
    server = FakeServer(headers=terms_of(OFFER))
    with server.client(key=None, wallet=Wallet(PAYER, lambda _: signature)) as farebox:
        with pytest.raises(CannotPay) as failed:
            farebox.call("token-price")
        assert failed.value.code == "SIGNATURE_INVALID"
        assert farebox.spent_micros() == 0
    assert server.paid == []


def test_signatures_in_other_forms() -> None:
    assert signature_text(b"\x11" * 64 + b"\x00") == "0x" + "11" * 64 + "1b"
    assert signature_text("11" * 64 + "01") == "0x" + "11" * 64 + "1c"
    assert signature_text("0x" + "AA" * 100) == "0x" + "aa" * 100


def test_challenges_are_read_whatever_stands_around_them() -> None:
    header = 'Basic realm="x, y", Payment id="a\\"b", realm=r, method="evm", intent="charge", request="e30", Payment id="only"'
    assert challenges_of(header) == [
        {"id": 'a"b', "realm": "r", "method": "evm", "intent": "charge", "request": "e30"},
    ]
    for hostile in ("", "Payment", 'Payment id="', ",,,,", "Payment " * 1_000, "=" * 1_000, '"' * 65_537):
        assert challenges_of(hostile) == []


def test_the_hash_and_the_capitals_of_ethereum() -> None:
    assert keccak256(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert keccak256(b"hello").hex() == "1c8aff950685c2ed4bc3174f3472287b56d9517b9c948127319a09a7a36deac8"
    assert checksummed("0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed") == "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def test_wallets_that_cannot_be_used() -> None:
    for wrong in ({"address": "0x1"}, {"networks": ("eip155:5",)}, {"networks": ()}, {"pay_by": ("card",)}, {"pay_by": ()}):
        with pytest.raises(ValueError):
            Wallet(**{"address": PAYER, "sign": Signer(), **wrong})  # type: ignore[arg-type]


def test_with_asyncio_the_same_steps() -> None:
    sign, server = Signer(), FakeServer(lose_answer, settled, headers=terms_of(OFFER))

    async def sign_later(data: dict[str, Any]) -> str:
        return sign(data)

    async def sleep(seconds: float) -> None:
        server.sleep(seconds)

    async def buy() -> None:
        async with AsyncFarebox(
            "https://farebox.example",
            wallet=Wallet(PAYER, sign_later),
            transport=httpx.MockTransport(server),
            sleep=sleep,
        ) as farebox:
            assert await farebox.price("token-price") == 250_000
            answer = await farebox.call("token-price")
            assert answer.receipt.verified
            assert await farebox.receipts() == [answer.receipt]
            assert await farebox.spent_micros() == 250_000

    asyncio.run(buy())
    assert len(sign.signed) == 1
    assert PRICE["price_usd"] == 0.25


CHALLENGE = {"id": "i", "realm": "farebox.example", "method": "evm", "intent": "charge"}
REQUEST: dict[str, Any] = {
    "amount": "250000",
    "currency": OFFER["asset"],
    "recipient": OFFER["payTo"],
    "methodDetails": {"chainId": 8453, "credentialTypes": ["authorization"]},
}
SOON, LATE = "2027-01-15T08:05:00.000Z", "2027-01-15T09:30:00Z"


def challenge_of(request: Any, **change: str) -> dict[str, str]:
    parameters = {**CHALLENGE, "expires": SOON, "request": as_header(request), **change}
    return {"www-authenticate": "Payment " + ", ".join(f'{name}="{value}"' for name, value in parameters.items())}


def test_a_challenge_is_answered_by_one_authorization() -> None:
    told = {"status": "success", "method": "evm", "reference": "0x" + "cd" * 32}
    server = FakeServer(say(200, {"payment-receipt": as_header(told)}, success=True), headers=challenge_of(REQUEST))
    sign = Signer()
    with server.client(key=None, wallet=Wallet(PAYER, sign, pay_by=("mpp",))) as farebox:
        receipt = farebox.call("ping").receipt
    assert (receipt.rail, receipt.transaction, receipt.verified) == ("mpp", "0x" + "cd" * 32, True)
    message = sign.signed[0]["message"]
    assert message["nonce"] == "0x" + keccak256(b"ifarebox.example").hex()
    assert message["validBefore"] == 1_800_000_300
    assert server.paid[0].url.path == "/mpp/ping"


@pytest.mark.parametrize(
    ("request_", "challenge"),
    [
        ({**REQUEST, "currency": "0x0000000000000000000000000000000000000001"}, {}),
        ({**REQUEST, "amount": "0"}, {}),
        ({**REQUEST, "recipient": "x"}, {}),
        ({**REQUEST, "methodDetails": {"chainId": 8453}}, {}),
        ({**REQUEST, "methodDetails": {"chainId": 8453, "credentialTypes": ["hash"]}}, {}),
        ({**REQUEST, "methodDetails": {"chainId": 5, "credentialTypes": ["authorization"]}}, {}),
        (
            {
                **REQUEST,
                "methodDetails": {**REQUEST["methodDetails"], "splits": [{"amount": "1", "recipient": PAYER}]},
            },
            {},
        ),
        ({**REQUEST, "methodDetails": None}, {}),
        ([], {}),
        (REQUEST, {"expires": LATE}),
        (REQUEST, {"expires": "2027-01-15T08:00:05Z"}),
        (REQUEST, {"expires": "soon"}),
        (REQUEST, {"method": "tempo"}),
        (REQUEST, {"intent": "session"}),
    ],
)
def test_other_challenges_are_not_answered(request_: Any, challenge: dict[str, str]) -> None:
    sign, server = Signer(), FakeServer(headers=challenge_of(request_, **challenge))
    with server.client(key=None, wallet=Wallet(PAYER, sign, pay_by=("mpp",))) as farebox:
        with pytest.raises(CannotPay):
            farebox.call("ping")
    assert (sign.signed, server.paid) == ([], [])


def test_one_name_at_once_is_one_payment() -> None:
    """While the first signs, another call of the same name is bought and answered."""
    server, signer = FakeServer(settled, settled, headers=terms_of(OFFER)), Signer()

    def sign(data: dict[str, Any]) -> str:
        if len(signer.signed) == 0:
            signer(data)
            farebox.call("token-price", idempotency_key="one")
        return signer(data)

    with server.client(key=None, wallet=Wallet(PAYER, sign)) as farebox:
        farebox.call("token-price", idempotency_key="one")
        assert farebox.spent_micros() == 250_000
    assert len({each.headers["payment-signature"] for each in server.paid}) == 1
