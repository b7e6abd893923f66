"""What code takes from entries and carries from fold to fold: items of the conversation, and a few facts.

Words of a kind or a status are `str`: a ledger is read back from a log, which another version may have
written.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from foldline.core.log.codec import prepared

Level = Literal[0, 1, 2, 3, 4]

USER: Final = 0  # the user's words, answers and refusals; what an earlier summary said
CLOSING: Final = 1  # the assistant's last words before the user speaks again, and plans put to the user
DONE: Final = 2  # what was changed and what was run
SAID: Final = 3  # the assistant's other prose
LOOKED: Final = 4  # what was read and searched, and prose that only announces a call

LEVELS: Final[dict[str, Level]] = {
    "user": USER,
    "answer": USER,
    "refused": USER,
    "summary": USER,
    "proposal": CLOSING,
    "edit": DONE,
    "ran": DONE,
    "commit": DONE,
    "called": DONE,
    "said": SAID,
    "looked": LOOKED,
    "aside": LOOKED,
    "gap": LOOKED,
}
SPOKEN: Final = ("user", "answer", "refused", "summary", "proposal", "said", "aside")


class Item(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One piece of a folded entry: its kind (a key of LEVELS), its text, and the entry it comes from.

    `more` is shown after the text where there is room: the new lines of an edit, the output of a run. `by`
    names the speaker, where several people speak as the user. `calls` are the calls that it tells of, repeats
    included. A gap stands for `messages` and `calls` that are no items any more.
    """

    kind: str
    text: str = ""
    entry: str = ""
    calls: int = 0
    messages: int = 0
    by: str = ""
    more: str = ""


class FileFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file and what became of it: `status` is read, created, modified or deleted, the latest of these.

    `moved` is where a deleted one went.
    """

    path: str
    status: str
    entries: tuple[str, ...] = ()
    moved: str = ""


class CheckFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """The newest run of a command that checks the work; `outdated`: a file was changed after it.

    `only_ran`: it reports no counts and never failed between other runs, so it may not be a check.
    """

    command: str
    outcome: str
    passed: bool | None = None
    entries: tuple[str, ...] = ()
    outdated: bool = False
    only_ran: bool = False


class CommitFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A commit: its hash, branch and first line."""

    key: str
    branch: str
    subject: str
    pushed: bool = False
    entries: tuple[str, ...] = ()


class PlanStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step of the plan or todo list as last written; `state` in the words of its tool.

    `task`: a task with its own number rather than a step of a list; None where a page does not say.
    """

    text: str
    state: str = ""
    entry: str = ""
    task: bool | None = None

    @property
    def number(self) -> str:
        """The number of a task, `#3`; "" for a step of a whole list."""
        numbered = self.text.startswith("#") if self.task is None else self.task
        return self.text.partition(" ")[0] if numbered else ""


class ConstraintFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """A standing constraint, verbatim.

    `later` holds where it may change an older one that is kept too; `by` names the speaker, where several
    people speak as the user.
    """

    text: str
    entry: str
    pinned: bool = False
    later: bool = False
    by: str = ""

    @property
    def told(self) -> str:
        """The constraint with the name of who stated it."""
        return f"{self.by}: {self.text}" if self.by else self.text


class ToolFact(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often a tool was used, and its three most notable uses."""

    name: str
    uses: int
    notable: tuple[str, ...] = ()


class MetName(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A name that calls used or results showed, how often and how lately (`weight`), and its file."""

    text: str
    weight: float = 0.0
    file: str = ""


class Ledger(msgspec.Struct, frozen=True, omit_defaults=True):
    """What code took from all that is folded, oldest first in each list.

    `base` is the folder that paths are relative to, `branch` the one at work, `goal` what the session was
    handed over for. `asked` is the newest request of what is kept, `answer` what the assistant said last
    before the newest request, where that is folded, `last` what was said or done last of all; `goes_on`: what
    is kept goes on with the last request of what is folded; `committed`: something was, told or not.
    `tokens` are those of all folded messages.
    """

    items: tuple[Item, ...] = ()
    constraints: tuple[ConstraintFact, ...] = ()
    files: tuple[FileFact, ...] = ()
    checks: tuple[CheckFact, ...] = ()
    commits: tuple[CommitFact, ...] = ()
    uncommitted: tuple[FileFact, ...] = ()
    plan: tuple[PlanStep, ...] = ()
    tools: tuple[ToolFact, ...] = ()
    names: tuple[MetName, ...] = ()
    base: str = ""
    goal: str = ""
    branch: str = ""
    asked: str = ""
    last: Item | None = None
    answer: str = ""
    goes_on: bool = False
    committed: bool = False
    turns: int = 0
    messages: int = 0
    tokens: int = 0

    @property
    def requests(self) -> tuple[str, ...]:
        """What the user said, oldest first."""
        said = (item for item in self.items if item.kind == "user")
        return tuple(f"{item.by}: {item.text}" if item.by else item.text for item in said)

    @property
    def newest_request(self) -> str:
        """What the user said last in what is folded; "" where nothing."""
        return self.requests[-1] if self.requests else ""


prepared(Ledger)
