"""The client for programs with asyncio."""

from __future__ import annotations

import asyncio
import inspect
from types import TracebackType
from typing import Any, Awaitable, Callable, Mapping, TypeVar

import httpx

from . import _flow
from ._answer import Answer, Receipt
from ._base import BaseFarebox

T = TypeVar("T")


class AsyncFarebox(BaseFarebox[_flow.Approve, Callable[[float], Awaitable[None]], httpx.AsyncBaseTransport]):
    """As Farebox, with ``await``: ``sign`` and ``approve`` may be coroutine functions, and the store is used in a thread."""

    def _open(self, sleep: Callable[[float], Awaitable[None]] | None, http: dict[str, Any]) -> None:
        self._sleep = asyncio.sleep if sleep is None else sleep
        self._http = httpx.AsyncClient(**http)

    async def call(self, service: str, input: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None) -> Answer:
        """Buys one call. The same call again after a lost answer sends the same payment.

        ``idempotency_key`` is a name of yours for the purchase: the same call with the same name brings the same answer again,
        for a day. Raises FareboxError.
        """
        return await self._run(_flow.buy(self._settings, _flow.Call(service, input or {}, idempotency_key)))

    async def price(self, service: str, input: Mapping[str, Any] | None = None) -> int:
        """What the call would cost now, in micro-USD. Nothing is paid."""
        return (await self._run(_flow.quote(self._settings, service, input or {}))).micros

    async def receipts(self) -> list[Receipt]:
        """The receipts of the last 1,000 purchases, oldest first."""
        return await asyncio.to_thread(self._settings.book.receipts)

    async def spent_micros(self) -> int:
        """What was spent today (UTC), with what purchases whose answer is not there yet may still cost."""
        return await asyncio.to_thread(self._settings.book.spent_micros)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> AsyncFarebox:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _run(self, steps: _flow.Steps[T]) -> T:
        try:
            step = next(steps)
            while True:
                try:
                    result = await self._do(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            done: T = end.value
            return done
        finally:
            steps.close()

    async def _do(self, step: _flow.Step) -> Any:
        if isinstance(step, _flow.Send):
            return await self._send(step)
        if isinstance(step, _flow.Sleep):
            return await self._sleep(step.seconds)
        if isinstance(step, _flow.Work):
            return await asyncio.to_thread(step.work)
        said = step.ask()
        if inspect.isawaitable(said):
            return await said
        return said

    async def _send(self, step: _flow.Send) -> _flow.Reply:
        try:
            # The time-outs of httpx begin anew with each piece that comes.
            return await asyncio.wait_for(self._fetch(step), self._timeout_s)
        except asyncio.TimeoutError as error:
            raise _flow.Unheard(_flow.TOO_LATE) from error

    async def _fetch(self, step: _flow.Send) -> _flow.Reply:
        headers = {"content-type": "application/json", "accept": "application/json", **step.headers}
        content = bytearray()
        try:
            async with self._http.stream(
                step.method, self._settings.url + step.path, headers=headers, content=step.content
            ) as response:
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > _flow.MOST_ANSWER_BYTES:
                        raise _flow.Unheard("the answer is too large")
                return _flow.Reply(
                    response.status_code, {name.lower(): text for name, text in response.headers.items()}, bytes(content)
                )
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise _flow.Unheard(str(error) or type(error).__name__) from error
