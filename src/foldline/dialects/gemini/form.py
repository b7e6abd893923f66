"""The form of Gemini's contents: what a part may hold, by either spelling of its keys.

The API and its SDKs take keys in camel case and in snake case, and SDKs write nulls for what is not set.
"""

from __future__ import annotations

from functools import lru_cache
from re import sub
from typing import Any, cast

from foldline.core.log.messages import Role
from foldline.dialects.forms import (
    UNNAMED,
    Field,
    Forms,
    a,
    as_id,
    as_input,
    as_name,
    as_text,
    filled_field,
    left_out,
    look_at,
    matching,
)
from foldline.dialects.ids import safe_name
from foldline.dialects.payload import Fields, items_of
from foldline.dialects.values import Say

ROLES: dict[str | None, Role] = {
    None: "user",
    "user": "user",
    "model": "assistant",
    "system": "system",  # the API has no such content, it moves to the system prompt when it is sent
    "developer": "developer",
}
_OTHER_ROLES = {"function": "user", "tool": "user", "assistant": "model"}
MEDIA = ("inlineData", "fileData")
CALL, RESULT = "functionCall", "functionResponse"
SIGNATURE = "thoughtSignature"


# ---- either spelling


@lru_cache(256)
def _snake(key: str) -> str:
    return sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", key)


@lru_cache(256)
def _camel(key: str) -> str:
    return sub("_([a-z])", lambda letter: letter[1].upper(), key)


def spelt(fields: Fields, key: str) -> str:
    """Return a key, given in camel case, as an object spells it."""
    return _snake(key) if fields.get(key) is None and fields.get(_snake(key)) is not None else key


def held(fields: Fields, key: str) -> Any:
    """Return what an object holds under a key in either spelling; None for nothing."""
    return fields.get(spelt(fields, key))


# ---- parts


def _as_response(value: Any) -> Fields:
    return {"output": "" if value is None else value}


def _unset(_: Any) -> None:
    """Make nothing of a value that cannot be sent."""


def safe_function(text: str, limit: int, empty: str) -> str:
    """Make a function's name that the API takes: like `safe_name`, and a letter or `_` begins it."""
    return safe_name(sub("^(?=[0-9-])", "_", text), limit, empty)


def _as_name(value: Any) -> str:
    return safe_function(as_name(value), 128, UNNAMED)


_is_name = matching(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_ID = Field("id", "call-id", a(str, None), "text", as_id)
_NAME = Field("name", "call-name", _is_name, "letters, digits, _ . : and -, at most 128", _as_name)
_LIST = Field("parts", "result-parts", a(list, None), "a list of parts", _unset)
FORMS: Forms = {
    CALL: (
        _ID,
        _NAME,
        Field("args", "call-args", a(dict, None), "an object", as_input),
    ),
    RESULT: (
        _ID,
        _NAME,
        Field("response", "result-response", a(dict), "an object", _as_response),
        _LIST,
    ),
    "inlineData": (filled_field("mimeType", "media"), filled_field("data", "media")),
    "fileData": (filled_field("fileUri", "media"),),
    # what Google's servers run
    "executableCode": (),
    "codeExecutionResult": (),
    "toolCall": (),
    "toolResponse": (),
}
KINDS = ("text", *FORMS)
_BESIDE = {SIGNATURE, "thought", "videoMetadata", "mediaResolution", "partMetadata"}
_MISPLACED = {(CALL, "user"): "call-role", (RESULT, "model"): "result-role"}


def kinds_of(part: Fields) -> list[str]:
    """Return the kinds of data that a part holds: one, or none where it is of a kind that is not known."""
    return [kind for kind in KINDS if held(part, kind) is not None]


def other_kind(part: Fields) -> str | None:
    """Return the kind of a part if it is not a known one; None if the part has no data."""
    held_keys = (key for key, value in part.items() if value is not None)
    return next((key for key in held_keys if _camel(key) not in _BESIDE), None)


def parts_in(body: Fields) -> list[Fields]:
    """Return the parts of a content that are objects."""
    return [part for part in items_of(body.get("parts")) if isinstance(part, dict)]


def look(say: Say, body: Fields) -> Fields:
    """Check a content by itself, and return it as it may be sent; `say(rule, text)` takes what is wrong."""
    new, role, parts = dict(body), body.get("role"), body.get("parts")
    if role not in ("user", "model", None):
        say("role", f"role is {role!r}; it must be user or model")
        if isinstance(role, str) and role in _OTHER_ROLES:
            new["role"] = role = _OTHER_ROLES[role]
    if not isinstance(parts, list):
        say("parts", "parts must be a list")
        new["parts"] = [{"text": as_text(parts)}] if parts else []
    elif not parts:
        say("parts-empty", "a content must have at least one part")
    else:
        speaker = "model" if role == "model" else "user"
        looked = [_part(say, speaker, one) for part in items_of(parts) for one in _singly(say, part)]
        new["parts"] = [part for part in looked if part is not None]
    return new


def _singly(say: Say, value: Any) -> list[Any]:
    """Return a part as several, one for each kind of data that it holds; the first has the signature."""
    part = cast("Fields", value) if isinstance(value, dict) else {}
    others = [spelt(part, kind) for kind in kinds_of(part)][1:]
    if not others:
        return [value]
    say("part-kind", "a part must hold one kind of data")
    rest = {key: held for key, held in part.items() if key not in others}
    return [rest, *({key: part[key]} for key in others)]


def _part(say: Say, role: str, value: Any) -> Fields | None:
    if not isinstance(value, dict):
        say("part-type", "a part must be an object")
        return {"text": as_text(value)} if value else None
    part = cast("Fields", value)
    kind = next(iter(kinds_of(part)), "")
    signature = held(part, SIGNATURE)
    if signature is not None and not isinstance(signature, str):
        say("signature", f"{SIGNATURE} must be a string")
        part = {key: each for key, each in part.items() if key != spelt(part, SIGNATURE)}
    if not kind and other_kind(part) is None:
        say("part-kind", f"a part must hold {', '.join(KINDS)} or the like")
        return {**part, "text": ""} if isinstance(signature, str) else None
    if (rule := _MISPLACED.get((kind, role))) is not None:
        say(rule, f"the {role} cannot have a {kind}")
        return {"text": as_text(part)}
    return _text(say, part) if kind == "text" else _held(say, part, kind) if kind else part


def _text(say: Say, part: Fields) -> Fields:
    text = part["text"]
    if not isinstance(text, str):
        say("text", "the text of a part must be a string")
        return {**part, "text": as_text(text)}
    if not text and held(part, SIGNATURE) is None:  # a request leaves it out
        say("text-empty", "a text without a signature must say something")
    return part


def _held(say: Say, part: Fields, kind: str) -> Fields | None:
    """Look at the data of a part."""
    key = spelt(part, kind)
    if not isinstance(part[key], dict):
        say("part-shape", f"{kind} must be an object")
        return {"text": as_text(part)}
    given = {_camel(name): value for name, value in part[key].items()}
    new = look_at(say, kind, FORMS[kind], given)
    if new is None:
        return {"text": left_out("document")}
    return part if new is given else {**part, key: new}
