"""JSON that came from outside, read as far as it has the form that is wanted."""

from __future__ import annotations

import base64
import binascii
import json
import unicodedata
from typing import Any, cast

_MOST_CHARACTERS = 65_536
_UNSEEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")


def as_object(value: Any) -> dict[str, Any] | None:
    """The value where it is an object; None for anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_list(value: Any) -> list[Any]:
    """The value where it is a list; an empty one for anything else."""
    return [*value] if isinstance(value, list) else []


def shown(text: str) -> str:
    """Words of a server without what nobody sees: controls of a terminal, and marks that turn text around or hide it."""
    kept = (each for each in text if each in "\n\t\u200c\u200d" or unicodedata.category(each) not in _UNSEEN)
    return "".join(kept)


def read_base64_object(text: str | None) -> dict[str, Any] | None:
    """Reads an object from base64 of either alphabet, padded or not; None for anything else."""
    if text is None or len(text) > _MOST_CHARACTERS:
        return None
    plain = text.strip().replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return as_object(json.loads(base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)))
    except (binascii.Error, ValueError, RecursionError):
        return None


def write_base64(value: Any) -> str:
    return base64.b64encode(json.dumps(value, separators=(",", ":")).encode()).decode()
