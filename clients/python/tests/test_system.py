"""Buys from a running server by each rail, over a way that loses requests and answers: what is asked once is paid once.

``npm test -- python-client`` starts the server and the way to it, which a test plans at a desk below ``/__desk/``. Without them
nothing here is run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import httpx
import pytest

from farebox import AnswerLost, Answer, AsyncFarebox, CallFailed, CannotPay, Farebox, SandboxRefused, Wallet

URL = os.environ.get("FAREBOX_TEST_URL", "")
KEY = os.environ.get("FAREBOX_TEST_KEY", "")
ADDRESS = os.environ.get("FAREBOX_TEST_WALLET", "0x" + "00" * 20)
pytestmark = pytest.mark.skipif(URL == "", reason="FAREBOX_TEST_URL names no server")
PRICE = 250_000
RAILS = ("key", "x402", "mpp")


def desk(action: str, body: Any = None) -> Any:
    answer = httpx.post(f"{URL}/__desk/{action}", json=body if body is not None else {}, timeout=60)
    assert answer.status_code == 200
    return answer.json()


def sign(data: dict[str, Any]) -> str:
    signature: str = desk("sign", data)["signature"]
    return signature


def paying(rail: str) -> dict[str, Any]:
    return {"key": KEY} if rail == "key" else {"wallet": Wallet(ADDRESS, sign, pay_by=(rail,))}


def client(rail: str, **options: Any) -> Farebox:
    return Farebox(URL, sandbox=True, sleep=lambda _: None, **paying(rail), **options)


def paid_micros(rail: str) -> int:
    """What the server took so far, as the chain or the key's account has it."""
    if rail != "key":
        return int(desk("state")["receivedMicros"])
    spent = httpx.get(f"{URL}/api/keys/me", headers={"x-api-key": KEY}).json()["spentUsd"]
    return int(spent.replace(".", ""))


def bought_once(rail: str, buy: Callable[[], Answer]) -> Answer:
    """Asserts that it is paid once, with one signature and one payment, whatever happens on the way."""
    before, paid = desk("state"), paid_micros(rail)
    answer = buy()
    after = desk("state")
    assert paid_micros(rail) - paid == PRICE
    assert after["signed"] - before["signed"] == (0 if rail == "key" else 1)
    assert len(set(after["payments"][len(before["payments"]) :])) == 1
    assert answer["success"] is True
    assert answer.receipt.problems == ()
    assert (answer.receipt.micros, answer.receipt.rail) == (PRICE, rail)
    return answer


@pytest.mark.parametrize("rail", RAILS)
@pytest.mark.parametrize(
    "fates",
    [[], ["answer lost"], ["request lost"], ["twice"], ["request lost", "answer lost", "twice"]],
    ids=lambda fates: ", ".join(fates) or "nothing",
)
def test_a_call_is_bought_once(rail: str, fates: list[str]) -> None:
    desk("plan", {"fates": fates})
    with client(rail) as farebox:
        answer = bought_once(rail, lambda: farebox.call("ping", {"message": "hello"}))
        assert answer["echo"] == "hello"
        assert farebox.receipts() == [answer.receipt]


@pytest.mark.parametrize("rail", RAILS)
@pytest.mark.parametrize("fate", ["answer lost", "request lost"])
def test_the_next_process_sends_the_same_payment(rail: str, fate: str, tmp_path: Path) -> None:
    desk("plan", {"fates": [fate]})

    def buy() -> Answer:
        with client(rail, store=tmp_path / "book", patience_s=0) as farebox:
            with pytest.raises(AnswerLost) as lost:
                farebox.call("ping")
            assert lost.value.charged is None
        with client(rail, store=tmp_path / "book") as farebox:
            answer = farebox.call("ping")
            assert farebox.spent_micros() == PRICE
            return answer

    assert bought_once(rail, buy).receipt.replayed == (fate == "answer lost")


DYING = """
from test_system import client
client({rail!r}, store={store!r}).call("ping")
"""


@pytest.mark.parametrize("rail", RAILS)
def test_killed_between_payment_and_answer(rail: str, tmp_path: Path) -> None:
    desk("plan", {"fates": ["held"]})
    store = str(tmp_path / "book")
    here = Path(__file__).parent

    def buy() -> Answer:
        dying = subprocess.Popen(
            [sys.executable, "-B", "-c", DYING.format(rail=rail, store=store)],
            env={**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{here.parent / 'src'}"},
        )
        try:
            desk("held")
        finally:
            dying.send_signal(signal.SIGKILL)
            dying.wait()
        with client(rail, store=store) as farebox:
            return farebox.call("ping")

    assert bought_once(rail, buy).receipt.replayed


@pytest.mark.parametrize("rail", RAILS)
def test_with_asyncio(rail: str) -> None:
    desk("plan", {"fates": ["answer lost"]})

    async def no_sleep(_: float) -> None:
        return None

    async def buy() -> Answer:
        async with AsyncFarebox(URL, sandbox=True, sleep=no_sleep, **paying(rail)) as farebox:
            return await farebox.call("ping")

    bought_once(rail, lambda: asyncio.run(buy()))


@pytest.mark.parametrize("rail", RAILS)
def test_equal_calls_at_once_are_paid_once(rail: str) -> None:
    desk("plan", {"fates": ["answer lost"]})

    async def no_sleep(_: float) -> None:
        return None

    async def buy() -> list[Answer]:
        async with AsyncFarebox(URL, sandbox=True, sleep=no_sleep, **paying(rail)) as farebox:
            return await asyncio.gather(*(farebox.call("ping", {"message": "at once"}) for _ in range(3)))

    paid = paid_micros(rail)
    answers = asyncio.run(buy())
    assert paid_micros(rail) - paid == PRICE
    assert [answer["echo"] for answer in answers] == ["at once"] * 3


@pytest.mark.parametrize("rail", ("x402", "mpp"))
def test_a_sandbox_is_refused_by_a_client_that_was_not_made_for_it(rail: str) -> None:
    before = desk("state")
    with Farebox(URL, **paying(rail)) as farebox:
        with pytest.raises(SandboxRefused):
            farebox.call("ping")
    assert desk("state") == before


def test_a_wallet_pays_the_first_way_that_it_can() -> None:
    with Farebox(URL, sandbox=True, wallet=Wallet(ADDRESS, sign, pay_by=("mpp", "x402"))) as farebox:
        assert farebox.call("ping").receipt.rail == "mpp"
        # Not sold by MPP.
        assert farebox.call("gas-price-oracle").receipt.rail in ("mpp", "x402")
    with Farebox(URL, sandbox=True, wallet=Wallet(ADDRESS, sign, networks=("eip155:1",))) as farebox:
        with pytest.raises(CannotPay):
            farebox.call("ping")


@pytest.mark.parametrize("rail", ("key", "x402"))
def test_what_does_not_fit_costs_nothing(rail: str) -> None:
    before = paid_micros(rail)
    with client(rail) as farebox:
        with pytest.raises(CallFailed) as failed:
            farebox.call("ping", {"message": 7})
    assert (failed.value.code, failed.value.charged, failed.value.status) == ("INVALID_REQUEST", False, 400)
    assert failed.value.request_id is not None
    assert httpx.get(str(failed.value.doc_url)).status_code == 200
    assert paid_micros(rail) == before


def test_an_unknown_service_is_told() -> None:
    with client("key") as farebox:
        with pytest.raises(CallFailed) as failed:
            farebox.call("no-such-service")
    assert (failed.value.code, failed.value.status, failed.value.charged) == ("UNKNOWN_SERVICE", 404, False)


def test_the_first_program_of_the_readme_runs(tmp_path: Path) -> None:
    here = Path(__file__).parent.parent
    program = (here / "README.md").read_text().split("```python\n")[1].split("```")[0]
    ran = subprocess.run(
        [sys.executable, "-B", "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(here / "src"), "FAREBOX_URL": URL, "FAREBOX_API_KEY": KEY},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    price, micros, call_id = ran.stdout.split()
    assert float(price) > 0 and micros == str(PRICE) and len(call_id) == 36
    assert (tmp_path / "farebox-purchases.json").exists()
