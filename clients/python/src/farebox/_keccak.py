"""Keccak-256, as Ethereum has it: the hash of a challenge, and the capitals of an address. hashlib has only its successor."""

from __future__ import annotations

_RATE = 136
_MASK = (1 << 64) - 1


def _round_constants() -> list[int]:
    constants: list[int] = []
    register = 1
    for _ in range(24):
        constant = 0
        for bit in range(7):
            if register & 1:
                constant ^= 1 << ((1 << bit) - 1)
            register = (register << 1) ^ (0x171 if register & 0x80 else 0)
        constants.append(constant)
    return constants


_ROUNDS = _round_constants()


def _turned(lane: int, by: int) -> int:
    return ((lane << by) | (lane >> (64 - by))) & _MASK if by else lane


def _permuted(lanes: list[int]) -> list[int]:
    for constant in _ROUNDS:
        columns = [lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20] for x in range(5)]
        mixed = [columns[x - 1] ^ _turned(columns[(x + 1) % 5], 1) for x in range(5)]
        lanes = [lane ^ mixed[at % 5] for at, lane in enumerate(lanes)]
        x, y, moving = 1, 0, lanes[1]
        moved = list(lanes)
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            at = x + 5 * y
            moving, moved[at] = lanes[at], _turned(moving, ((step + 1) * (step + 2) // 2) % 64)
        lanes = [
            moved[at] ^ (~moved[at - at % 5 + (at + 1) % 5] & _MASK & moved[at - at % 5 + (at + 2) % 5])
            for at in range(25)
        ]
        lanes[0] ^= constant
    return lanes


def keccak256(message: bytes) -> bytes:
    padded = bytearray(message) + b"\x01"
    padded += b"\x00" * (-len(padded) % _RATE)
    padded[-1] |= 0x80
    lanes = [0] * 25
    for start in range(0, len(padded), _RATE):
        for at in range(_RATE // 8):
            lanes[at] ^= int.from_bytes(padded[start + 8 * at : start + 8 * at + 8], "little")
        lanes = _permuted(lanes)
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


def checksummed(address: str) -> str:
    """The address with the capitals of EIP-55."""
    plain = address[2:].lower()
    digest = keccak256(plain.encode()).hex()
    return "0x" + "".join(
        letter.upper() if int(digit, 16) >= 8 else letter for letter, digit in zip(plain, digest)
    )
