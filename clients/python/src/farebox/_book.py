"""The book of purchases: what was spent, which payments may be on their way, and which receipts came.

A purchase is written down before its payment leaves, so that nothing is paid twice and no limit is passed by a crash. It is struck
off when its answer has come, or when the server said that it took nothing and no other sending of it can have been taken.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import Any, Callable, Mapping, TypeVar

from ._answer import Receipt
from ._errors import StoreError
from ._json import as_object
from ._limits import Limits
from ._store import Store

#: None makes room for another: the same request would be paid a second time.
MOST_OPEN = 500
#: Named purchases with a key that are remembered after their answers: the server knows the others too.
MOST_NAMES_OF_KEYS = 500
#: Those of wallets, which nobody else remembers: beyond that nothing is bought under a name.
MOST_NAMES_OF_WALLETS = 1_000
#: For so long whoever else sends a purchase that was paid may go on.
PAID_FOR_MS = 10 * 60_000
#: The time for which a server keeps an answer, from when it was asked for last.
OPEN_FOR_MS = 24 * 3_600_000
#: Longer than any call runs, its settlement included.
ON_ITS_WAY_MS = 150_000
KEPT_DAYS = 31
MOST_RECEIPTS = 1_000

T = TypeVar("T")


@dataclass(frozen=True)
class Purchase:
    """A payment for one request, which is sent until it is answered."""

    id: str
    #: Fingerprint of what is bought, by whom and where.
    request: str
    service: str
    rail: str
    #: Where it is sent.
    path: str
    #: Headers that pay, without any key of the caller's.
    headers: Mapping[str, str]
    micros: int
    sandbox: bool
    #: Until when what was signed is good; None for a key.
    ends_ms: int | None
    #: Whether the caller gave it a name: it is found again after it was answered.
    named: bool


class Book:
    """The purchases of a store."""

    def __init__(self, store: Store, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._now_ms = now_ms

    def _at_once(self, work: Callable[[dict[str, Any]], T]) -> T:
        done: list[T] = []

        def change(text: str) -> str:
            pages = _read(text)
            _tidy(pages, self._now_ms())
            done[:] = [work(pages)]
            return json.dumps(pages, separators=(",", ":"))

        self._store.update(change)
        return done[0]

    def take(self, request: str) -> Purchase | None:
        """The open purchase of this request, whoever else is sending it."""
        return self._at_once(lambda pages: _open_for(pages, request))

    def open(self, purchase: Purchase, limits: Limits | None) -> Purchase | str:
        """Writes a purchase down. Nothing may be sent before.

        ``limits`` is None when somebody agreed to pass them. Returns the purchase to send, which is another one when somebody has
        opened one for the same request meanwhile; or which limit it would pass, instead of writing it down.
        """

        def work(pages: dict[str, Any]) -> Purchase | str:
            known = _open_for(pages, purchase.request)
            if known is not None:
                return known
            if _is_full(pages, purchase):
                return "full"
            if limits is not None:
                above = passed(pages, purchase.service, purchase.micros, limits, self._now_ms())
                if above is not None:
                    return above
            pages["purchases"][purchase.id] = {
                "request": purchase.request,
                "purchase": asdict(purchase),
                "opened_ms": self._now_ms(),
                "sent_ms": self._now_ms(),
                "sends": {},
                "held_until_ms": None,
                "paid": False,
            }
            return purchase

        return self._at_once(work)

    def above(self, service: str, micros: int, limits: Limits) -> str | None:
        """Which limit a call of this price would pass now; None when it keeps to all."""
        return self._at_once(lambda pages: passed(pages, service, micros, limits, self._now_ms()))

    def sending(self, purchase: Purchase, send: str) -> bool:
        """Notes that the payment is about to leave. False when it was given up, and must not leave any more."""

        def work(pages: dict[str, Any]) -> bool:
            row = pages["purchases"].get(purchase.id)
            if row is None or (row["request"] is None and not row["paid"]):
                return False
            row["sends"][send] = self._now_ms() + ON_ITS_WAY_MS
            if row["request"] is not None:
                row["sent_ms"], row["held_until_ms"] = self._now_ms(), None
            return True

        return self._at_once(work)

    def lost(self, purchase: Purchase, send: str) -> None:
        """No answer came: what became of it is not known, and stays so whatever another sending is answered."""

        def work(pages: dict[str, Any]) -> None:
            row = pages["purchases"].get(purchase.id)
            if row is not None and send in row["sends"]:
                # Of those that were lost one says all.
                row["sends"] = {each: until for each, until in row["sends"].items() if until > 0}
                row["sends"][send] = 0

        self._at_once(work)

    def settle(self, purchase: Purchase, send: str, micros: int, receipt: Receipt | None) -> None:
        """It was answered, and is paid for. ``receipt`` is None where no answer is kept any more."""

        def work(pages: dict[str, Any]) -> None:
            row = pages["purchases"].get(purchase.id)
            # Somebody else who sent the same purchase may have settled it.
            was_paid = row is not None and row["paid"]
            if row is not None and not was_paid:
                _add(pages, self._now_ms(), purchase.service, max(micros, purchase.micros))
                if receipt is not None:
                    pages["receipts"] = [*pages["receipts"], asdict(receipt)][-MOST_RECEIPTS:]
            elif row is None and receipt is not None and not receipt.replayed:
                _add(pages, self._now_ms(), purchase.service, max(micros, purchase.micros))
            if row is None:
                return
            others = {each for each in row["sends"] if each != send}
            if purchase.named:
                row["paid"], row["sends"] = True, {}
            elif was_paid:
                return
            elif others and row["request"] is not None:
                # Others are sending it still: they get the answer that was sold, and whoever asks from now on another one.
                row["paid"], row["request"], row["sends"] = True, None, {}
                row["held_until_ms"] = self._now_ms() + PAID_FOR_MS
            else:
                del pages["purchases"][purchase.id]
            _drop_old_names(pages)

        self._at_once(work)

    def deny(self, purchase: Purchase, send: str, *, refused: bool, again: bool = False) -> bool:
        """The server says that it took nothing.

        Not ``refused``: this sending did nothing, which says nothing of others. ``refused``: it looked for the payment, and it has
        bought nothing so far, which says nothing of what is still on its way. ``again``: the same is about to be sent once more, so that
        it stays open. Returns whether no sending of it can have been taken.
        """

        def work(pages: dict[str, Any]) -> bool:
            row = pages["purchases"].get(purchase.id)
            if row is None or row["paid"]:
                return True
            row["sends"].pop(send, None)
            now = self._now_ms()
            if any(until > now or not refused for until in row["sends"].values()):
                return False
            if again:
                return True
            if purchase.ends_ms is None:
                del pages["purchases"][purchase.id]
                return True
            # Whoever holds a signed payment can take it and say no: it counts until it ends, and as spent from then on.
            row["held_until_ms"], row["sends"] = purchase.ends_ms, {}
            # One that failed is asked with the same payment again; one that was refused is bought anew.
            if refused:
                row["request"] = None
            return True

        return self._at_once(work)

    def spent_micros(self) -> int:
        """What today came to, with what open purchases may still cost."""
        return self._at_once(lambda pages: _sum(pages, self._now_ms(), None))

    def receipts(self) -> list[Receipt]:
        rows = self._at_once(lambda pages: list(pages["receipts"]))
        return [replace(Receipt(**row), problems=tuple(row["problems"])) for row in rows]


def _open_for(pages: dict[str, Any], request: str) -> Purchase | None:
    for row in pages["purchases"].values():
        if row["request"] == request:
            return Purchase(**row["purchase"])
    return None


def _is_full(pages: dict[str, Any], purchase: Purchase) -> bool:
    rows = pages["purchases"].values()
    if sum(not row["paid"] for row in rows) >= MOST_OPEN:
        return True
    if not purchase.named or purchase.ends_ms is None:
        return False
    return len(_names(pages, of_keys=False)) >= MOST_NAMES_OF_WALLETS


def _names(pages: dict[str, Any], *, of_keys: bool) -> list[str]:
    """The named purchases that were answered, oldest first."""
    return [
        id
        for id, row in pages["purchases"].items()
        if row["paid"] and row["purchase"]["named"] and (row["purchase"]["ends_ms"] is None) == of_keys
    ]


def _drop_old_names(pages: dict[str, Any]) -> None:
    for id in _names(pages, of_keys=True)[:-MOST_NAMES_OF_KEYS]:
        del pages["purchases"][id]


def passed(pages: dict[str, Any], service: str, micros: int, limits: Limits, now_ms: int) -> str | None:
    if micros > limits.per_call:
        return "call"
    if _sum(pages, now_ms, None) + micros > limits.per_day:
        return "day"
    limit = limits.per_service.get(service)
    return "service" if limit is not None and _sum(pages, now_ms, service) + micros > limit else None


def _sum(pages: dict[str, Any], now_ms: int, service: str | None) -> int:
    spent: dict[str, int] = pages["spent"].get(_day(now_ms), {})
    held: list[dict[str, Any]] = [row["purchase"] for row in pages["purchases"].values() if not row["paid"]]
    amounts: list[int] = [micros for name, micros in spent.items() if service in (None, name)]
    return sum(amounts) + sum(int(each["micros"]) for each in held if service in (None, each["service"]))


def _add(pages: dict[str, Any], at_ms: int, service: str, micros: int) -> None:
    day = pages["spent"].setdefault(_day(at_ms), {})
    day[service] = day.get(service, 0) + micros


def _day(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1_000, timezone.utc).strftime("%Y-%m-%d")


def _read(text: str) -> dict[str, Any]:
    if text == "":
        return {"version": 1, "spent": {}, "purchases": {}, "receipts": []}
    try:
        pages = as_object(json.loads(text))
    except ValueError:
        pages = None
    if pages is None or pages.get("version") != 1 or not _is_whole(pages):
        raise StoreError("STORE_UNREADABLE", "the store holds no book of purchases of this version. Nothing was bought.")
    return pages


_ROW = {"request", "purchase", "opened_ms", "sent_ms", "sends", "held_until_ms", "paid"}


def _is_whole(pages: dict[str, Any]) -> bool:
    """Whether all is there that this client writes: half of a file is no book, and what was spent is not forgotten for it."""
    spent, purchases, receipts = (pages.get(name) for name in ("spent", "purchases", "receipts"))
    return (
        isinstance(spent, dict)
        and isinstance(purchases, dict)
        and isinstance(receipts, list)
        and all(isinstance(day, dict) and all(type(micros) is int for micros in day.values()) for day in spent.values())
        and all(isinstance(row, dict) and row.keys() >= _ROW and isinstance(row["purchase"], dict) for row in purchases.values())
        and all(isinstance(receipt, dict) for receipt in receipts)
    )


def _tidy(pages: dict[str, Any], now_ms: int) -> None:
    """Strikes off what is sent no more. It counts as spent on its last day: nobody but the server knows whether it was."""
    for id, row in list(pages["purchases"].items()):
        held = row["held_until_ms"]
        over = row["sent_ms"] + OPEN_FOR_MS < now_ms if held is None else held < now_ms
        if not over or any(until > now_ms for until in row["sends"].values()):
            continue
        del pages["purchases"][id]
        if not row["paid"]:
            _add(pages, row["sent_ms"] if held is None else held, row["purchase"]["service"], row["purchase"]["micros"])
    # Counted in days that have something, and never today's: a clock that is put right must not lose what was spent.
    today = _day(now_ms)
    for day in sorted(pages["spent"])[:-KEPT_DAYS]:
        if day != today:
            del pages["spent"][day]
