"""Retention: how much of what a recorded future used is still in a view.

A recorded session is cut. A view at the cut should contain what the later tool calls address and only the
past mentions. Five shares measure that; `docs/replay.md` defines them.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate
from typing import Any, cast

import msgspec

from foldline.core.lab.entities import Entity, Reading, TextOffsets, entities, phrases, quoted
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult

FAR = 0.1  # of the past: an entity last mentioned before its newest tenth is far
RARE = 2  # a rare entity is in at most so many past messages
LEAST_HANDLES = 5  # handles that a cut must need for a meaningful score
CHARACTERS = 4  # of a token, in the sizes and ages of this score
FRAME = 4  # tokens around a message

LONG = 600  # characters: a longer argument is a written text, whatever its name
# Arguments that hold written text; all others address something.
_BODY_NAMES = (
    "content contents new_content old_content file_text text body code patch patchText input insert_text "
    "edits "
    "old_string new_string old_str new_str oldText newText oldString newString "
    "prompt message instruction description explanation reasoning thought plan todos "
    "questions answers title subject activeForm"
)
_BODIES = frozenset(_BODY_NAMES.split())

BEFORE_USE = 600  # characters of the previous reply that count as context of a first use
# characters around a mention that are searched for binding words
NEAR_USE, NEAR_PAST, NEAR_VIEW = 400, 160, 240
FEW, MANY = 6, 40  # mentions that are read
BOUND_BY = 2  # words at least that bind an entity to its topic
_WORD = re.compile(r"(?<![\w/.#-])[A-Za-z][a-z]{3,}(?![\w/-]|\.\w)")  # outside paths, names and numbers
# Common words, which bind an entity to nothing.
_EMPTY_WORDS = (
    "about after already also because been before being between both call calls check code command "
    "content could does done each edit error false file files first from have here input into just "
    "like line lines look looking made make makes more most name need needs next none null only other "
    "output over path read result results should some still sure text than that their them then there "
    "these they this those tool true type update updated used uses using very what when where which "
    "while will with would write your"
)
_EMPTY = frozenset(_EMPTY_WORDS.split())


class Need(msgspec.Struct, frozen=True):
    """The need of one entity: whether a call addressed it, and where past and future mention it.

    `age` is the tokens (characters / 4) after its last mention in the past, `mentions` the number of past
    messages that name it, `step` the index of the future message that used it first.
    """

    addressed: bool
    age: int
    mentions: int
    step: int


class Demand(msgspec.Struct, frozen=True):
    """What the future of a cut needed, and what a view must contain to have it all."""

    past_tokens: int
    needs: dict[Entity, Need]
    handles: frozenset[Entity]
    far: frozenset[Entity]
    rare: frozenset[Entity]
    bindings: dict[Entity, frozenset[str]]
    common: frozenset[str] = frozenset()

    @property
    def telling(self) -> bool:
        """Whether enough was needed for a meaningful score."""
        return len(self.handles) >= LEAST_HANDLES


class Scores(msgspec.Struct, frozen=True):
    """Five shares between 0 and 1; None if nothing of the kind was needed."""

    handle: float | None = None
    far: float | None = None
    far_bound: float | None = None
    far_rare: float | None = None
    steps: float | None = None


class ScoredMessage(msgspec.Struct, frozen=True):
    """A message as the score reads it: its text (results, no thinking) and calls; `answers` are call ids."""

    role: str
    text: str
    calls: tuple[ToolCall, ...] = ()
    rendered: str = ""
    answers: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """The size, in characters / 4."""
        return len(self.rendered) // CHARACTERS + FRAME


def scored_message(message: Message) -> ScoredMessage:
    """Return a message as the score reads it."""
    parts = (part.text for part in message.parts if isinstance(part, Text | ToolResult))
    text, calls = "\n".join(parts), message.calls
    answers = tuple(result.call_id for result in message.results)
    role = "tool" if answers and not message.text.strip() else message.role
    written = (f"\n{call.name}({_arguments(call)})" for call in calls)
    return ScoredMessage(role, text, calls, text + "".join(written), answers)


def _arguments(call: ToolCall) -> str:
    if isinstance(call.arguments, str):
        return call.arguments
    return json.dumps(call.arguments, ensure_ascii=False)


def rendered(messages: Iterable[Message]) -> str:
    """Return the text of a view as the score reads it."""
    return "\n".join(scored_message(message).rendered for message in messages)


# ---- what was needed


def demand(
    past: Sequence[ScoredMessage], future: Sequence[ScoredMessage], common: AbstractSet[str] = frozenset()
) -> Demand:
    """Return what the calls of `future` used that is in `past` and was not mentioned again before.

    `common` are names that many unrelated projects share; they do not count.
    """
    texts = [message.rendered for message in past]
    reading, places = Reading("\n".join(texts), common), TextOffsets(texts)
    sizes = [message.tokens for message in past]
    total = sum(sizes)
    tokens_after = [total - tokens for tokens in accumulate(sizes)]
    needs: dict[Entity, Need] = {}
    for entity, (addressed, step) in _used_in_calls(future, common).items():
        message_indices = sorted({places.index(at) for at in reading.mentions(entity)})
        if message_indices:
            needs[entity] = Need(addressed, tokens_after[message_indices[-1]], len(message_indices), step)
    handles = frozenset(entity for entity, need in needs.items() if need.addressed)
    far = frozenset(entity for entity in handles if needs[entity].age > FAR * total)
    return Demand(
        past_tokens=total,
        needs=needs,
        handles=handles,
        far=far,
        rare=frozenset(entity for entity in far if needs[entity].mentions <= RARE),
        bindings=_bindings(far, reading, future, common),
        common=frozenset(common),
    )


def _used_in_calls(
    future: Sequence[ScoredMessage], common: AbstractSet[str]
) -> dict[Entity, tuple[bool, int]]:
    """Return what calls used before a user or tool named it: whether addressed, and at which step."""
    known: set[Entity] = set()
    used: dict[Entity, tuple[bool, int]] = {}
    for step, message in enumerate(future):
        if message.role != "assistant":
            known |= entities(message.text) - used.keys()
            if message.role != "tool":
                known |= quoted(message.text)
            continue
        for entity, addressed in names_in_calls(message.calls).items():
            if entity in known or entity.key in common or "REDACTED" in entity.key:
                continue
            before = used.get(entity)
            used[entity] = (addressed or (before is not None and before[0]), before[1] if before else step)
    return used


def names_in_calls(calls: Iterable[ToolCall]) -> dict[Entity, bool]:
    """Return the entities in the arguments of calls, and whether a call addresses them."""
    names: dict[Entity, bool] = {}
    for call in calls:
        for body, text in argument_texts(call.arguments):
            entities_ = entities(text)
            if not body:
                entities_ |= set(phrases(text))
            for entity in entities_:
                names[entity] = names.get(entity, False) or not body
    return names


def argument_texts(value: Any, *, body: bool = False) -> Iterator[tuple[bool, str]]:
    """Yield every value of arguments as text, and whether it is a body (written text)."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield from argument_texts(inner, body=body or key in _BODIES)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from argument_texts(inner, body=body)
    elif value is not None and not isinstance(value, bool):
        text = str(value)
        yield body or "<<" in text or len(text) > LONG, text


# ---- the topics of entities


def _bindings(
    wanted: AbstractSet[Entity], past: Reading, future: Sequence[ScoredMessage], common: AbstractSet[str]
) -> dict[Entity, frozenset[str]]:
    """Return the words near an entity both in the past and at its first use, if there are enough."""
    bindings: dict[Entity, frozenset[str]] = {}
    for entity, text in _first_uses(wanted, future).items():
        use = _words_near(Reading(text, common), entity, NEAR_USE, FEW)
        shared = use & _words_near(past, entity, NEAR_PAST, MANY) if use else use
        if len(shared) >= BOUND_BY:
            bindings[entity] = frozenset(shared)
    return bindings


def _first_uses(wanted: AbstractSet[Entity], future: Sequence[ScoredMessage]) -> dict[Entity, str]:
    first_uses: dict[Entity, str] = {}
    previous_reply = ""
    for message in future:
        if message.role == "assistant":
            for entity in names_in_calls(message.calls):
                if entity in wanted and entity not in first_uses:
                    first_uses[entity] = f"{previous_reply} {message.rendered}"
            previous_reply = message.text[-BEFORE_USE:]
    return first_uses


def _words_near(reading: Reading, entity: Entity, span: int, most: int) -> set[str]:
    """Return the binding words around the first mentions of an entity."""
    words: set[str] = set()
    for count, at in enumerate(reading.spelt(entity)):
        if count >= most:
            break
        nearby = reading.text[max(0, at - span) : at + len(entity.key) + span]
        words.update(word.lower() for word in _WORD.findall(nearby))
    return words - _EMPTY


# ---- what a view contains of it


def score(wanted: Demand, view: str) -> Scores:
    """Score the text of a view (`rendered`) at the cut of the demand `wanted`."""
    reading = Reading(view, wanted.common)
    present = frozenset(entity for entity in wanted.handles if reading.names(entity))
    steps: defaultdict[int, list[bool]] = defaultdict(list)
    for entity in wanted.handles:
        steps[wanted.needs[entity].step].append(entity in present)
    bound = [
        bool(binding & _words_near(reading, entity, NEAR_VIEW, MANY))
        for entity, binding in wanted.bindings.items()
    ]
    return Scores(
        handle=_share([entity in present for entity in wanted.handles]),
        far=_share([entity in present for entity in wanted.far]),
        far_bound=_share(bound),
        far_rare=_share([entity in present for entity in wanted.rare]),
        steps=_share([all(found) for found in steps.values()]),
    )


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def mean(scores: Sequence[Scores]) -> Scores:
    """Return the mean of each share over the cuts that have one."""

    def of(name: str) -> float | None:
        values = [value for score_ in scores if (value := getattr(score_, name)) is not None]
        return sum(values) / len(values) if values else None

    return Scores(**{name: of(name) for name in Scores.__struct_fields__})


# ---- where a session is cut


def cut_at(messages: Sequence[ScoredMessage], share: float) -> int | None:
    """Return the index nearest to a share of the tokens at which no call is open and no result follows."""
    target = share * sum(message.tokens for message in messages)
    before, open_calls = 0, set[str]()
    best: tuple[float, int] | None = None
    for index, message in enumerate(messages):
        if index and not open_calls and message.role != "tool":
            distance = abs(before - target)
            best = best if best is not None and best[0] <= distance else (distance, index)
        before += message.tokens
        open_calls |= {call.id for call in message.calls}
        open_calls -= set(message.answers)
        if message.role == "user":
            open_calls.clear()  # calls that the user cut short
    return best[1] if best else None
