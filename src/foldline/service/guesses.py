"""Wrong tokens, counted by the address that they come from: who sends many is told to wait."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from typing import Final

import msgspec
from starlette.responses import Response

from foldline.service.problems import needs_token, too_many

SECONDS: Final = 60.0  # over which wrong tokens are counted, from the first one on
MOST: Final = 10  # wrong tokens of one address in that time
ADDRESSES: Final = 10_000  # that are remembered; the one that was quiet for longest is forgotten first
TOO_MANY: Final = "too many wrong tokens came from this address: a right one is answered at any time"


class Denied(msgspec.Struct, frozen=True):
    """Why nobody is found for a request: no right token, or (`wait`, in seconds) too many wrong ones."""

    wait: float = 0.0

    def problem(self) -> Response:
        """Return it as problem details."""
        return too_many(self.wait, TOO_MANY) if self.wait else needs_token()


class Guesses:
    """Counts wrong tokens in this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}  # since when, how many; the latest one is the last

    def __len__(self) -> int:
        """Return how many addresses are remembered."""
        return len(self._counts)

    def wait(self, address: str) -> float:
        """Return for how many seconds an address is to send no other token, 0 where it may."""
        since, count = self._counts.get(_counted_as(address), (0.0, 0))
        return max(0.0, since + SECONDS - self._clock()) if count >= MOST else 0.0

    def add(self, address: str) -> None:
        """Count a wrong token."""
        name, now = _counted_as(address), self._clock()
        since, count = self._counts.pop(name, (now, 0))
        if now >= since + SECONDS:
            since, count = now, 0
        if len(self._counts) >= ADDRESSES:
            del self._counts[next(iter(self._counts))]
        self._counts[name] = (since, count + 1)


def _counted_as(address: str) -> str:
    """Return an IPv4 address, the network of an IPv6 one (/64: one client has it), "" for any other."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return ""
    if isinstance(known, ipaddress.IPv6Address):
        return str(known.ipv4_mapped or f"{int(known) >> 64:x}/64")
    return str(known)
