"""The kinds of fact that code takes from entries. Each cites the entries it stands in.

Their `status` and `kind` are `str`: a ledger is read back from a log, which another version may have written
with words that this one does not know.
"""

from __future__ import annotations

import msgspec


class FileFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file and what became of it: `status` is read, created, modified or deleted (the latest that counts).

    `notes` are short reasons or contents near its uses, newest last.
    """

    path: str
    status: str
    uses: int = 1
    notes: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()


class CommandFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A shell command; `passed` is None where the result does not say; `outcome` is its telling line.

    `why` is the reason given for its newest run, `work` the key of the work that this was part of; `outdated`
    says that a file was changed after it.
    """

    command: str
    passed: bool | None = None
    outcome: str = ""
    uses: int = 1
    entries: tuple[str, ...] = ()
    why: str = ""
    work: str = ""
    outdated: bool = False


class CommitFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A commit: its hash, branch and first line; `later` are the files that were changed after it."""

    key: str
    branch: str
    subject: str
    pushed: bool = False
    later: tuple[str, ...] = ()
    entries: tuple[str, ...] = ()


class ErrorFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A distinct error and whether a later run of the same thing passed (`fixed`).

    `work` is the key of the work that it was last met in.
    """

    text: str
    source: str = ""
    fixed: bool = False
    uses: int = 1
    entries: tuple[str, ...] = ()
    work: str = ""


class RequestFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the user asked, verbatim; `question` is what the assistant had asked just before, if anything.

    `by` names the speaker, where several people speak as the user.
    """

    text: str
    entry: str
    question: str = ""
    by: str = ""

    @property
    def told(self) -> str:
        """The request with the name of who made it."""
        return f"{self.by}: {self.text}" if self.by else self.text


class ConstraintFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A standing constraint, verbatim; `subject` is what a newer one must share to supersede it.

    `later` holds where it may change an older one that stands too; `by` names the speaker, where several
    people speak as the user.
    """

    text: str
    entry: str
    subject: str = ""
    pinned: bool = False
    later: bool = False
    by: str = ""

    @property
    def told(self) -> str:
        """The constraint with the name of who stated it."""
        return f"{self.by}: {self.text}" if self.by else self.text


class DecisionFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A choice that was made, in the words it was made in; `user` where they are the user's.

    `work` is the key of the work that it was made in.
    """

    text: str
    entry: str
    user: bool = False
    work: str = ""


class ValueFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """An id, URL or number used in tool arguments, with the words that say what it was for.

    `kind` is id, url, number or name; `name` is what it is the value of ("port"), where known: a newer
    value of the same name replaces it.
    """

    value: str
    kind: str
    words: str = ""
    name: str = ""
    uses: int = 1
    entries: tuple[str, ...] = ()


class OpenFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """Work not finished: `kind` is todo, plan, call (never answered) or next; `state` as the tool put it.

    `then` is what the user said right after a call that was never answered.
    """

    text: str
    kind: str
    state: str = ""
    entry: str = ""
    then: str = ""


class ReportFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the assistant reported as done or as the state of things, verbatim, and the key of its work."""

    text: str
    entry: str
    work: str = ""


class WorkFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request and what came of it: an item of the work log.

    `asked` is the request, "" where a range begins in the middle of the work on one; `question` is what the
    request answers. `files` were changed, `ran` is the newest run of each command, `closing` holds sentences
    of the assistant's last words, which are final where `answered`. `media` names the images and documents
    that came with the request or with results, `found` the newest answers of tools that the provider ran;
    `before` counts requests just before it that are not carried.
    """

    asked: str
    entry: str = ""
    question: str = ""
    files: tuple[FileFact, ...] = ()
    ran: tuple[CommandFact, ...] = ()
    closing: tuple[str, ...] = ()
    answered: bool = False
    entries: tuple[str, ...] = ()
    media: tuple[str, ...] = ()
    found: tuple[str, ...] = ()
    before: int = 0

    @property
    def key(self) -> str:
        """What steps of the work name it by: its entry, or its words where it was read from a page."""
        return self.entry or self.asked


class ToolFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often a tool was used, and its three most notable uses."""

    name: str
    uses: int
    notable: tuple[str, ...] = ()


class Excerpt(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A sentence or line carried forward because the future is likely to need what it names.

    `topic` groups excerpts (a file's path, a task); `weight` is its salience when it was chosen; `kind` says
    what it is (see `passages.py`); `names` maps the key of each name it carries to that name's worth, 0 to 1;
    `note` is why the place that it quotes was looked at; `work` is the key of the work that it was part of.
    """

    text: str
    topic: str = ""
    weight: float = 0.0
    entry: str = ""
    kind: str = ""
    names: dict[str, float] = {}
    note: str = ""
    work: str = ""


class Ledger(msgspec.Struct, frozen=True, omit_defaults=True):
    """All facts of a folded range, oldest first in each list."""

    requests: tuple[RequestFact, ...] = ()
    constraints: tuple[ConstraintFact, ...] = ()
    files: tuple[FileFact, ...] = ()
    commands: tuple[CommandFact, ...] = ()
    commits: tuple[CommitFact, ...] = ()
    errors: tuple[ErrorFact, ...] = ()
    decisions: tuple[DecisionFact, ...] = ()
    values: tuple[ValueFact, ...] = ()
    open: tuple[OpenFact, ...] = ()
    tools: tuple[ToolFact, ...] = ()
    reports: tuple[ReportFact, ...] = ()
    work: tuple[WorkFact, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    turns: int = 0
    messages: int = 0
