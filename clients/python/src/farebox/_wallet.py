"""How a wallet pays: what may be signed, and the payments that are made of a signature.

A payment is one transfer of USDC by EIP-3009 for exactly the price. It moves nothing before the server has its answer, and it is
settled once at most, whoever sends it how often. Terms come from a server that is not trusted.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Awaitable, Callable, Iterable, Mapping

from ._json import as_list, as_object, read_base64_object, write_base64
from ._keccak import checksummed, keccak256

#: Native USDC on each network. A wallet signs for nothing else, whatever is asked. Its signing domain is the same on all of them.
USDC: Mapping[str, str] = {
    "eip155:8453": "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    "eip155:137": "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359",
    "eip155:42161": "0xaf88d065e77c8cC2239327C5EDb3A432268e5831",
    "eip155:1": "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
}
#: A payment that stays good for longer is not signed; one that ends sooner could not be sent again after a lost answer.
MOST_VALID_SECONDS = 3_600
LEAST_VALID_SECONDS = 10
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_UNITS = re.compile(r"\d{1,15}")
_MOST_CHALLENGES = 50

Sign = Callable[[dict[str, Any]], "str | bytes | Awaitable[str | bytes]"]


@dataclass(frozen=True)
class Wallet:
    """An address, and what signs for it.

    ``sign`` is given typed data of EIP-712 (``types``, ``domain``, ``primaryType``, ``message``) and returns the signature as
    hex or bytes. With AsyncFarebox it may be a coroutine function. The key stays where it is.
    """

    address: str
    sign: Sign
    #: In the order in which they are tried.
    networks: tuple[str, ...] = tuple(USDC)
    #: ``x402``, ``mpp``: the first choice first.
    pay_by: tuple[str, ...] = ("x402", "mpp")

    def __post_init__(self) -> None:
        if not _ADDRESS.fullmatch(self.address):
            raise ValueError("a wallet's address is 0x and 40 hexadecimal digits")
        if not self.networks or any(network not in USDC for network in self.networks):
            raise ValueError(f"networks are of {', '.join(USDC)}")
        if not self.pay_by or any(way not in ("x402", "mpp") for way in self.pay_by):
            raise ValueError("pay_by is of x402 and mpp")


@dataclass(frozen=True)
class Transfer:
    """What is about to be signed, and the terms that it answers."""

    rail: str
    network: str
    to: str
    micros: int
    valid_before_s: int
    nonce: str
    #: The terms as they came, which are sent back.
    terms: Mapping[str, Any]


def x402_transfer(wallet: Wallet, header: str | None, now_s: int) -> Transfer | None:
    """Chooses what to pay of the terms of PAYMENT-REQUIRED; None when this wallet can pay none of them."""
    terms = read_base64_object(header)
    if terms is None or terms.get("x402Version") != 2:
        return None
    offers = [offer for each in as_list(terms.get("accepts"))[:_MOST_CHALLENGES] if (offer := as_object(each))]
    for network in wallet.networks:
        for offer in offers:
            if offer.get("network") == network and _is_plain_offer(offer):
                echo = {name: terms[name] for name in ("resource", "extensions") if name in terms}
                return Transfer(
                    rail="x402",
                    network=network,
                    to=offer["payTo"],
                    micros=int(offer["amount"]),
                    valid_before_s=now_s + int(offer["maxTimeoutSeconds"]),
                    nonce="0x" + secrets.token_hex(32),
                    terms={**echo, "accepted": offer},
                )
    return None


def _is_plain_offer(offer: Mapping[str, Any]) -> bool:
    """One transfer of USDC and nothing else: no allowance that would outlive it, no token that is only called so."""
    extra = as_object(offer.get("extra", {}))
    seconds = offer.get("maxTimeoutSeconds")
    return (
        offer.get("scheme") == "exact"
        and extra is not None
        and extra.get("assetTransferMethod", "eip3009") == "eip3009"
        and type(seconds) is int
        and LEAST_VALID_SECONDS <= seconds <= MOST_VALID_SECONDS
        and _is_usdc(str(offer.get("network")), offer.get("asset"))
        and _is_to_pay(offer.get("amount"), offer.get("payTo"))
    )


def mpp_transfer(wallet: Wallet, header: str | None, now_s: int) -> Transfer | None:
    """Chooses what to pay of the challenges of WWW-Authenticate; None when this wallet can pay none of them."""
    challenges = [each for each in challenges_of(header) if each.get("method") == "evm" and each.get("intent") == "charge"]
    for network in wallet.networks:
        for challenge in challenges:
            transfer = _transfer_of(challenge, network, now_s)
            if transfer is not None:
                return transfer
    return None


def _transfer_of(challenge: Mapping[str, str], network: str, now_s: int) -> Transfer | None:
    request = read_base64_object(challenge.get("request"))
    details = None if request is None else as_object(request.get("methodDetails"))
    if request is None or details is None or f"eip155:{details.get('chainId')}" != network:
        return None
    ends_s = _seconds_of(challenge.get("expires", ""))
    if (
        "authorization" not in as_list(details.get("credentialTypes"))
        or details.get("splits")
        or ends_s is None
        or not LEAST_VALID_SECONDS <= ends_s - now_s <= MOST_VALID_SECONDS
        or not _is_usdc(network, request.get("currency"))
        or not _is_to_pay(request.get("amount"), request.get("recipient"))
    ):
        return None
    # The authorization's nonce follows from the challenge, so one challenge is one payment.
    nonce = keccak256((challenge["id"] + challenge["realm"]).encode())
    return Transfer(
        rail="mpp",
        network=network,
        to=request["recipient"],
        micros=int(request["amount"]),
        valid_before_s=ends_s,
        nonce="0x" + nonce.hex(),
        terms=challenge,
    )


def typed_data(wallet: Wallet, transfer: Transfer) -> dict[str, Any]:
    """What the wallet signs. The domain is that of USDC as it is known here, not as the terms have it."""
    return {
        "types": {
            "EIP712Domain": [
                {"name": "name", "type": "string"},
                {"name": "version", "type": "string"},
                {"name": "chainId", "type": "uint256"},
                {"name": "verifyingContract", "type": "address"},
            ],
            "TransferWithAuthorization": [
                {"name": "from", "type": "address"},
                {"name": "to", "type": "address"},
                {"name": "value", "type": "uint256"},
                {"name": "validAfter", "type": "uint256"},
                {"name": "validBefore", "type": "uint256"},
                {"name": "nonce", "type": "bytes32"},
            ],
        },
        "domain": {
            "name": "USD Coin",
            "version": "2",
            "chainId": int(transfer.network.removeprefix("eip155:")),
            "verifyingContract": USDC[transfer.network],
        },
        "primaryType": "TransferWithAuthorization",
        "message": {
            "from": checksummed(wallet.address),
            "to": checksummed(transfer.to),
            "value": transfer.micros,
            "validAfter": 0,
            "validBefore": transfer.valid_before_s,
            "nonce": transfer.nonce,
        },
    }


def payment_headers(wallet: Wallet, transfer: Transfer, signature: str) -> dict[str, str]:
    """The header that pays."""
    payer = checksummed(wallet.address)
    authorization = {
        "from": payer,
        "to": checksummed(transfer.to),
        "value": str(transfer.micros),
        "validAfter": "0",
        "validBefore": str(transfer.valid_before_s),
        "nonce": transfer.nonce,
    }
    if transfer.rail == "x402":
        payload = {"signature": signature, "authorization": authorization}
        return {"PAYMENT-SIGNATURE": write_base64({"x402Version": 2, "payload": payload, **transfer.terms})}
    credential = {
        "challenge": dict(transfer.terms),
        "payload": {**authorization, "signature": signature, "type": "authorization"},
        "source": f"did:pkh:{transfer.network}:{payer}",
    }
    plain = write_base64(credential).replace("+", "-").replace("/", "_").rstrip("=")
    return {"Authorization": f"Payment {plain}"}


def signature_text(signature: Any) -> str | None:
    """A signature in hex with ``0x``; None for what is none. USDC takes 27 and 28 where some signers write 0 and 1."""
    if isinstance(signature, (bytes, bytearray)):
        signature = bytes(signature).hex()
    if not isinstance(signature, str):
        return None
    plain = signature.removeprefix("0x").lower()
    # Those of smart wallets are longer.
    if not re.fullmatch(r"([0-9a-f]{2}){65,2048}", plain):
        return None
    if len(plain) == 130 and plain[-2:] in ("00", "01"):
        plain = plain[:-2] + {"00": "1b", "01": "1c"}[plain[-2:]]
    return "0x" + plain


def challenges_of(header: str | None) -> list[dict[str, str]]:
    """Reads the ``Payment`` challenges of a WWW-Authenticate header; those that cannot be read are left out."""
    if header is None or len(header) > 65_536:
        return []
    found: list[dict[str, str]] = []
    for scheme, parameters in _schemes(header):
        if scheme.lower() == "payment" and {"id", "realm", "method", "intent", "request"} <= parameters.keys():
            found.append(parameters)
    return found[:_MOST_CHALLENGES]


_TOKEN = re.compile(r"[\s,]*([A-Za-z0-9_-]+)\s*")
_VALUE = re.compile(r'=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')


def _schemes(header: str) -> Iterable[tuple[str, dict[str, str]]]:
    at, current, parameters = 0, "", dict[str, str]()
    while token := _TOKEN.match(header, at):
        value = _VALUE.match(header, token.end())
        if value is None:
            # A word without a value begins the next challenge.
            if current:
                yield current, parameters
            current, parameters, at = token.group(1), {}, token.end()
            continue
        quoted, plain = value.groups()
        name = token.group(1).lower()
        parameters[name] = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = value.end()
    if current:
        yield current, parameters


def _is_usdc(network: str, asset: Any) -> bool:
    return isinstance(asset, str) and USDC.get(network, "").lower() == asset.lower() != ""


def _is_to_pay(units: Any, to: Any) -> bool:
    return (
        isinstance(units, str)
        and _UNITS.fullmatch(units) is not None
        and int(units) > 0
        and isinstance(to, str)
        and _ADDRESS.fullmatch(to) is not None
    )


def _seconds_of(moment: str) -> int | None:
    try:
        read = datetime.fromisoformat(moment.replace("Z", "+00:00"))
    except ValueError:
        return None
    return int((read if read.tzinfo else read.replace(tzinfo=timezone.utc)).timestamp())
