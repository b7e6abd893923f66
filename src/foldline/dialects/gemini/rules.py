"""The documented rules of a list of contents: who begins, and what answers what, part for part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foldline.dialects.gemini.form import CALL, RESULT, held, parts_in
from foldline.dialects.payload import Fields, fields_of, items_of
from foldline.dialects.values import Problem, Say, reporter


def check(problems: list[Problem], bodies: Sequence[tuple[int, Fields]], last: int) -> None:
    """Add every rule that contents, each with its index, break as a list.

    What the model says in a row is one turn: a chat that streams keeps each chunk as a content.
    """
    del last
    place, calls, spoken = -1, list[Fields](), False
    for number, (index, body) in enumerate(bodies):
        models = body.get("role") == "model"
        if models and number == 0:
            reporter(problems, index)("first-user", "the first content must be the user's")
        if models:
            place, calls = index, [*(calls if spoken else []), *_held(body, CALL)]
        else:
            _answers(problems, place, calls, index, _held(body, RESULT))
            calls = []
        spoken = models
    _answers(problems, place, calls, -1, [])


def _held(body: Fields, kind: str) -> list[Fields]:
    return [given for part in parts_in(body) if (given := fields_of(held(part, kind)))]


def _answers(
    problems: list[Problem], place: int, calls: list[Fields], index: int, responses: list[Fields]
) -> None:
    """Check that the responses at `index` answer all calls of the turn before, and nothing else."""
    waiting = _asked(reporter(problems, place), calls)
    say = reporter(problems, index)
    asked_ids = [call.get("id") for call in waiting]
    for given in _unmatched(waiting, responses):
        if given.get("id") and given["id"] in asked_ids:
            say("result-duplicate", f"call {given['id']!r} already has a response")
        else:
            say("result-orphan", f"no call of {given.get('name')!r} right before waits for this response")
    for call in waiting:
        text = f"the next content has no response to the call of {call.get('name')!r}"
        reporter(problems, place)("result-missing", text)


def _asked(say: Say, calls: list[Fields]) -> list[Fields]:
    """Return the calls that wait for a response; of several with one id the first."""
    seen: set[str] = set()
    for call in calls:
        own = str(call.get("id") or "")
        if own and own in seen:
            say("call-duplicate", f"two calls of one turn have the id {own!r}")
        seen.add(own)
    return list(calls)


def _unmatched(waiting: list[Fields], responses: list[Fields]) -> list[Fields]:
    """Take the calls that responses answer out of those that wait; return the responses that answer none.

    A response is for the call with its id; one without an id is for the first call of its function, and
    rather for one that has none either.
    """
    left: list[Fields] = []
    for given in sorted(responses, key=lambda one: not one.get("id")):
        own, name = given.get("id"), given.get("name")
        fits = [one for one in waiting if (one.get("id") == own if own else one.get("name") == name)]
        if fits:
            waiting.remove(min(fits, key=lambda one: bool(one.get("id")) and not own))
        else:
            left.append(given)
    return left


def check_system(say: Say, system: Any) -> None:
    """Check a system prompt: absent, text, a content of texts, or its parts."""
    parts = fields_of(system).get("parts", 0) if isinstance(system, dict) else system
    if parts is None or isinstance(parts, str):
        return
    if not isinstance(parts, list) or not all(_is_text(part) for part in items_of(parts)):
        say("system", "the system prompt must be a text, or a content whose parts are texts")


def _is_text(part: Any) -> bool:
    return isinstance(fields_of(part).get("text"), str)
