"""What a call may cost without asking anybody."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Mapping


@dataclass(frozen=True)
class Limits:
    """The most that is spent without asking, in whole micro-USD (1,000,000 are one dollar). Days are those of UTC."""

    per_call: int = 1_000_000
    per_day: int = 10_000_000
    #: By the name of a service: the most that its calls may come to in a day.
    per_service: Mapping[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        for amount in (self.per_call, self.per_day, *self.per_service.values()):
            # A bool is an int, and 0.25 would be a quarter of a micro-USD: neither is an amount.
            if type(amount) is not int or amount < 0:
                raise ValueError("limits are whole micro-USD: 1_000_000 for one dollar")


@dataclass(frozen=True)
class Quote:
    """A call and its price, for whoever is asked to agree to it."""

    service: str
    input: Mapping[str, Any]
    micros: int
    #: ``key``, ``x402`` or ``mpp``.
    rail: str
    sandbox: bool
    #: Which limit it would pass, in words.
    why: str
