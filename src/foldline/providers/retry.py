"""Retry after transient failures, with back-off and jitter or as the server asks, and within limits.

An overflow is never retried: the same messages would overflow again.
"""

from __future__ import annotations

import importlib
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import msgspec

from foldline.errors import InputError, ProviderError
from foldline.providers.base import PATIENCE, Call, Delta, Provider, Reply
from foldline.providers.failures import refused


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How often and how long to retry. Times in seconds.

    `attempts` in all, within `timeout` of the first; waits double from `first` to `longest`, each with
    up to `jitter` more. After a refused connection or an unknown host name, likely typing errors, there are
    only `refused` attempts. A Retry-After replaces the wait; one longer than `most`, `timeout` or the call's
    own timeout ends the retries.
    """

    attempts: int = 6
    refused: int = 3
    timeout: float = 300.0
    first: float = 1.0
    longest: float = 30.0
    jitter: float = 1.0
    most: float = 60.0


class Retrying:
    """A provider that retries another provider's calls after transient failures.

    A stream has a `wait` delta for each failure before a retry, and a `restart` delta if pieces that were
    sent already are void.
    """

    def __init__(self, provider: Provider, patience: Patience | None = None) -> None:
        self.provider = provider
        self.patience = patience or Patience()

    def __repr__(self) -> str:
        return f"<Retrying {self.provider!r}>"

    @property
    def name(self) -> str:
        """The wrapped provider's name."""
        return self.provider.name

    @property
    def dialect(self) -> str:
        """The wrapped provider's dialect."""
        return self.provider.dialect

    async def complete(self, call: Call) -> Reply:
        """Request a whole reply; raises the last ProviderError."""
        async for attempt in self._attempts(call):
            with attempt:
                return await self.provider.complete(call)
        raise AssertionError("unreachable")

    async def stream(self, call: Call) -> AsyncIterator[Delta | Reply]:
        """Stream a reply piece by piece; raises the last ProviderError."""
        sent, started = False, time.monotonic()
        async for attempt in self._attempts(call):
            if sent:
                yield Delta("restart")
                sent = False
            try:
                # our streams are generators: closing one closes its connection
                async with aclosing(cast("Any", self.provider.stream(call))) as pieces:
                    async for piece in pieces:
                        yield piece
                        sent = True
            except ProviderError as error:
                failure = error
            else:
                return
            with attempt:  # suppresses the error if there is a retry; a yield in here could be suppressed too
                raise failure
            seconds = self._next_wait(call, failure, attempt, time.monotonic() - started)
            if seconds is not None:
                reason = str(failure).removeprefix(f"{failure.provider}: ")
                yield Delta("wait", reason, index=attempt.num, seconds=seconds)

    async def close(self) -> None:
        """Close the wrapped provider's connections."""
        await self.provider.close()

    async def _attempts(self, call: Call) -> AsyncGenerator[Any]:
        patience, number = self.patience, 0

        def retries(error: Exception) -> bool | float:
            return self._retries(call, error, number)

        attempts = _stamina().retry_context(
            on=retries,
            attempts=patience.attempts,
            timeout=patience.timeout,
            wait_initial=patience.first,
            wait_max=patience.longest,
            wait_jitter=patience.jitter,
        )
        async for attempt in attempts:
            number = attempt.num
            yield attempt

    def _next_wait(self, call: Call, error: ProviderError, attempt: Any, elapsed: float) -> float | None:
        """Return the shortest wait before the next attempt, in seconds; None if there is no next attempt."""
        patience = self.patience
        if attempt.num >= patience.attempts or elapsed >= patience.timeout:
            return None
        if not self._retries(call, error, attempt.num):
            return None
        return attempt.next_wait if error.retry_after is None else error.retry_after

    def _retries(self, call: Call, error: Exception, number: int) -> bool | float:
        """Return whether to retry after an attempt (True: after the usual wait), or the seconds to wait."""
        if not isinstance(error, ProviderError) or not error.transient:
            return False
        if number >= self.patience.refused and refused(error):
            return False
        if error.retry_after is None:
            return True
        if error.retry_after > min(self.patience.most, self.patience.timeout, call.timeout or PATIENCE):
            return False
        return error.retry_after + random.uniform(0, self.patience.jitter)


def _stamina() -> Any:
    try:
        return importlib.import_module("stamina")
    except ImportError as error:
        raise InputError(
            "stamina is not installed: pip install 'foldline[openai]' or 'foldline[anthropic]'"
        ) from error
