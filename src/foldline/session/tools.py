"""Tools for the model itself: search, read and list its folded past, and ask for a compaction.

Definitions come in the form of each dialect. A tool's answer is a short text for the model. A wrong call is
answered as well, with what is wrong, so that the model can ask again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar, cast

import msgspec

from foldline.core.cut.elide import Count
from foldline.core.cut.notes import MARK, TOOLS, WINDOW_MARK
from foldline.core.measure.tokens import tools_tokens
from foldline.dialects.values import (
    ANTHROPIC,
    BEDROCK_CONVERSE,
    GEMINI,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    UI_MESSAGE,
)
from foldline.errors import InputError
from foldline.session.recall import LINE, EntryInfo, Passage, Recall
from foldline.session.shared import Shared
from foldline.session.triggers import Triggers
from foldline.session.view import Stats
from foldline.stores.base import Hit

T = TypeVar("T")

COMPACT: Final = "compact_context"
HITS: Final = 10  # messages that one search tells of, unless fewer are asked for
LISTED: Final = 40  # entries that one list tells of, unless fewer are asked for
RESULT_TOKENS: Final = 2_500  # the most that an answer takes
KINDS_OF_VALUES: Final[dict[str, tuple[type, str]]] = {
    "string": (str, "a string"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
}
"""What the types of JSON Schema are here, and the words for them."""
FORMS: Final = (ANTHROPIC, BEDROCK_CONVERSE, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, UI_MESSAGE)


class Tool(msgspec.Struct, frozen=True):
    """A tool that a model may call; `parameters` maps each name to its JSON Schema.

    `foreign` is the whole schema of a tool of somebody else's, who checks the arguments.
    """

    name: str
    description: str
    parameters: dict[str, dict[str, Any]] = {}
    required: tuple[str, ...] = ()
    foreign: dict[str, Any] | None = None

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        if self.foreign is not None:
            return self.foreign
        return {
            "type": "object",
            "properties": self.parameters,
            "required": list(self.required),
            "additionalProperties": False,
        }


def _number(description: str, most: int | None = None, least: int = 1) -> dict[str, Any]:
    bounds = {"minimum": least} | ({"maximum": most} if most is not None else {})
    return {"type": "integer", "description": description, **bounds}


_OTHER: Final = {
    "type": "string",
    "description": "The id of another session to look in, this conversation by default.",
}
RECALL_TOOLS: Final = (
    Tool(
        "recall_search",
        "Search everything that was said in this conversation, including the part that was folded into the "
        "checkpoint and that you no longer see. Messages with the exact words and ids come first, then those "
        "with words that begin so, and where few have every word, those with some. "
        "Use it before you ask the user for something again, or before you redo work.",
        {
            "query": {
                "type": "string",
                "description": "A few words that stand in the message: names, paths, errors.",
            },
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
            "entry": {"type": "string", "description": "The entry id."},
            "offset": _number("The character at which to begin, 0 by default.", least=0),
            "session": _OTHER,
        },
        ("entry",),
    ),
    Tool(
        "recall_list",
        "List what of this conversation you do not see in full: folded into the checkpoint, blanked or "
        "shortened. One line a message, oldest first, the newest of them unless `before` is given.",
        {
            "before": {"type": "string", "description": "An entry id: list what came before it."},
            "limit": _number(f"How many lines, {LISTED} by default.", LISTED),
        },
    ),
)
COMPACT_TOOL: Final = Tool(
    COMPACT,
    "Fold the conversation so far into a checkpoint before your next step. Use it at the end of a stage "
    "of the work, when the details of that stage are no longer needed word for word.",
    {"focus": {"type": "string", "description": "What the checkpoint should look at first."}},
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
        self._counted: frozenset[str] = frozenset()  # names of tools whose definitions count in the view

    def tools(self, *, compact: bool = False, stats: bool = False) -> list[dict[str, Any]]:
        """Return definitions of the recall tools in the session's dialect, to be sent beside your own.

        With `compact` also one by which the model asks for a compaction, with `stats` one that says how full
        its window is. They count in the view from now on.
        """
        more = (*((STATS_TOOL,) if stats else ()), *((COMPACT_TOOL,) if compact else ()))
        chosen = (*RECALL_TOOLS, *more)
        made = definitions(self._shared.view.dialect, chosen)
        new = [one for one, tool in zip(made, chosen, strict=True) if tool.name not in self._counted]
        if new:
            setup = self._shared.model.setup
            size = setup.overhead.tools + tools_tokens(new, setup.counter)
            overhead = msgspec.structs.replace(setup.overhead, tools=size)
            beside = [*(setup.tools or ()), *new]
            self._shared.model.setup = msgspec.structs.replace(setup, tools=beside, overhead=overhead)
            self._counted |= {tool.name for tool in chosen}
        return made

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | str | None = None, *, raises: bool = False
    ) -> str:
        """Run a tool of `tools` that the model called; return its result as text, 2,500 tokens at most.

        `arguments` is the parsed object or its JSON. Wrong ones are answered with words for the model; with
        `raises` they are an InputError, as any other tool's name always is.
        """
        tool = next((one for one in ALL_TOOLS if one.name == name), None)
        if tool is None:
            raise InputError(f"unknown tool {name!r}; there are {', '.join(TOOLS)}")
        try:
            return await self._run(name, arguments_of(tool, arguments))
        except InputError as error:
            if raises:
                raise
            return refused(tool, error)

    async def _run(self, name: str, given: Mapping[str, Any]) -> str:
        if name == COMPACT:
            self._triggers.request_compaction(given.get("focus", ""))
            return f"{WINDOW_MARK}The conversation is folded before your next step."
        if name == STATS_TOOL.name:
            return stats_text(await self._shared.view.stats())
        if name == "recall_read":
            return await self._read(given["entry"], given.get("offset", 0), given.get("session"))
        if name == "recall_list":
            return await self._list(capped(given, "limit", LISTED), given.get("before"))
        query, session = given["query"], self._shared.id
        among = [given["session"]] if given.get("session") else None
        hits = await self._recall.recall(query, capped(given, "limit", HITS), sessions=among, for_model=True)
        return trimmed(hits, lambda some: hits_text(query, some, session), self._count, newest=False)

    async def _read(self, entry: str, offset: int, session: str | None) -> str:
        passage = await self._recall.read(entry, offset, session=session or None, for_model=True)
        while self._count(passage.text) > RESULT_TOKENS and len(passage.text) > 1:
            less = len(passage.text) * 3 // 4
            passage = await self._recall.read(
                entry, passage.offset, less, session=passage.session, for_model=True
            )
        return passage_text(passage)

    async def _list(self, limit: int, before: str | None) -> str:
        entries = await self._recall.folded(limit, before, for_model=True)
        full = len(entries) >= limit

        def tell(some: Sequence[EntryInfo]) -> str:
            return listed_text(some, more=full or len(some) < len(entries))

        return trimmed(entries, tell, self._count, newest=True)

    def _count(self, text: str) -> int:
        return self._shared.model.setup.counter.count(text)


# ---- definitions


def definitions(dialect: str, tools: Sequence[Tool] = RECALL_TOOLS) -> list[dict[str, Any]]:
    """Return tool definitions as a dialect's API takes them; `ui-message`: a function tool of the AI SDK.

    `gemini`: declarations of functions.

    Raises InputError for a dialect that is not known.
    """
    if dialect not in FORMS:
        raise InputError(f"tools cannot be defined in dialect {dialect!r}, only in {', '.join(FORMS)}")
    return [_defined(tool, dialect) for tool in tools]


def _defined(tool: Tool, dialect: str) -> dict[str, Any]:
    named = {"name": tool.name, "description": tool.description}
    if dialect == ANTHROPIC:
        return {**named, "input_schema": tool.schema}
    if dialect == BEDROCK_CONVERSE:
        return {"toolSpec": {**named, "inputSchema": {"json": tool.schema}}}
    if dialect == GEMINI:  # one of a tool's functionDeclarations
        return {**named, "parametersJsonSchema": tool.schema}
    if dialect == OPENAI_CHAT:
        return {"type": "function", "function": {**named, "parameters": tool.schema}}
    if dialect == OPENAI_RESPONSES:
        return {"type": "function", **named, "parameters": tool.schema, "strict": False}
    return {"type": "function", **named, "inputSchema": tool.schema}


def arguments_of(tool: Tool, given: Mapping[str, Any] | str | None) -> dict[str, Any]:
    """Return a call's arguments, checked; raises InputError with words for the model where they are wrong."""
    values = _parsed(given)
    if tool.foreign is not None:
        return values
    if missing := [name for name in tool.required if _is_missing(values.get(name), tool.parameters[name])]:
        raise InputError(f"{tool.name} needs {', '.join(missing)}")
    if unknown := [name for name in values if name not in tool.parameters]:
        raise InputError(f"{tool.name} takes {', '.join(tool.parameters)}, not {', '.join(unknown)}")
    for name, value in values.items():
        kind, words = KINDS_OF_VALUES.get(str(tool.parameters[name].get("type")), (object, ""))
        right = isinstance(value, kind) and (kind in (bool, object) or not isinstance(value, bool))
        if value is not None and not right:
            raise InputError(f"{tool.name}: {name} must be {words}")
    return {name: value for name, value in values.items() if value is not None}


def _is_missing(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value is not given; an empty text counts as none unless its schema allows it by name."""
    return value is None or (value == "" and schema.get("minLength") != 0)


def _parsed(given: Mapping[str, Any] | str | None) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given) if given.strip() else {}
        except ValueError as error:
            raise InputError(f"the arguments are not JSON ({error})") from error
    if given is not None and not isinstance(given, Mapping):
        raise InputError("the arguments must be a JSON object")
    return dict(cast("Mapping[str, Any]", given or {}))


def capped(arguments: Mapping[str, Any], name: str, most: int) -> int:
    """Return a number that a call asks for, from 1 to `most`; `most` where it asks for none."""
    return max(1, min(int(arguments.get(name, most)), most))


# ---- answers


def hits_text(query: str, hits: Sequence[Hit], own: str) -> str:
    """Tell the model what a search found."""
    if not hits:
        return f"{MARK}Nothing in this conversation matches {query!r}. Try fewer or other words."
    lines = [
        f"- {hit.entry} {_when(hit.at)}{hit.role}{'' if hit.session == own else f', session {hit.session}'}: "
        f"{' '.join(hit.snippet.split())[: 3 * LINE]}"
        for hit in hits
    ]
    some = sum(hit.partial for hit in hits)
    partly = f" ({some} of them some words only)" if some else ""
    head = (
        f"{MARK}{len(hits)} messages match {query!r}{partly}, the best first; a later one may replace an "
        "earlier one."
    )
    return "\n".join([head, *lines, "Read one in full with recall_read."])


def stats_text(stats: Stats) -> str:
    """Tell the model how full its window is."""
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
    """Show the model a piece of an entry, as data."""
    end = passage.offset + len(passage.text)
    more = passage.next_offset
    rest = (
        f"\n[{passage.total - end:,} more characters: recall_read with offset {more}]"
        if more is not None
        else ""
    )
    where = f"characters {passage.offset:,} to {end:,} of {passage.total:,}"
    return f"{MARK}Entry {passage.entry}, {_when(passage.at)}{where}, quoted as data:\n{passage.text}{rest}"


def listed_text(entries: Sequence[EntryInfo], *, more: bool) -> str:
    """Show the model a list of what it does not see in full; `more` says that earlier ones may be there."""
    if not entries:
        return f"{MARK}Nothing is folded: you see the whole conversation."
    lines = [f"- {one.entry} {_when(one.at)}{one.how}, {one.tokens:,} tokens: {one.text}" for one in entries]
    earlier = f"\nEarlier ones: recall_list with before {entries[0].entry}." if more else ""
    return (
        "\n".join([f"{MARK}{len(entries)} messages that you do not see in full, oldest first:", *lines])
        + earlier
    )


def _when(at: float | None) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC, " if at is not None else ""


def trimmed(entries: Sequence[T], tell: Callable[[Sequence[T]], str], count: Count, *, newest: bool) -> str:
    """Tell of as many entries as fit into an answer: the `newest`, which come last, or the first."""
    text = tell(entries)
    while len(entries) > 1 and count(text) > RESULT_TOKENS:
        stay = len(entries) * 3 // 4
        entries = entries[-stay:] if newest else entries[:stay]
        text = tell(entries)
    return text


def refused(tool: Tool, error: InputError) -> str:
    """Tell the model why its call was refused."""
    recall = any(tool.name == one.name for one in RECALL_TOOLS)
    return f"{MARK if recall else WINDOW_MARK}Error: {error}"
