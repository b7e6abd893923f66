"""Tools for the model itself: search, read and list its folded past, and ask for a compaction.

A tool's result is a short text for the model. The result of a
wrong call explains what is wrong, so that the model can try again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec

from foldline.core.cut.elide import Count
from foldline.core.cut.notes import MARK, TOOLS, WINDOW_MARK
from foldline.core.measure.tokens import tools_tokens
from foldline.errors import InputError
from foldline.session.definitions import Tool, arguments_of, definitions
from foldline.session.recall import LINE, EntryInfo, Passage, Recall
from foldline.session.shared import Shared
from foldline.session.triggers import Triggers
from foldline.session.view import Stats
from foldline.stores.base import Hit

T = TypeVar("T")

COMPACT: Final = "compact_context"
HITS: Final = 10  # messages that one search shows at most
LISTED: Final = 40  # entries that one list shows at most
RESULT_TOKENS: Final = 2_500  # of one result, at most


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _number(description: str, most: int | None = None, least: int = 1) -> dict[str, Any]:
    bounds = {"minimum": least} | ({"maximum": most} if most is not None else {})
    return {"type": "integer", "description": description, **bounds}


_OTHER: Final = _text("The id of another session to look in, this conversation by default.")
RECALL_TOOLS: Final = (
    Tool(
        "recall_search",
        "Search everything that was said in this conversation, including the part that was folded into the "
        "checkpoint and that you no longer see. Messages with the exact words and ids come first, then those "
        "with words that begin with yours; if few have every word, those with some of them follow. "
        "Use it before you ask the user for something again, or before you redo work.",
        {
            "query": _text("A few words of the message: names, paths, errors."),
            "limit": _number(f"How many messages to show, {HITS} by default.", HITS),
            "session": _OTHER,
        },
        ("query",),
    ),
    Tool(
        "recall_read",
        "Read one message of this conversation in full, by the entry id that a search, a list or a marker "
        "such as [… left out; recall ID …] gives. Long ones come in pieces.",
        {
            "entry": _text("The entry id."),
            "offset": _number("The character at which to begin, 0 by default.", least=0),
            "session": _OTHER,
        },
        ("entry",),
    ),
    Tool(
        "recall_list",
        "List the messages of this conversation that you do not see in full: folded into the checkpoint, "
        "blanked or shortened. One line per message, oldest first; the newest unless `before` is given.",
        {
            "before": _text("An entry id: list the messages before it."),
            "limit": _number(f"How many lines, {LISTED} by default.", LISTED),
        },
    ),
)
COMPACT_TOOL: Final = Tool(
    COMPACT,
    "Fold the conversation so far into a checkpoint before your next step. Use it at the end of a stage "
    "of the work, when the details of that stage are no longer needed word for word.",
    {"focus": _text("What the checkpoint should focus on.")},
)
STATS_TOOL: Final = Tool(
    "context_stats",
    "Say how full the context window is: tokens in use and usable, what they are spent on, and how much of "
    "the conversation is folded. Use it to decide whether to fold before a large step.",
    {},
)
ALL_TOOLS: Final = (*RECALL_TOOLS, STATS_TOOL, COMPACT_TOOL)


class Tools:
    """The tools of one session."""

    def __init__(self, shared: Shared, triggers: Triggers, recall: Recall) -> None:
        self._shared = shared
        self._triggers = triggers
        self._recall = recall
        self._counted: frozenset[str] = frozenset()  # names of tools whose definitions are in `_tools`
        self._tools: Any = None  # the definitions that count in the view, until `use_model` gives others

    def tools(self, *, compact: bool = False, stats: bool = False) -> list[dict[str, Any]]:
        """Return definitions of the recall tools in the session's dialect, to send with your own tools.

        `compact` adds a tool with which the model requests a compaction, `stats` a tool that shows how full
        its window is. Their tokens count in the view from now on.
        """
        more = (*((STATS_TOOL,) if stats else ()), *((COMPACT_TOOL,) if compact else ()))
        chosen = (*RECALL_TOOLS, *more)
        defined = definitions(self._shared.view.dialect, chosen)
        setup, pairs = self._shared.model.setup, zip(defined, chosen, strict=True)
        given = setup.tools or ()
        counted = self._counted if setup.tools is self._tools else frozenset[str]()
        new = [one for one, tool in pairs if tool.name not in counted and one not in given]
        if new:
            size = setup.overhead.tools + tools_tokens(new, setup.counter)
            overhead = msgspec.structs.replace(setup.overhead, tools=size)
            setup = msgspec.structs.replace(setup, tools=[*given, *new], overhead=overhead)
            self._shared.model.setup = setup
        self._tools, self._counted = setup.tools, counted | {tool.name for tool in chosen}
        return defined

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | str | None = None, *, raises: bool = False
    ) -> str:
        """Run one of the tools that the model called; return its result as text, at most 2,500 tokens.

        `arguments` is the parsed object or its JSON. If they are wrong, the result tells the model why; with
        `raises` that is an InputError, as an unknown name always is.
        """
        tool = next((tool for tool in ALL_TOOLS if tool.name == name), None)
        if tool is None:
            raise InputError(f"unknown tool {name!r}; the tools are {', '.join(TOOLS)}")
        try:
            return await self._run(name, arguments_of(tool, arguments))
        except InputError as error:
            if raises:
                raise
            return refused(tool, error)

    async def _run(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name == COMPACT:
            self._triggers.request_compaction(arguments.get("focus", ""))
            return f"{WINDOW_MARK}The conversation is folded before your next step."
        if name == STATS_TOOL.name:
            return stats_text(await self._shared.view.stats())
        if name == "recall_read":
            return await self._read(arguments["entry"], arguments.get("offset", 0), arguments.get("session"))
        if name == "recall_list":
            return await self._list(capped(arguments, "limit", LISTED), arguments.get("before"))
        query, limit = arguments["query"], capped(arguments, "limit", HITS)
        sessions = [arguments["session"]] if arguments.get("session") else None
        hits = await self._recall.recall(query, limit, sessions=sessions, for_model=True)
        own = self._shared.id
        return trimmed(hits, lambda shown: hits_text(query, shown, own), self._count, newest=False)

    async def _read(self, entry: str, offset: int, session: str | None) -> str:
        passage = await self._recall.read(entry, offset, session=session or None, for_model=True)
        while self._count(passage.text) > RESULT_TOKENS and len(passage.text) > 1:
            size = len(passage.text) * 3 // 4
            passage = await self._recall.read(
                entry, passage.offset, size, session=passage.session, for_model=True
            )
        return passage_text(passage)

    async def _list(self, limit: int, before: str | None) -> str:
        entries = await self._recall.folded(limit, before, for_model=True)
        full = len(entries) >= limit

        def write(shown: Sequence[EntryInfo]) -> str:
            return listed_text(shown, more=full or len(shown) < len(entries))

        return trimmed(entries, write, self._count, newest=True)

    def _count(self, text: str) -> int:
        return self._shared.model.setup.counter.count(text)


# ---- results


def capped(arguments: Mapping[str, Any], name: str, most: int) -> int:
    """Return a number among the arguments, from 1 to `most`; `most` by default."""
    return max(1, min(int(arguments.get(name, most)), most))


def hits_text(query: str, hits: Sequence[Hit], own: str) -> str:
    """Return the hits of a search for the model; `own` is the id of its session."""
    if not hits:
        return f"{MARK}Nothing in this conversation matches {query!r}. Try fewer or other words."
    lines = [
        f"- {hit.entry} {_when(hit.at)}{hit.role}{'' if hit.session == own else f', session {hit.session}'}: "
        f"{' '.join(hit.snippet.split())[: 3 * LINE]}"
        for hit in hits
    ]
    partial = sum(hit.partial for hit in hits)
    note = f" ({partial} of them some words only)" if partial else ""
    head = (
        f"{MARK}{len(hits)} messages match {query!r}{note}, the best first; a later one may replace an "
        "earlier one."
    )
    return "\n".join([head, *lines, "Read one in full with recall_read."])


def stats_text(stats: Stats) -> str:
    """Return for the model how full its window is."""
    share = stats.context_tokens / stats.usable if stats.usable else 1.0
    sizes = sorted(stats.by_category.items(), key=lambda pair: -pair[1])
    spent = ", ".join(f"{name} {tokens:,}" for name, tokens in sizes if tokens)
    return (
        f"{WINDOW_MARK}{stats.context_tokens:,} of {stats.usable:,} usable tokens are in use ({share:.0%}); "
        f"the window is {stats.window.context:,}. Spent on: {spent or 'nothing yet'}. "
        f"{stats.active_messages:,} of {stats.total_messages:,} messages are in view; "
        f"compactions so far: {stats.summaries}."
    )


def passage_text(passage: Passage) -> str:
    """Return a piece of an entry for the model, quoted as data."""
    end = passage.offset + len(passage.text)
    next_offset = passage.next_offset
    more = ""
    if next_offset is not None:
        more = f"\n[{passage.total - end:,} more characters: recall_read with offset {next_offset}]"
    place = f"characters {passage.offset:,} to {end:,} of {passage.total:,}"
    return f"{MARK}Entry {passage.entry}, {_when(passage.at)}{place}, quoted as data:\n{passage.text}{more}"


def listed_text(entries: Sequence[EntryInfo], *, more: bool) -> str:
    """Return a list of messages that the model does not see in full; `more`: there may be earlier ones."""
    if not entries:
        return f"{MARK}Nothing is folded: you see the whole conversation."
    lines = [
        f"- {info.entry} {_when(info.at)}{info.how}, {info.tokens:,} tokens: {info.text}" for info in entries
    ]
    earlier = f"\nEarlier ones: recall_list with before {entries[0].entry}." if more else ""
    return (
        "\n".join([f"{MARK}{len(entries)} messages that you do not see in full, oldest first:", *lines])
        + earlier
    )


def _when(at: float | None) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC, " if at is not None else ""


def trimmed(entries: Sequence[T], write: Callable[[Sequence[T]], str], count: Count, *, newest: bool) -> str:
    """Write as many entries as fit into a result: the `newest`, which come last, or the first."""
    text = write(entries)
    while len(entries) > 1 and count(text) > RESULT_TOKENS:
        kept = len(entries) * 3 // 4
        entries = entries[-kept:] if newest else entries[:kept]
        text = write(entries)
    return text


def refused(tool: Tool, error: InputError) -> str:
    """Return for the model why its call was refused."""
    mark = MARK if tool.name in {recall.name for recall in RECALL_TOOLS} else WINDOW_MARK
    return f"{mark}Error: {error}"
