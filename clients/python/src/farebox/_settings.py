"""Makes the settings of a client from what its caller gave, and refuses what cannot be used."""

from __future__ import annotations

import os
import re
import time
from typing import Callable
from urllib.parse import urlsplit

from ._book import Book
from ._flow import Approve, Settings
from ._limits import Limits
from ._store import FileStore, MemoryStore, Store
from ._wallet import Wallet

_THIS_MACHINE = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def make_settings(
    url: str,
    key: str | None,
    wallet: Wallet | None,
    *,
    sandbox: bool,
    limits: Limits | None,
    approve: Approve | None,
    store: Store | str | os.PathLike[str] | None,
    patience_s: float,
    now_ms: Callable[[], int],
) -> Settings:
    address = urlsplit(url)
    if address.scheme not in ("http", "https") or not address.hostname or address.query or address.fragment:
        raise ValueError("url is the address of a Farebox, such as https://farebox.example")
    if address.username is not None or address.password is not None:
        raise ValueError("url holds no name and no password")
    if key is not None and wallet is not None:
        raise ValueError("a key pays, and so does a wallet: give one of them")
    if key is not None and not re.fullmatch(r"[\x21-\x7e]{8,200}", key):
        # Without the value: it may be a secret that was pasted wrong.
        raise ValueError("key is no API key")
    if address.scheme == "http" and not _THIS_MACHINE.fullmatch(address.hostname) and (key or wallet):
        raise ValueError("url must be of https: with http anybody on the way reads the key, or names another recipient")
    kept = MemoryStore() if store is None else FileStore(store) if isinstance(store, (str, os.PathLike)) else store
    return Settings(
        url=url.rstrip("/"),
        key=key,
        wallet=wallet,
        sandbox=sandbox,
        limits=limits or Limits(),
        approve=approve,
        patience_s=patience_s,
        now_ms=now_ms,
        book=Book(kept, now_ms),
    )
