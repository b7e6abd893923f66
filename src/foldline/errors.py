"""Every exception that Foldline raises on purpose.

FoldlineError
|-- InputError               the call or the input is wrong (exit 2)
|   |-- FormatError          a file or list cannot be read; names the place
|   |-- DialectError         a message does not fit its dialect; names the message
|   |-- PolicyError          a policy or a setting is not understood
|   |-- SessionNotFound      no such session in the store
|   `-- SessionDiverged      the stored session of this id continues differently
|-- StoreError               a store operation failed
|   |-- LeafMoved            another writer appended first; nothing was written
|   |-- StoreCorrupt         stored data was changed or is missing
|   `-- StoreVersion         the database was written by a newer Foldline (exit 2)
|-- CallsOpen                the view was requested while tool calls have no result
|-- ProviderError            a model's provider refused, failed or did not answer; see its `kind`
|-- FloorExceeded            the parts that no compaction can remove exceed the budget
`-- CompactionFailed         a compaction could not be made; the session is as it was
    `-- OverflowRemains      a folded request still does not fit; lists the parts that cannot be removed
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable
from typing import Any, Final, Literal


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ` (did you mean 'x'?)` for the known name closest to an unknown one; "" if none is close."""
    if not isinstance(name, str):
        return ""
    by_case = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_case, n=1, cutoff=0.6)
    return f" (did you mean {by_case[close[0]]!r}?)" if close else ""


class FoldlineError(Exception):
    """Base of all exceptions that Foldline raises; their text says what to do."""

    exit_code = 1

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by `__dict__`: `args` has only the message, not the arguments of a subclass."""
        return self.__new__, (type(self), *self.args), self.__dict__


class InputError(FoldlineError):
    """The call or the input is wrong."""

    exit_code = 2


class FormatError(InputError):
    """A session file or message list cannot be read.

    `where` is the file, `line` the 1-based line (None if unknown).
    """

    def __init__(self, message: str, *, where: str = "", line: int | None = None) -> None:
        self.where = where
        self.line = line
        place = f"{where}:{line}: " if where and line else f"{where}: " if where else ""
        super().__init__(place + message)


class DialectError(InputError):
    """A message does not fit its dialect; `index` is its place in the list."""

    def __init__(self, message: str, *, index: int | None = None) -> None:
        self.index = index
        super().__init__(message if index is None else f"message {index}: {message}")


class PolicyError(InputError):
    """A policy or a setting is not understood."""


class SessionNotFound(InputError):
    """The store has no such session."""


class SessionDiverged(InputError):
    """The stored session of this id continues differently. Nothing was written."""


class StoreError(FoldlineError):
    """A store operation failed; everything stored before is still there."""


class LeafMoved(StoreError):
    """Another writer appended first. Nothing was written; read the new leaf and decide again."""

    def __init__(self, message: str, *, leaf: str | None = None) -> None:
        self.leaf = leaf
        super().__init__(message)


class StoreCorrupt(StoreError):
    """A stored entry does not hash to its id, or an entry that it needs is missing."""


class StoreVersion(StoreError):
    """The database was written by a newer Foldline."""

    exit_code = 2


class CallsOpen(FoldlineError):
    """The view was requested while tool calls have no result; `call_ids` lists them."""

    def __init__(self, call_ids: tuple[str, ...]) -> None:
        self.call_ids = call_ids
        shown = ", ".join(call_ids[:5]) + (" ..." if len(call_ids) > 5 else "")
        super().__init__(f"tool calls without a result: {shown}. Append their results, or a user message.")


class FloorExceeded(FoldlineError):
    """The parts that no compaction can remove exceed the budget.

    `floor` and `budget` are in Foldline's own tokens; `breakdown` maps each part of the floor to its tokens.
    """

    def __init__(self, floor: int, budget: int, breakdown: dict[str, int]) -> None:
        self.floor = floor
        self.budget = budget
        self.breakdown = breakdown
        parts = ", ".join(f"{name} {tokens:,}" for name, tokens in breakdown.items() if tokens)
        super().__init__(
            f"cannot fit {budget:,} tokens: {floor:,} cannot be removed ({parts}). "
            f"Raise the target to at least {floor:,}, or shorten these parts."
        )


class CompactionFailed(FoldlineError):
    """A compaction could not be made; the session is as it was."""


class OverflowRemains(CompactionFailed):
    """A request does not fit its model, and folding no longer helps.

    `view_tokens` and `floor` are in Foldline's own tokens. `limit` (the largest request) and `asked` (this
    one) are the provider's figures, None if unknown. `breakdown` maps each part of the floor to its tokens.
    """

    def __init__(
        self,
        why: str,
        *,
        view_tokens: int,
        floor: int,
        breakdown: dict[str, int],
        limit: int | None = None,
        asked: int | None = None,
    ) -> None:
        self.view_tokens = view_tokens
        self.floor = floor
        self.breakdown = breakdown
        self.limit = limit
        self.asked = asked
        counted = f"; the provider counted {asked:,}" if asked else ""
        known = f" and takes {limit:,} at most" if limit else ""
        parts = ", ".join(f"{name} {tokens:,}" for name, tokens in breakdown.items() if tokens)
        super().__init__(
            f"the request does not fit the model: {why}. The view takes {view_tokens:,} tokens by our count"
            f"{counted}{known}. {floor:,} tokens cannot be removed ({parts}): shorten the largest of these "
            "parts, or use a model with a larger window."
        )


ProviderKind = Literal[
    "overflow", "rate", "overloaded", "server", "timeout", "connection", "auth", "bad_request", "malformed",
    "cancelled",
]  # fmt: skip
TRANSIENT: Final = frozenset({"rate", "overloaded", "server", "timeout", "connection", "malformed"})


class ProviderError(FoldlineError):
    """A model's provider refused, failed or did not answer.

    `kind` is the kind of failure, `status` the HTTP status (None without a response), `retry_after` the
    seconds that the provider asks to wait, `text` its message without keys, `overflow` the sizes of an
    overflow (`core/measure/overflow.py`).
    """

    def __init__(
        self,
        text: str,
        *,
        kind: ProviderKind,
        status: int | None = None,
        retry_after: float | None = None,
        overflow: Any = None,
        provider: str = "",
    ) -> None:
        self.text = text
        self.kind: ProviderKind = kind
        self.status = status
        self.retry_after = retry_after
        self.overflow = overflow
        self.provider = provider
        code = f" ({status})" if status else ""
        later = f" (try again in {math.ceil(retry_after):,} s)" if retry_after else ""
        super().__init__(f"{f'{provider}: ' if provider else ''}{kind}{code}: {text}{later}")

    @property
    def transient(self) -> bool:
        """Whether the same call may succeed later; an overflow never does."""
        return self.kind in TRANSIENT
