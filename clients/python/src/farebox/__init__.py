"""Buys single HTTP calls from a Farebox: with a key, by x402 or by MPP, within limits, and never twice."""

from ._aio import AsyncFarebox
from ._answer import Answer, Receipt
from ._client import Farebox
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
from ._limits import Limits, Quote
from ._store import FileStore, MemoryStore, Store
from ._wallet import Wallet

__all__ = [
    "Answer",
    "AnswerLost",
    "AsyncFarebox",
    "CallFailed",
    "CannotPay",
    "Farebox",
    "FareboxError",
    "FileStore",
    "LimitReached",
    "Limits",
    "MemoryStore",
    "PaymentRefused",
    "Quote",
    "Receipt",
    "SandboxRefused",
    "Store",
    "StoreError",
    "Wallet",
]
