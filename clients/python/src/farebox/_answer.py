"""What a call brings: its answer, and the receipt for its price."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Mapping

from ._json import read_base64_object

_HASH = re.compile(r"0x[0-9a-fA-F]{64}")


@dataclass(frozen=True)
class Receipt:
    """What was paid, and for which call."""

    service: str
    call_id: str | None
    request_id: str | None
    micros: int
    #: ``key``, ``x402``, ``mpp`` or ``free``.
    rail: str
    network: str | None
    transaction: str | None
    at_ms: int
    #: Whether it was sold before, and came again without being charged again.
    replayed: bool
    sandbox: bool
    #: What in the server's own receipt is not what was signed or agreed to; empty: all of it fits.
    problems: tuple[str, ...] = ()

    @property
    def verified(self) -> bool:
        return not self.problems


@dataclass(frozen=True)
class Answer:
    """The answer to a call: ``answer["price"]`` reads a field of its JSON."""

    #: JSON where the answer is JSON; None otherwise.
    data: Any
    content: bytes = field(repr=False)
    media_type: str
    receipt: Receipt

    def __getitem__(self, name: str) -> Any:
        return self.data[name]


def problems_of_x402(headers: Mapping[str, str], signed: Mapping[str, str]) -> tuple[str | None, tuple[str, ...]]:
    """Compares the receipt of a settlement with what was signed. Returns its transaction, and what does not fit."""
    told = read_base64_object(headers.get("payment-response"))
    if told is None:
        return None, ("the answer brought no receipt of its payment",)
    transaction = told.get("transaction")
    problems: list[str] = []
    if told.get("success") is not True:
        problems.append("the receipt does not say that the payment settled")
    if told.get("network") != signed["network"]:
        problems.append("the receipt names another network")
    if str(told.get("payer", signed["payer"])).lower() != signed["payer"].lower():
        problems.append("the receipt names another payer")
    if str(told.get("amount", signed["amount"])) != signed["amount"]:
        problems.append("the receipt names another amount")
    if not isinstance(transaction, str) or not _HASH.fullmatch(transaction):
        return None, (*problems, "the receipt names no transaction")
    return transaction, tuple(problems)


def problems_of_mpp(headers: Mapping[str, str]) -> tuple[str | None, tuple[str, ...]]:
    """As ``problems_of_x402``, for the receipt of an MPP credential, which names neither payer nor amount."""
    told = read_base64_object(headers.get("payment-receipt"))
    if told is None:
        return None, ("the answer brought no receipt of its payment",)
    transaction = told.get("reference")
    problems: list[str] = []
    if told.get("status") != "success":
        problems.append("the receipt does not say that the payment settled")
    if told.get("method") != "evm":
        problems.append("the receipt names another method")
    if not isinstance(transaction, str) or not _HASH.fullmatch(transaction):
        return None, (*problems, "the receipt names no transaction")
    return transaction, tuple(problems)
