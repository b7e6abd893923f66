"""The rows of the list of sessions: what the store tells of each, with its figures; filtered and sorted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlencode

import msgspec

from foldline.service.web.page_request import BASE, PageRequest
from foldline.service.web.rendering import model_name
from foldline.service.web.savings import Savings, Sum
from foldline.service.web.shown import line
from foldline.stores.base import SessionInfo

NAME: Final = 80  # characters of a session's name
NEWEST: Final = "updated"  # what the list is sorted by, unless it is asked for otherwise


class ListedSession(msgspec.Struct, frozen=True):
    """A session in the list. What is not known is None; `known` says whether its figures were read."""

    info: SessionInfo
    name: str
    known: bool
    agent: str
    model: str
    savings: Savings
    size: int | None
    window: int | None

    @property
    def whole(self) -> Sum:
        """What it has cost and saved."""
        return self.savings.whole

    @property
    def fill(self) -> float | None:
        """The share of the window that the next request takes."""
        return self.size / self.window if self.size is not None and self.window else None


KEYS: Final[dict[str, Callable[[ListedSession], float | None]]] = {
    NEWEST: lambda row: row.info.updated,
    "messages": lambda row: row.info.messages,
    "fill": lambda row: row.fill,
    "saved": lambda row: row.whole.saved if row.known else None,
    "spent": lambda row: row.whole.spent if row.known else None,
    "folds": lambda row: row.info.compactions,
}
COLUMNS: Final = (  # by which can be sorted, and what they are called
    ("messages", "Messages"),
    ("fill", "Next request"),
    ("saved", "Saved"),
    ("spent", "Price"),
    ("folds", "Folds"),
    (NEWEST, "Updated"),
)


class ListQuery(msgspec.Struct, frozen=True):
    """Which sessions are shown, in which order: by one of `KEYS`, the largest first, with `-` the least."""

    words: str = ""
    agent: str = ""
    model: str = ""
    sort: str = NEWEST
    offset: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether it is the list as the store has it."""
        return (self.words, self.agent, self.model, self.sort) == ("", "", "", NEWEST)

    @property
    def filters(self) -> bool:
        """Whether some sessions are left out."""
        return bool(self.words or self.agent or self.model)

    def query(self, **changes: str | int) -> str:
        """Return it as the query of an address, with changes."""
        given = {
            "f": self.words,
            "agent": self.agent,
            "model": self.model,
            "sort": self.sort,
            "offset": self.offset,
        }
        usual = {"sort": NEWEST, "offset": 0}
        return urlencode(
            {name: value for name, value in {**given, **changes}.items() if value != usual.get(name, "")}
        )

    def place(self, **changes: str | int) -> str:
        """Return its address, with changes."""
        query = self.query(**changes)
        return f"{BASE}/?{query}" if query else f"{BASE}/"

    def sorted_by(self, key: str) -> str:
        """Return where the list is sorted by a key, or the other way where it is already."""
        return self.place(sort=f"-{key}" if self.sort == key else key, offset=0)

    def order(self, key: str) -> str:
        """Return how it is sorted by a key, as a screen reader says it; "" where it is not."""
        return {key: "descending", f"-{key}": "ascending"}.get(self.sort, "")

    def rows(self, rows: Sequence[ListedSession]) -> list[ListedSession]:
        """Return those that are shown, in order; what is not known comes last."""
        words = self.words.casefold().split()

        def shown(row: ListedSession) -> bool:
            text = f"{row.name} {row.info.id}".casefold()
            agent, model = self.agent in ("", row.agent), self.model in ("", row.model)
            return agent and model and all(word in text for word in words)

        key = KEYS[self.sort.removeprefix("-")]
        sign = 1 if self.sort.startswith("-") else -1

        def place(row: ListedSession) -> tuple[bool, float]:
            value = key(row)
            return value is None, sign * (value or 0.0)

        return sorted(filter(shown, rows), key=place)


def list_query(asked: PageRequest) -> ListQuery:
    """Return what a request asks for."""
    given = asked.request.query_params
    sort, offset = given.get("sort", ""), given.get("offset", "")
    return ListQuery(
        given.get("f", "")[:200].strip(),
        given.get("agent", "")[:200],
        given.get("model", "")[:200],
        sort if sort.removeprefix("-") in KEYS else NEWEST,
        int(offset) if offset.isdecimal() and len(offset) < 12 else 0,
    )


async def rows_of(asked: PageRequest, sessions: Sequence[SessionInfo]) -> list[ListedSession]:
    """Return the rows of sessions, with what is known of them by now."""
    known = await asked.savings.look(sessions)
    return [_row(asked, one, known.get(one.id)) for one in sessions]


def _row(asked: PageRequest, info: SessionInfo, known: Savings | None) -> ListedSession:
    found = known or Savings()
    size = found.size if known and info.messages else None
    return ListedSession(
        info=info,
        name=info.title or line(found.begins, NAME) or info.id,
        known=known is not None,
        agent=found.agent,
        model=model_name(found.model),
        savings=found,
        size=size,
        window=asked.savings.window_of(found.model, found.window or asked.window),
    )
