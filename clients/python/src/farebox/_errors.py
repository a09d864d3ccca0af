"""Errors of a call: each tells its code, whether it was charged, and where to read on."""

from __future__ import annotations

from typing import Any, Mapping


class FareboxError(Exception):
    """Base of all errors.

    ``charged`` is True when the price was taken, False when it was not and will not be, and None while that is not
    known: then make the same call again, and the same payment is sent.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        charged: bool | None = False,
        doc_url: str | None = None,
        request_id: str | None = None,
        status: int | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.charged = charged
        self.doc_url = doc_url
        self.request_id = request_id
        self.status = status
        self.body: Mapping[str, Any] = {} if body is None else body


class CallFailed(FareboxError):
    """The server answered with an error; ``charged`` is what it said."""


class PaymentRefused(FareboxError):
    """The server did not take the payment: ``code`` says why."""


class LimitReached(FareboxError):
    """The call costs more than it may, and nobody agreed to it."""


class SandboxRefused(FareboxError):
    """The server is a sandbox and the client was not made for one, or the other way round."""


class CannotPay(FareboxError):
    """Nothing that the server offers can be paid with what the client has."""


class AnswerLost(FareboxError):
    """No answer arrived, and it may be paid for: make the same call again, and the same payment is sent."""


class StoreError(FareboxError):
    """What was spent can be neither read nor written down, so nothing is bought."""
