"""The two clients as they are made: what both take, and what both keep."""

from __future__ import annotations

import os
from typing import Any, Callable, Generic, TypeVar

import httpx

from ._limits import Limits
from ._settings import make_settings, now_ms
from ._store import Store
from ._wallet import Wallet

Approving = TypeVar("Approving", bound=Callable[..., Any])
Sleeping = TypeVar("Sleeping", bound=Callable[..., Any])
Transport = TypeVar("Transport")
_CONNECT_S = 10.0


class BaseFarebox(Generic[Approving, Sleeping, Transport]):
    """Buys calls from the Farebox at ``url``, with a key or a wallet.

    ``store`` is a path, or a store of your own; without it what was spent is forgotten with the process. ``sandbox`` says that
    the wallet was made for a sandbox: no other wallet pays one, and this one pays nothing else. ``approve`` is asked when a call
    would pass a limit. ``patience_s`` is how long a call is repeated, with the same payment, while the server says to wait or does
    not answer, and ``timeout_s`` how long one request may take, its answer included.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        wallet: Wallet | None = None,
        sandbox: bool = False,
        limits: Limits | None = None,
        approve: Approving | None = None,
        store: Store | str | os.PathLike[str] | None = None,
        patience_s: float = 60.0,
        timeout_s: float = 120.0,
        transport: Transport | None = None,
        sleep: Sleeping | None = None,
        now_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._settings = make_settings(
            url,
            key,
            wallet,
            sandbox=sandbox,
            limits=limits,
            approve=approve,
            store=store,
            patience_s=patience_s,
            now_ms=now_ms,
        )
        self._timeout_s = timeout_s
        # A key is sent to this address and to no other, and no other credentials beside it.
        http: dict[str, Any] = {
            "timeout": httpx.Timeout(timeout_s, connect=min(timeout_s, _CONNECT_S)),
            "follow_redirects": False,
            "transport": transport,
            "auth": httpx.Auth(),
        }
        self._open(sleep, http)

    def _open(self, sleep: Sleeping | None, http: dict[str, Any]) -> None:
        """Keeps how it waits, and opens the connection of its kind."""
        raise NotImplementedError
