"""The client for programs without asyncio."""

from __future__ import annotations

import inspect
import socket
import threading
import time
from types import TracebackType
from typing import Any, Callable, Mapping, TypeVar

import httpx

from . import _flow
from ._answer import Answer, Receipt
from ._base import BaseFarebox
from ._errors import CannotPay
from ._limits import Quote

T = TypeVar("T")


class Farebox(BaseFarebox[Callable[[Quote], bool], Callable[[float], None], httpx.BaseTransport]):
    """Buys calls from the Farebox at ``url``, with a key or a wallet. One may be used by several threads."""

    def _open(self, sleep: Callable[[float], None] | None, http: dict[str, Any]) -> None:
        self._sleep = time.sleep if sleep is None else sleep
        # Each request has a connection of its own, which can be cut when its time is over.
        self._http = httpx.Client(limits=httpx.Limits(max_keepalive_connections=0), **http)

    def call(self, service: str, input: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None) -> Answer:
        """Buys one call. The same call again after a lost answer sends the same payment.

        ``idempotency_key`` is a name of yours for the purchase: the same call with the same name brings the same answer again,
        for a day. Raises FareboxError.
        """
        return self._run(_flow.buy(self._settings, _flow.Call(service, input or {}, idempotency_key)))

    def price(self, service: str, input: Mapping[str, Any] | None = None) -> int:
        """What the call would cost now, in micro-USD. Nothing is paid."""
        return self._run(_flow.quote(self._settings, service, input or {})).micros

    def receipts(self) -> list[Receipt]:
        """The receipts of the last 1,000 purchases, oldest first."""
        return self._settings.book.receipts()

    def spent_micros(self) -> int:
        """What was spent today (UTC), with what purchases whose answer is not there yet may still cost."""
        return self._settings.book.spent_micros()

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Farebox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, steps: _flow.Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    result = self._do(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            done: T = end.value
            return done
        finally:
            steps.close()

    def _do(self, step: _flow.Step) -> Any:
        if isinstance(step, _flow.Send):
            return self._send(step)
        if isinstance(step, _flow.Sleep):
            return self._sleep(step.seconds)
        if isinstance(step, _flow.Work):
            return step.work()
        said = step.ask()
        if inspect.isawaitable(said):
            if inspect.iscoroutine(said):
                said.close()
            raise CannotPay("NOT_AWAITED", "sign and approve of a Farebox are plain functions; AsyncFarebox takes coroutines.")
        return said

    def _send(self, step: _flow.Send) -> _flow.Reply:
        headers = {"content-type": "application/json", "accept": "application/json", **step.headers}
        content = bytearray()
        bound = _Bound(self._timeout_s)
        try:
            with self._http.stream(
                step.method,
                self._settings.url + step.path,
                headers=headers,
                content=step.content,
                extensions={"trace": bound.trace},
            ) as response:
                for piece in response.iter_bytes():
                    content += piece
                    if len(content) > _flow.MOST_ANSWER_BYTES:
                        raise _flow.Unheard("the answer is too large")
                    if bound.is_over:
                        raise _flow.Unheard(_flow.TOO_LATE)
                return _flow.Reply(
                    response.status_code, {name.lower(): text for name, text in response.headers.items()}, bytes(content)
                )
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise _flow.Unheard(_flow.TOO_LATE if bound.is_over else str(error) or type(error).__name__) from error
        finally:
            bound.end()


class _Bound:
    """Cuts a request that takes too long as a whole: the time-outs of httpx begin anew with each piece that comes."""

    def __init__(self, timeout_s: float) -> None:
        self.is_over = False
        self._stream: Any = None
        self._timer = threading.Timer(timeout_s, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            self._stream = info["return_value"]
            if self.is_over:
                self._cut()

    def end(self) -> None:
        self._timer.cancel()

    def _cut(self) -> None:
        self.is_over = True
        wire = None if self._stream is None else self._stream.get_extra_info("socket")
        if wire is None:
            return
        try:
            wire.shutdown(socket.SHUT_RDWR)
        except OSError:
            # It is closed already.
            pass
