"""Buys one call: asks the price, keeps to the limits, pays, and gets the answer.

Neither waits nor talks: it is a generator that asks for each step, and the two clients carry the steps out, one with threads and one
with asyncio. One request has one payment until it is answered, whatever is lost on the way: a server takes a payment once, and
answers it again for nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Awaitable, Callable, Generator, Mapping, TypeVar, Union

from ._answer import Answer, Receipt, problems_of_mpp, problems_of_x402
from ._book import Book, Purchase
from ._errors import (
    AnswerLost,
    CallFailed,
    CannotPay,
    FareboxError,
    LimitReached,
    PaymentRefused,
    SandboxRefused,
    StoreError,
)
from ._json import as_object, read_base64_object, shown
from ._limits import Limits, Quote
from ._money import in_usd, micros_of
from ._wallet import (
    Transfer,
    Wallet,
    mpp_transfer,
    payment_headers,
    signature_text,
    typed_data,
    x402_transfer,
)

#: Why there is no answer, when a request took longer than it may.
TOO_LATE = "it took too long"
#: The longest answer that is read.
MOST_ANSWER_BYTES = 64_000_000
_MOST_PAYMENT_CHARACTERS = 65_536
_MOST_ROUNDS = 3
_PAUSES_S = (0.25, 1.0, 2.5, 5.0)
_SERVICE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_NAME = re.compile(r"[\x21-\x7e]{1,255}")
_CODE = re.compile(r"[A-Z][A-Z0-9_]{1,60}")
#: Statuses after which the same request may have another end.
_PATIENCE = (408, 425, 429, 500, 502, 503, 504)

T = TypeVar("T")


@dataclass(frozen=True)
class Send:
    """A request to be sent. Its step returns a ``Reply``, or raises ``Unheard``."""

    method: str
    path: str
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True)
class Reply:
    status: int
    #: By names in lower case.
    headers: Mapping[str, str]
    content: bytes


class Unheard(Exception):
    """No whole answer came: whether the server did what was asked is not known."""


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class Work:
    """Something that reads or writes the store."""

    work: Callable[[], Any]


@dataclass(frozen=True)
class Ask:
    """A question to a callable of the caller's, which may be a coroutine function."""

    ask: Callable[[], Any]


Step = Union[Send, Sleep, Work, Ask]
Steps = Generator[Step, Any, T]
Approve = Callable[[Quote], "bool | Awaitable[bool]"]


@dataclass(frozen=True)
class Settings:
    url: str
    key: str | None
    wallet: Wallet | None
    sandbox: bool
    limits: Limits
    approve: Approve | None
    patience_s: float
    now_ms: Callable[[], int]
    book: Book


@dataclass(frozen=True)
class Call:
    service: str
    input: Mapping[str, Any]
    #: The caller's name for the purchase; None when it has none.
    name: str | None

    @property
    def content(self) -> bytes:
        return _canonical(self.input).encode()


def buy(settings: Settings, call: Call) -> Steps[Answer]:
    """The steps of a purchase. Raises FareboxError."""
    _check(settings, call)
    request = _fingerprint(settings, call)
    refused: dict[str, PaymentRefused] = {}
    for _ in range(_MOST_ROUNDS):
        known = yield from _work(lambda: settings.book.take(request))
        if known is not None and known.id in refused:
            raise refused[known.id]
        try:
            bought = (yield from _buy_anew(settings, call, request)) if known is None else known
            if isinstance(bought, Answer):
                return bought
            answer = yield from _present(settings, bought, call)
            if answer is not None:
                return answer
        except StoreError as error:
            if known is None:
                raise
            message = f"{error.message} What was bought by this call before may be paid: make it again when the store can be used."
            raise StoreError(error.code, message, charged=None) from error
        except PaymentRefused as error:
            # A payment that is refused is not sent any more: the request is bought anew.
            if known is None:
                raise
            refused[known.id] = error
    raise AnswerLost(
        "ANSWER_LOST",
        f"{call.service} was bought by several calls at once, and was not answered. It may be paid for: call it again.",
        charged=None,
        doc_url=_doc_url(settings, call),
    )


def quote(settings: Settings, service: str, input: Mapping[str, Any]) -> Steps[Quote]:
    """The steps of asking a price, which costs nothing."""
    call = Call(service, input, None)
    _check(settings, call)
    reply, transfer = yield from _ask_price(settings, call)
    if reply.status != 402:
        raise _failed(settings, call, reply, paid=False)
    return _quote_of(settings, call, reply, transfer)


def _check(settings: Settings, call: Call) -> None:
    if not _SERVICE.fullmatch(call.service):
        raise CallFailed("INVALID_REQUEST", "a service's name has letters, digits, - and _. Nothing was charged.")
    if call.name is not None and not _NAME.fullmatch(call.name):
        raise CallFailed(
            "INVALID_REQUEST", "an idempotency key has 1 to 255 printable characters without spaces. Nothing was charged."
        )
    try:
        call.content
    except (TypeError, ValueError) as error:
        raise CallFailed("INVALID_REQUEST", f"the input is no JSON: {error}. Nothing was charged.") from error


def _buy_anew(settings: Settings, call: Call, request: str) -> Steps[Purchase | Answer]:
    id = str(uuid.uuid4())
    reply, transfer = yield from _ask_price(settings, call)
    if 200 <= reply.status < 300:
        return _answer_of(settings, call, reply, None)
    if reply.status != 402:
        raise _failed(settings, call, reply, paid=False)
    quote = _quote_of(settings, call, reply, transfer)
    agreed = yield from _agree(settings, quote)
    if transfer is None or settings.wallet is None:
        headers, path, ends_ms = {"Idempotency-Key": call.name or id}, f"/x402/{call.service}", None
    else:
        headers = yield from _sign(settings.wallet, transfer)
        path = f"/{transfer.rail}/{call.service}"
        ends_ms = transfer.valid_before_s * 1_000
    if sum(map(len, headers.values())) > _MOST_PAYMENT_CHARACTERS:
        raise CannotPay("TERMS_TOO_LONG", f"the terms of {call.service} are too long. Nothing was paid.")
    purchase = Purchase(
        id=id,
        request=request,
        service=call.service,
        rail=quote.rail,
        path=path,
        headers=headers,
        micros=quote.micros,
        sandbox=quote.sandbox,
        ends_ms=ends_ms,
        named=call.name is not None,
    )
    # Between the question and here another call may have spent the rest.
    opened = yield from _work(lambda: settings.book.open(purchase, None if agreed else settings.limits))
    if isinstance(opened, str):
        raise _above(settings, quote, opened)
    return opened


def _ask_price(settings: Settings, call: Call) -> Steps[tuple[Reply, Transfer | None]]:
    """Asks by a call without a credential, at each door that this client can pay at."""
    ways = ("x402",) if settings.wallet is None else settings.wallet.pay_by
    reply: Reply | None = None
    for way in ways:
        headers = {} if way == "x402" else {"Accept-Payment": "evm/charge"}
        asked = yield from _ask_once(settings, call, f"/{way}/{call.service}", headers)
        # What is not sold by MPP is unknown below /mpp/: the terms that came first say more.
        if reply is None or asked.status == 402:
            reply = asked
        if asked.status != 402 or settings.wallet is None:
            continue
        now_s = settings.now_ms() // 1_000
        transfer = (
            x402_transfer(settings.wallet, asked.headers.get("payment-required"), now_s)
            if way == "x402"
            else mpp_transfer(settings.wallet, asked.headers.get("www-authenticate"), now_s)
        )
        if transfer is not None:
            return asked, transfer
    if reply is None:
        raise CannotPay("CANNOT_PAY", "the wallet names no way to pay.")
    return reply, None


def _ask_once(settings: Settings, call: Call, path: str, headers: Mapping[str, str]) -> Steps[Reply]:
    patience = _Patience(settings)
    while True:
        try:
            reply: Reply = yield Send("POST", path, headers, call.content)
            last, wait_s = f"it answered {reply.status}", _retry_after_s(reply)
        except Unheard as error:
            reply, last, wait_s = Reply(0, {}, b""), str(error), 0.0
        if reply.status != 0 and reply.status not in _PATIENCE:
            return reply
        pause_s = patience.pause_s(wait_s)
        if pause_s is None:
            if reply.status != 0:
                return reply
            raise CallFailed("SERVER_AWAY", f"The server did not tell the price: {last}. Nothing was paid.")
        yield Sleep(pause_s)


def _quote_of(settings: Settings, call: Call, reply: Reply, transfer: Transfer | None) -> Quote:
    body = _json_object(reply)
    header: dict[str, Any] = read_base64_object(reply.headers.get("payment-required")) or {}
    accepts = header.get("accepts")
    offers = [as_object(each) or {} for each in accepts] if isinstance(accepts, list) else []
    marks = [body, header, *(as_object(each.get("extra")) or {} for each in offers)]
    sandbox = any(each.get("sandbox") is True for each in marks)
    # A key is of the server that gave it. A wallet is its owner's, and what it signs may be worth real money.
    if settings.wallet is not None and sandbox != settings.sandbox:
        raise SandboxRefused(
            "SANDBOX_REFUSED" if sandbox else "NOT_A_SANDBOX",
            "This server is a sandbox: its money and its answers are not real. Nothing was paid. A client whose wallet is for "
            "it is made with sandbox=True."
            if sandbox
            else "This client's wallet was made for a sandbox, and this server is none. Nothing was paid.",
        )
    if settings.key is None and settings.wallet is None:
        raise CannotPay(
            "NOTHING_TO_PAY_WITH",
            f"{call.service} costs money, and this client has neither a key nor a wallet.",
            status=402,
            body=body,
            doc_url=_doc_url(settings, call, body),
            request_id=_request_id(reply, body),
        )
    if settings.wallet is not None:
        if transfer is None:
            raise CannotPay(
                "CANNOT_PAY",
                f"{call.service} is sold for USDC by {' or '.join(settings.wallet.pay_by)} on none of the networks that this "
                f"wallet pays on ({', '.join(settings.wallet.networks)}). Nothing was paid.",
                status=402,
                body=body,
                doc_url=_doc_url(settings, call, body),
                request_id=_request_id(reply, body),
            )
        return Quote(call.service, call.input, transfer.micros, transfer.rail, sandbox, "")
    micros = micros_of(body.get("price_usd"))
    if micros is None:
        raise CannotPay("CANNOT_PAY", f"The server names no price in USD for {call.service}. Nothing was paid.")
    return Quote(call.service, call.input, micros, "key", sandbox, "")


def _agree(settings: Settings, quote: Quote) -> Steps[bool]:
    """Returns whether somebody agreed to pass the limits; False when it keeps to them. Raises LimitReached."""
    above = yield from _work(lambda: settings.book.above(quote.service, quote.micros, settings.limits))
    if above is None:
        return False
    approve = settings.approve
    if approve is None:
        raise _above(settings, quote, above)
    told = replace(quote, why=_why(settings, quote, above))
    said = yield Ask(partial(approve, told))
    # Anything but True, such as a coroutine that nobody awaited, is no yes.
    if said is not True:
        raise LimitReached("DECLINED", f"{told.why} Whoever was asked did not agree. Nothing was paid.")
    return True


def _why(settings: Settings, quote: Quote, above: str) -> str:
    if above == "full":
        return "Too many purchases wait for their answers: repeat one of them."
    limits = settings.limits
    most = {"call": limits.per_call, "day": limits.per_day, "service": limits.per_service.get(quote.service, 0)}[above]
    scope = {"call": "a call", "day": "the calls of a day", "service": f"the calls of {quote.service} in a day"}[above]
    return f"{quote.service} costs {in_usd(quote.micros)} USD; {scope} may cost {in_usd(most)} USD without asking."


def _above(settings: Settings, quote: Quote, above: str) -> LimitReached:
    code = "TOO_MANY_OPEN" if above == "full" else "LIMIT_REACHED"
    return LimitReached(code, f"{_why(settings, quote, above)} Nothing was paid.")


def _sign(wallet: Wallet, transfer: Transfer) -> Steps[dict[str, str]]:
    signed = yield Ask(lambda: wallet.sign(typed_data(wallet, transfer)))
    signature = signature_text(signed)
    if signature is None:
        # What it returned is not told: it may be a key.
        raise CannotPay("SIGNATURE_INVALID", "sign returned no signature of 65 bytes or more. Nothing was paid.")
    return payment_headers(wallet, transfer, signature)


def _present(settings: Settings, purchase: Purchase, call: Call) -> Steps[Answer | None]:
    """Sends a purchase until its end is known, as far as the patience allows; each time it is the same payment.

    Returns None when another call gave the purchase up.
    """
    book, patience = settings.book, _Patience(settings)
    headers = dict(purchase.headers)
    if settings.key is not None:
        headers["X-API-KEY"] = settings.key
    failed: FareboxError | None = None
    while True:
        send = uuid.uuid4().hex
        try:
            is_open = yield from _work(lambda: book.sending(purchase, send))
        except StoreError:
            # Before the first time nothing has left.
            if failed is None:
                raise
            raise failed from None
        if not is_open:
            return None
        try:
            reply: Reply = yield Send("POST", purchase.path, headers, call.content)
        except Unheard as error:
            yield from _written(lambda: book.lost(purchase, send))
            failed, pause_s = _lost(settings, purchase, call, str(error)), patience.pause_s(0.0)
        else:
            if 200 <= reply.status < 300:
                answer = _answer_of(settings, call, reply, purchase)
                # While that cannot be written the purchase stays open, and counts: no answer is lost to a full disk.
                yield from _written(lambda: book.settle(purchase, send, answer.receipt.micros, answer.receipt))
                return answer
            failed = _failed(settings, call, reply, paid=True)
            pause_s = patience.pause_s(_retry_after_s(reply)) if _may_end_otherwise(failed) else None
            yield from _note(settings, purchase, send, failed, again=pause_s is not None)
        if pause_s is None:
            raise failed
        yield Sleep(pause_s)


def _note(settings: Settings, purchase: Purchase, send: str, failed: FareboxError, *, again: bool) -> Steps[None]:
    """Writes down what an error says of the payment. ``again``: the same payment is about to be sent once more."""
    book = settings.book
    if failed.charged is False:
        refused = failed.status == 402
        over = yield from _written(lambda: book.deny(purchase, send, refused=refused, again=again))
        # Another sending of the same payment may have been taken, or be on its way.
        failed.charged = False if over else None
    elif failed.charged is True and failed.status in (409, 410):
        # Bought, and the answer is not kept any more; or sent back.
        yield from _written(lambda: book.settle(purchase, send, purchase.micros, None))
    else:
        yield from _written(lambda: book.lost(purchase, send))


def _may_end_otherwise(failed: FareboxError) -> bool:
    if failed.status == 500 and failed.charged is False:
        return False
    return failed.status in _PATIENCE


def _failed(settings: Settings, call: Call, reply: Reply, *, paid: bool) -> FareboxError:
    """The error of an answer. ``paid`` says whether a payment was sent with the request."""
    body = _json_object(reply)
    reason = as_object(body.get("last_error_reason")) if reply.status == 402 else None
    told = reason if reason is not None and "code" in reason else body
    code, message = told.get("code"), told.get("message", body.get("message"))
    charged = body.get("charged")
    if reply.status == 402 or not paid:
        # A 402 means that no payment is in flight.
        charged = False
    elif not isinstance(charged, bool):
        # A proxy in between says nothing of what the server did.
        charged = None if "charged" in body or not isinstance(code, str) else _charged_unsaid(reply)
    kind = PaymentRefused if reply.status == 402 else CallFailed
    return kind(
        code if isinstance(code, str) and _CODE.fullmatch(code) else f"HTTP_{reply.status}",
        shown(message[:2_000]) if isinstance(message, str) else f"the server answered {reply.status}",
        charged=charged,
        doc_url=_doc_url(settings, call, body),
        request_id=_request_id(reply, body),
        status=reply.status,
        body=body,
    )


def _charged_unsaid(reply: Reply) -> bool | None:
    """What an error of the server that says nothing of charging means: 4xx come before anything is taken."""
    return False if 400 <= reply.status < 500 and reply.status not in (408, 409, 410) else None


def _lost(settings: Settings, purchase: Purchase, call: Call, why: str) -> AnswerLost:
    return AnswerLost(
        "ANSWER_LOST",
        f"The answer to {call.service} did not arrive: {why}. It may be paid for. Make the same call again: the same payment of "
        f"{in_usd(purchase.micros)} USD is sent, and is taken once.",
        charged=None,
        doc_url=_doc_url(settings, call),
    )


def _answer_of(settings: Settings, call: Call, reply: Reply, purchase: Purchase | None) -> Answer:
    media_type = reply.headers.get("content-type", "").split(";")[0].strip().lower()
    data: Any = None
    if media_type == "application/json" or media_type.endswith("+json"):
        try:
            data = json.loads(reply.content)
        except (ValueError, RecursionError):
            data = None
    return Answer(data, reply.content, media_type, _receipt_of(settings, call, reply, purchase))


def _receipt_of(settings: Settings, call: Call, reply: Reply, purchase: Purchase | None) -> Receipt:
    headers = reply.headers
    transaction: str | None = None
    problems: tuple[str, ...] = ()
    network: str | None = None
    micros = 0 if purchase is None else purchase.micros
    if purchase is not None and purchase.rail == "key":
        charged = micros_of(headers.get("x-credits-used"))
        if charged is None:
            problems = ("the answer does not say what was charged",)
        elif charged > micros:
            micros, problems = charged, ("more was charged than the price that was told",)
    elif purchase is not None:
        signed = _signed(purchase)
        network = signed["network"]
        transaction, problems = (
            problems_of_x402(headers, signed) if purchase.rail == "x402" else problems_of_mpp(headers)
        )
    return Receipt(
        service=call.service,
        call_id=_short(headers.get("x-call-id")),
        request_id=_short(headers.get("x-request-id")),
        micros=micros,
        rail="free" if purchase is None else purchase.rail,
        network=network,
        transaction=transaction,
        at_ms=settings.now_ms(),
        replayed=headers.get("idempotent-replayed") == "true",
        sandbox=False if purchase is None else purchase.sandbox,
        problems=problems,
    )


def _signed(purchase: Purchase) -> dict[str, str]:
    """What was signed, as the payment itself has it."""
    if purchase.rail == "mpp":
        told: dict[str, Any] = read_base64_object(purchase.headers["Authorization"].removeprefix("Payment ")) or {}
        source = str(told["source"]).split(":")
        return {"network": ":".join(source[2:4]), "payer": source[4], "amount": str(purchase.micros)}
    told = read_base64_object(purchase.headers["PAYMENT-SIGNATURE"]) or {}
    return {
        "network": told["accepted"]["network"],
        "payer": told["payload"]["authorization"]["from"],
        "amount": told["accepted"]["amount"],
    }


class _Patience:
    """How long a call is tried again."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._started_ms = settings.now_ms()
        self._waited_s = 0.0
        self._attempts = 0

    def pause_s(self, wait_s: float) -> float | None:
        """How long to wait before the next attempt; None when that would be longer than the patience."""
        pause_s = max(_PAUSES_S[min(self._attempts, len(_PAUSES_S) - 1)], wait_s)
        spent_s = max(self._waited_s, (self._settings.now_ms() - self._started_ms) / 1_000)
        if spent_s + pause_s > self._settings.patience_s:
            return None
        self._waited_s += pause_s
        self._attempts += 1
        return pause_s


def _retry_after_s(reply: Reply) -> float:
    told = reply.headers.get("retry-after", "")
    # More than nine digits are longer than anybody's patience.
    return float(told[:9]) if re.fullmatch(r"\d+", told, re.ASCII) else 0.0


def _json_object(reply: Reply) -> dict[str, Any]:
    try:
        return as_object(json.loads(reply.content, parse_float=Decimal)) or {}
    except (ValueError, RecursionError):
        return {}


def _request_id(reply: Reply, body: Mapping[str, Any]) -> str | None:
    told = body.get("requestId", reply.headers.get("x-request-id"))
    return _short(told)


def _short(text: Any) -> str | None:
    return shown(text[:200]) if isinstance(text, str) else None


def _doc_url(settings: Settings, call: Call, body: Mapping[str, Any] | None = None) -> str:
    """Where to read on: what the error names, or how this service is bought and what each of its errors means."""
    told = (body or {}).get("docUrl")
    if isinstance(told, str) and re.fullmatch(r"https?://[\x21-\x7e]{1,2000}", told):
        return told
    return f"{settings.url}/x402/recipes/{call.service}"


def _fingerprint(settings: Settings, call: Call) -> str:
    """Identifies a purchase: the same question to the same server, with the same money."""
    payer = settings.key if settings.wallet is None else settings.wallet.address.lower()
    said = json.dumps([settings.url, payer, call.service, call.name, _canonical(call.input)])
    return hashlib.sha256(said.encode()).hexdigest()


def _canonical(input: Mapping[str, Any]) -> str:
    return json.dumps(dict(input), sort_keys=True, separators=(",", ":"), allow_nan=False)


def _work(work: Callable[[], T]) -> Steps[T]:
    done: T = yield Work(work)
    return done


def _written(work: Callable[[], T]) -> Steps[T | None]:
    """The same for what is known already: None when it cannot be written down."""
    try:
        return (yield from _work(work))
    except StoreError:
        return None
