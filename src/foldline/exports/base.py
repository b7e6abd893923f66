"""The input of every export format: the steps of a session in order, and its metadata."""

from __future__ import annotations

import re
import shlex
from binascii import a2b_base64
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec

from foldline.catalogue.names import MAKERS, take_apart
from foldline.core.log.codec import encode, encode_utf8
from foldline.core.log.entries import Edit, dated
from foldline.core.log.log import digest
from foldline.core.log.messages import Media, Message, Native, Opaque, Part, Usage
from foldline.dialects.values import Losses
from foldline.transcripts.places import project_names

MEASURED_BEFORE = "usage measured before the fold left out"  # every fold causes this loss
RESULT_CAP = 2_000
"""Characters of a tool result that a readable export shows by default."""

_FAMILIES = {
    "claude": "anthropic", "gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "codex": "openai",
    "gemini": "google", "grok": "xai", "mistral": "mistral", "devstral": "mistral", "deepseek": "deepseek",
    "kimi": "moonshotai", "glm": "zai", "minimax": "minimax", "qwen": "alibaba",
}  # fmt: skip
_APIS = {"anthropic": "anthropic-messages", "google": "google-generative-ai", "openai": "openai-responses"}
_DIALECT_APIS = {"openai-chat": "openai-completions", "openai-responses": "openai-responses"}


class SaidStep(msgspec.Struct, frozen=True):
    """A message to write. `key` is its entry's id; for a message added by the view, derived from that.

    `measured` is False if its usage was counted on a different context; `kind` is said, or the view's name
    for a message that it adds (ack, unanswered, late, pin).
    """

    key: str
    message: Message
    edits: tuple[Edit, ...] = ()
    at: float | None = None
    measured: bool = True
    kind: str = "said"


class FoldStep(msgspec.Struct, frozen=True):
    """A boundary to write. `text` is complete, with pins and ledger; `summary` is the summary alone.

    `message` is how a view renders it; `first_kept` is the key of the first message that it kept. `number`
    counts the path's compactions, `folded` the messages that it folded; `origin` is what its source file says
    about it, `ledger` the facts in builtins. `earlier`: the boundaries before a view's, oldest first.
    """

    key: str
    text: str
    summary: str
    message: Message
    first_kept: str | None = None
    tokens_before: int = 0
    automatic: bool = False
    imported: bool = False
    quoted: tuple[str, ...] = ()
    at: float | None = None
    number: int = 1
    origin: dict[str, Any] = {}
    ledger: dict[str, Any] = {}
    folded: int = 0
    earlier: tuple[FoldStep, ...] = ()

    @property
    def words(self) -> str:
        """The summary for another tool: another agent's alone, ours with pins and ledger."""
        return self.summary if self.imported else self.text


Step = SaidStep | FoldStep
Out = Callable[[bytes], object]


class Origin(msgspec.Struct, frozen=True):
    """Metadata of the session. Times are Unix seconds.

    `kept` are the keys that boundaries name as their first kept message, `quoted` those of older messages
    that they quote; `cap` is how many characters of a result a readable format shows (None: all). `system` is
    a system prompt separate from the messages.
    """

    session: str
    started: float
    ended: float
    cwd: str
    title: str | None = None
    model: str | None = None
    view: bool = False
    kept: frozenset[str] = frozenset()
    quoted: frozenset[str] = frozenset()
    cap: int | None = RESULT_CAP
    system: Message | None = None

    def uuid(self, form: str, leaf: str | None) -> str:
        """Return the session's id in another tool: always the same for the same export."""
        return uuid_of(digest(encode([form, self.session, leaf, self.view])))


class ExportWriter:
    """Write one session in one format to `out`, piece by piece; each format is a subclass.

    `own_boundaries`: the format has boundaries; otherwise a view's checkpoint is a message. `quotes`: its
    boundaries contain the older messages that they quote. `stepwise`: its messages never contain the results
    of their own calls. `joins`: calls that are answered together must be in one reply. `kept_at` is the path
    where the other tool keeps a session, `resumed_by` the command that resumes it; `resume` fills them in.
    """

    own_boundaries: ClassVar[bool] = True
    quotes: ClassVar[bool] = False
    stepwise: ClassVar[bool] = False
    joins: ClassVar[bool] = False
    kept_at: ClassVar[str] = ""
    resumed_by: ClassVar[str] = ""

    def __init__(self, origin: Origin, session: str, out: Out) -> None:
        self.origin = origin
        self.session = session
        self.out = out
        self.losses = Losses()
        self.count: int = 0
        self.begun = False  # a message or a boundary was written
        self._time = origin.started - 0.001
        self._places: dict[str, str] = {}
        self._unplaced: list[str] = []

    def begin(self) -> None:
        """Yield what comes before the first message."""

    def say(self, step: SaidStep) -> None:
        """Yield a message."""
        raise NotImplementedError

    def fold(self, step: FoldStep) -> None:
        """Yield a boundary."""
        raise NotImplementedError

    def end(self) -> None:
        """Yield what comes after the last message."""

    def beside(self) -> dict[str, bytes]:
        """Return further files by name: a suffix to the stem of the export's name, or "/" and a name."""
        return {}

    def resume(self) -> tuple[str, str] | None:
        """Return the path where the other tool expects the file, and the command that resumes it."""
        if not self.resumed_by:
            return None
        started = iso(self.origin.started)
        time = re.sub("[:.]", "-", started)
        names = {"session": self.session, "day": started[:10].replace("-", "/"), "time": time}
        names |= {"second": time[:19], **project_names(self.origin.cwd)}
        place = self.kept_at.format_map(names)
        return place, self.resumed_by.format_map({**names, "place": quoted(place)})

    def line(self, value: Any) -> None:
        """Write a JSON value as one line."""
        self.out(line(value))

    # ---- for subclasses: the ids under which messages were written, which boundaries refer to

    def expect(self, step: SaidStep) -> None:
        """Note that a boundary may name the next item written as its first kept message."""
        if step.key in self.origin.kept:
            self._unplaced.append(step.key)

    def wrote(self, place: str) -> None:
        """Note the id under which a message was written."""
        for key in self._unplaced:
            self._places[key] = place
        self._unplaced.clear()

    def place(self, key: str | None) -> str | None:
        """Return the id under which the message with that key, or the first one after it, was written."""
        return self._places.get(key) if key is not None else None

    def forget_places(self) -> None:
        """Forget what was written so far: no later boundary can name it."""
        self._places.clear()
        self._unplaced.clear()

    def model(self, message: Message, unknown: str) -> str:
        """Return the model to write for a reply: its own, else the session's, else `unknown`."""
        if message.model is None and self.origin.model is not None:
            self.losses.add("replies without a model carry the session's")
        return message.model or self.origin.model or unknown

    def time(self, when: float | None) -> float:
        """Return a recorded time (Unix seconds), else a millisecond after the last one."""
        self._time = self._time + 0.001 if when is None else when
        return self._time

    def boundary_time(self, step: FoldStep) -> float:
        """Return the time of a boundary; a view has it before older messages, so its own time is not used."""
        return self.time(None if self.origin.view else step.at)

    def lose(self, part: Part) -> None:
        """Count a part that the format cannot represent."""
        kind = part.kind if isinstance(part, Media) else type(part).__name__.lower()
        self.losses.add(
            f"{part.dialect} {part.kind} left out" if isinstance(part, Opaque) else f"{kind} left out"
        )

    def lost(self, warnings: tuple[str, ...]) -> None:
        """Count the losses that a dialect's rendering warned of."""
        for warning in warnings:
            kind, _, count = warning.rpartition(" (")
            self.losses.add(kind, int(count.rstrip(")")))

    def usage(self, step: SaidStep) -> Usage | None:
        """Return the usage to write; None if it was counted on a different context."""
        if step.message.usage is not None and not step.measured:
            self.losses.add(MEASURED_BEFORE)
            return None
        return step.message.usage


def iso(when: float) -> str:
    """Return a Unix time as agents write it: ISO 8601, UTC, milliseconds, Z; 1970 for an invalid time."""
    moment = datetime.fromtimestamp(dated(when) or 0, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def uuid_of(h: str) -> str:
    """Return 32 hex characters as a UUID (RFC 9562), marked version 4 so that every tool accepts it."""
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-{'89ab'[int(h[16], 16) % 4]}{h[17:20]}-{h[20:32]}"


def is_readable(media: Media) -> bool:
    """Return whether media data is valid base64: some tools fail on anything else."""
    if media.data is None:
        return True
    try:
        a2b_base64(media.data, strict_mode=True)
    except ValueError:
        return False
    return True


def part_key(key: str, number: int) -> str:
    """Return the key of a piece of a message; the first piece has the message's own key."""
    return key if number == 0 else digest(f"{key}:{number}".encode())


def quoted(path: str) -> str:
    """Quote a path for a shell; a leading ~ still means the home folder."""
    head, rest = ("~/", path[2:]) if path.startswith("~/") else ("", path)
    return head + shlex.quote(rest)


def line(value: Any) -> bytes:
    """Encode a JSON value as one line."""
    return encode_utf8(value) + b"\n"


def provider_of(model: str, native: Native | None, *, signed: bool = False) -> tuple[str, str]:
    """Return the provider and the API of a model by its name: ("anthropic", "anthropic-messages").

    A reply with a signature came from Anthropic's API, whatever the model's name. The provider is "unknown"
    if the name does not show it.
    """
    if signed:
        return "anthropic", _APIS["anthropic"]
    named = next((reading for reading in take_apart(model) if reading.provider), None)
    stem = model.rpartition("/")[2].lower()
    by_family = (maker for family, maker in _FAMILIES.items() if stem.startswith(family))
    maker = named.provider if named else next(by_family, None)
    if maker is None or (named is None and maker not in MAKERS):
        return "unknown", _DIALECT_APIS.get(native.dialect if native else "", "openai-completions")
    return maker, _APIS.get(maker, "openai-completions")
