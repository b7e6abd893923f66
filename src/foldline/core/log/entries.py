"""The entries of the log: immutable records, each chained to its parent by its id."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from foldline.core.log.messages import Message, Part, Usage

EXCLUDED: Final = "excluded"  # the kind of an edit with which the user took a part out of the context
YEAR_10000: Final = 253_402_300_800  # in Unix time


class Edit(msgspec.Struct, frozen=True, omit_defaults=True):
    """A boundary's change of one part of a kept entry; `replacement` None removes the part.

    `kind` is blanked (an old tool result), reduced (old images scaled down or replaced by a note), elided
    (the middle of a large part), stripped (signed thinking after a changed prefix), repaired (what no
    provider accepts), folded (a message of a range that a summary replaces; the range's first message has the
    summary as `replacement`) or excluded (taken out by the user; no later fold may mention it).
    """

    entry: str
    part: int
    kind: str
    replacement: Part | None = None
    saved: int = 0  # tokens by which the entry shrinks


class Pin(msgspec.Struct, frozen=True):
    """A pinned entry and its text, which every later view quotes."""

    entry: str
    text: str


class Live(msgspec.Struct, frozen=True):
    """A piece of live state, such as `todos`, as a program rendered it."""

    name: str
    text: str


class Carried(msgspec.Struct, frozen=True, omit_defaults=True):
    """A text that a checkpoint quotes word for word beside its summary.

    `kind` is instructions (of a project, from a user message) or summary (of earlier conversation, by an
    agent or a server). `sources` are the files it comes from, or the form of the text. `entry` is the entry
    that holds it, "" if unknown.
    """

    kind: str
    sources: tuple[str, ...]
    text: str
    entry: str = ""


Reason = Literal["manual", "threshold", "overflow", "model_switch", "agent", "target"]


class StandingConstraints(msgspec.Struct, frozen=True, omit_defaults=True):
    """The user's standing constraints after a boundary.

    `texts` are those kept word for word, `kept` their number, `excess` those without room.
    """

    kept: int
    texts: tuple[str, ...]
    excess: tuple[str, ...] = ()


class Certificate(msgspec.Struct, frozen=True, omit_defaults=True):
    """In how many recorded decisions a fold changes nothing: `model` repeated them from both contexts.

    How often each context repeats the recorded decision separates the model's randomness from the fold's
    effect. `failed` decisions could not be repeated. `price` is in USD, None if unknown.
    """

    decisions: int
    unchanged: int
    whole_as_recorded: int
    folded_as_recorded: int
    failed: int = 0
    model: str = ""
    price: float | None = None

    @property
    def words(self) -> str:
        """The result in words."""
        more = f"; {self.failed} could not be repeated" if self.failed else ""
        return (
            f"the next action is unchanged in {self.unchanged} of {self.decisions} repeated decisions "
            f"(as recorded: {self.whole_as_recorded} from the whole context, {self.folded_as_recorded} from "
            f"the folded one{more})"
        )


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a boundary did. Token figures are Foldline's own count, including system prompt and tools.

    `reason` is `imported` for a boundary by another agent; `origin` is then the record in that agent's file.
    `repeated` counts how often the summary was requested again because the requesting process died.
    `created_at` is ISO 8601 UTC; `by_category` maps a category to [tokens before, tokens after].
    `constraints` is None if they were not collected, `certificate` if the policy does not ask for it.
    """

    reason: Reason | Literal["imported"]
    created_at: str = ""
    first_kept: str | int | None = None
    tokens_before: int = 0
    tokens_after: int = 0
    messages_before: int = 0
    messages_after: int = 0
    dropped: dict[str, Any] = {}
    by_category: dict[str, tuple[int, int]] = {}
    constraints: StandingConstraints | None = None
    policy: str = ""
    summarizer: str = ""
    usage: Usage | None = None
    price: float | None = None
    duration_ms: float = 0.0
    notes: tuple[str, ...] = ()
    origin: dict[str, Any] = {}
    repeated: int = 0
    certificate: Certificate | None = None


class Checkpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """What replaces the entries before a cut, as the model reads it, frozen until the next boundary.

    `text` is the whole message (marker, prefix, summary, ledger, pins, live state, suffix), `summary` only
    the summary. `position` is before or after the quoted user messages; `number` counts the compactions of
    the path. `live` is the live state, `standing` the session's state (a `Continuation` in builtins),
    `carried` the instructions and earlier summaries, `marks` the texts that the user marked to be kept, each
    with its entry.
    """

    text: str
    summary: str
    role: str = "user"
    ack: str | None = None
    position: str = "before"
    pins: tuple[Pin, ...] = ()
    tokens: int = 0
    number: int = 1
    live: tuple[Live, ...] = ()
    standing: dict[str, Any] = {}
    carried: tuple[Carried, ...] = ()
    marks: tuple[Pin, ...] = ()


class Said(msgspec.Struct, frozen=True, tag="said", omit_defaults=True):
    """A message. `tokens` is the estimate made at append; `at` is Unix time, left out of the id."""

    id: str
    parent: str | None
    message: Message
    said_key: str
    tokens: int = 0
    at: float | None = None


class Compacted(msgspec.Struct, frozen=True, tag="compacted", omit_defaults=True):
    """A boundary that folds what came before `first_kept` into a checkpoint.

    It is self-contained: `leading` (system and developer messages at the head), `quoted` (older user messages
    kept word for word) and `edits` describe the view except for the entries from `first_kept` on.
    `first_kept` None keeps no earlier message. `ledger` is the ledger in builtins. `seen` is the newest
    message at planning, if more messages came before the boundary was appended.
    """

    id: str
    parent: str | None
    checkpoint: Checkpoint
    receipt: Receipt
    first_kept: str | None = None
    leading: tuple[str, ...] = ()
    quoted: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    ledger: dict[str, Any] = {}
    at: float | None = None
    seen: str | None = None


class Pruned(msgspec.Struct, frozen=True, tag="pruned", omit_defaults=True):
    """A boundary that only edits kept entries; `seen` as in `Compacted`."""

    id: str
    parent: str | None
    receipt: Receipt
    edits: tuple[Edit, ...] = ()
    at: float | None = None
    seen: str | None = None

    @property
    def excludes(self) -> bool:
        """Whether the user took something out of the context with this boundary."""
        return any(edit.kind == EXCLUDED for edit in self.edits)


class Lifted(msgspec.Struct, frozen=True, tag="lifted", omit_defaults=True):
    """A boundary or a server's compaction undone (`lifted` True) or redone; later messages stay."""

    id: str
    parent: str | None
    target: str
    lifted: bool
    at: float | None = None


class Pinned(msgspec.Struct, frozen=True, tag="pinned", omit_defaults=True):
    """An entry pinned (`on` True) or unpinned; `text` is what later views quote."""

    id: str
    parent: str | None
    target: str
    on: bool
    text: str = ""
    at: float | None = None


class Noted(msgspec.Struct, frozen=True, tag="noted", omit_defaults=True):
    """A fact about the session: title, model, strike, cooldown, continuation, live state, summary cost."""

    id: str
    parent: str | None
    kind: str
    data: dict[str, Any] = {}
    at: float | None = None


Entry = Said | Compacted | Pruned | Lifted | Pinned | Noted
Boundary = Compacted | Pruned | Lifted


def dated(at: float | None) -> float | None:
    """Return a Unix time if it is in the years 1970 to 9999, else None."""
    return at if at is not None and 0 <= at < YEAR_10000 else None
