"""The documented rules of a Converse list beside those of turns: documents, the system prompt."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from foldline.dialects.bedrock_converse.form import FORMS
from foldline.dialects.bedrock_converse.read import kind_of
from foldline.dialects.bedrock_converse.write import BLOCKS, documents
from foldline.dialects.blocks import check_turns
from foldline.dialects.forms import look_at
from foldline.dialects.payload import Fields, fields_of, items_of
from foldline.dialects.values import Problem, Say

_IN_SYSTEM = ("text", "cachePoint", "guardContent")


def check(problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
    """Add every rule that messages, each with its index, break; `last` is that of the end of the list."""
    check_turns(problems, bodies, last, BLOCKS)
    taken: set[str] = set()
    for index, body in bodies:
        blocks = items_of(body.get("content"))
        kinds = set(map(kind_of, blocks))
        if "document" in kinds and "text" not in kinds:
            problems.append(Problem(index, "document-text", "a message with a document must have a text"))
        for before, block in pairwise(blocks):
            if BLOCKS.is_silent(block) and BLOCKS.is_thought(before):
                problems.append(
                    Problem(index, "cache-after-thinking", "a cachePoint follows reasoningContent")
                )
        for name in [held.get("name") for block in blocks for held in documents(block)]:
            if isinstance(name, str) and name in taken:
                problems.append(Problem(index, "document-duplicate", f"two documents are called {name!r}"))
            taken.add(str(name))


def check_system(say: Say, system: Any) -> None:
    """Check a system prompt: absent, text as frameworks take it, or a list of blocks."""
    if system is None or isinstance(system, str):
        return
    if not isinstance(system, list):
        say("system", "system must be a list of blocks")
        return
    for block in map(fields_of, items_of(system)):
        if kind_of(block) not in _IN_SYSTEM:
            say("system", f"system may hold only {', '.join(_IN_SYSTEM)}")
        elif kind_of(block) == "text":
            look_at(say, "system prompt", FORMS["text"], block)
