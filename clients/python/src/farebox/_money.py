"""Amounts: whole micro-USD, a million to the dollar, and never a float."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

MICROS = 1_000_000


def micros_of(usd: Any) -> int | None:
    """Reads an amount in USD, such as ``"0.25"``; None for what is no such amount or has more than six places."""
    if isinstance(usd, bool) or not isinstance(usd, (str, int, Decimal)):
        return None
    try:
        amount = Decimal(usd) if not isinstance(usd, str) or re.fullmatch(r"\d{1,9}(\.\d{1,6})?", usd) else None
    except InvalidOperation:
        return None
    if amount is None or not amount.is_finite() or amount < 0 or amount > 10**9:
        return None
    micros = amount * MICROS
    return int(micros) if micros == micros.to_integral_value() else None


def in_usd(micros: int) -> str:
    """Writes an amount with two places, and with as many more as it has."""
    fraction = f"{micros % MICROS:06d}"
    return f"{micros // MICROS}.{fraction[:2]}{fraction[2:].rstrip('0')}"
