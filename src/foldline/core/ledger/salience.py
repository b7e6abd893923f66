"""How likely each name of the past is to be needed again: its worth, between 0 and 1.

`survey` notes, in one pass, where every name was met: in the arguments that address something (a path, a
pattern, a command), in bodies that were written, in the user's words, the assistant's, and in results.
`worth` turns that into a probability by a logistic formula. Its weights were fitted by
`tools/score_retention.py` on recorded sessions, each project's score being taken with weights made without
it; `docs/retention.md` has the numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from foldline.core.ledger import names
from foldline.core.ledger.names import Name
from foldline.core.log.entries import Said

# Arguments that hold what is written rather than what is addressed. A body also shows by its size.
_BODY = re.compile(
    r"(?i)^(?:old|new|content|contents|text|body|patch|input|prompt|todos?|plan|edits?|message|code|"
    r"explanation|description|instructions?|reasoning|thought|questions?|answers?|title|subject|summary)"
    r"(?:$|_|[A-Z])"
)
BODY_SIZE = 400  # characters from which an argument is a body, whatever it is called
DEFINES = re.compile(
    r"^\s*(?:(?:export|default|public|private|protected|static|async|abstract|final|pub|unsafe|override|inline)"
    r"(?:\(\w+\))?\s+)*(?:func|def|class|interface|type|struct|enum|trait|impl|fn|function|const|let|var|val|"
    r"module|mod|object|record|protocol|macro_rules!)\b"
)
NUMBERED = re.compile(r"^\s{0,6}\d{1,6}[→:|\t] ?|^\s*\d{1,6}\s*[│|] ?")


class Seen:
    """Where one name was met. Positions are characters from the start of the range."""

    __slots__ = (
        "addressed", "body", "crowd", "defined", "first", "key", "kind", "last", "last_addressed", "messages",
        "modified", "prompt", "results", "said", "text", "user", "where",
    )  # fmt: skip

    def __init__(self, name: Name, at: int) -> None:
        self.kind = name.kind
        self.key = name.key
        self.text = name.text
        self.first = self.last = at
        self.last_addressed = -1
        self.messages = self.addressed = self.body = self.user = self.said = self.results = 0
        self.defined = self.modified = self.prompt = 0
        self.crowd = 1_000_000
        self.where = -1


class Survey:
    """Every name of a range of entries, the range's size in characters, and how often each directory was addressed."""

    def __init__(self) -> None:
        self.names: dict[str, Seen] = {}
        self.size = 0
        self.directories: dict[str, int] = {}
        self.absolute: dict[
            str, int
        ] = {}  # directory, with its last slash: how often a path below was addressed


def argument_texts(value: Any, *, body: bool = False) -> Iterator[tuple[bool, str]]:
    """Yield (is a body, text) for every value in a call's arguments; keys say what is a body."""
    if isinstance(value, dict):
        for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
            yield from argument_texts(item, body=body or _BODY.match(str(key)) is not None)  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            yield from argument_texts(item, body=body)
    elif isinstance(value, str):
        yield body or "<<" in value or len(value) > BODY_SIZE, value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield body, str(value)


def survey(entries: Iterable[Said]) -> Survey:
    """Meet every name of the entries, in order."""
    out = Survey()
    for number, entry in enumerate(entries):
        _survey_message(out, entry, number)
    last = max((seen.prompt for seen in out.names.values()), default=0)
    for seen in out.names.values():
        seen.prompt = int(seen.prompt == last and last > 0)
    return out


def _survey_message(out: Survey, entry: Said, number: int) -> None:
    message = entry.message
    channels: list[tuple[str, str]] = []
    if message.text:
        spoken = "user" if message.is_prompt else "said" if message.role == "assistant" else "results"
        channels.append((spoken, message.text))
    for call in message.calls:
        changes = False
        addressed: list[str] = []
        for body, text in argument_texts(call.arguments):
            changes = changes or body
            if body:
                channels.append(("body", text))
            else:
                addressed.append(text)
        channels.extend(("changed" if changes else "addressed", text) for text in addressed)
    channels.extend(("results", result.text) for result in message.results)
    for channel, text in channels:
        _survey_text(out, channel, text, number, prompt=number + 1 if channel == "user" else 0)
        out.size += len(text) + 12


def _survey_text(out: Survey, channel: str, text: str, number: int, prompt: int) -> None:
    met: dict[str, Seen] = {}
    at = out.size
    addressing = channel in ("addressed", "changed")
    for line in text.split("\n"):
        defines = None
        for name in names.in_line(line[: names.MAX_LINE]):
            at_line = at
            seen = out.names.get(name.key)
            if seen is None:
                seen = out.names[name.key] = Seen(name, at_line)
            if defines is None:
                defines = DEFINES.match(NUMBERED.sub("", line)) is not None
            if defines and name.kind == "identifier":
                seen.defined += 1
                defines = False
            seen.last = at_line
            if addressing and name.kind == "path":
                seen.text = name.text
                _note_directories(out, name.text)
            met[name.key] = seen
        at += len(line) + 1
    for seen in met.values():
        seen.messages += seen.where != number
        seen.where = number
        seen.crowd = min(seen.crowd, len(met))
        _count(out, seen, channel, prompt)


def _note_directories(out: Survey, path: str) -> None:
    if path.startswith("/"):
        parts = path.split("/")
        for depth in range(2, min(len(parts), 12)):
            directory = "/".join(parts[:depth]) + "/"
            out.absolute[directory] = out.absolute.get(directory, 0) + 1


def root(survey: Survey) -> str:
    """Find the directory that most absolute paths share, with its last slash; "" where there is none."""
    most = max(survey.absolute.values(), default=0)
    return max(
        (place for place, count in survey.absolute.items() if count >= 0.85 * most), key=len, default=""
    )


def _count(out: Survey, seen: Seen, channel: str, prompt: int) -> None:
    if channel == "user":
        seen.user += 1
        seen.prompt = max(seen.prompt, prompt)
    elif channel == "said":
        seen.said += 1
    elif channel == "results":
        seen.results += 1
    elif channel == "body":
        seen.body += 1
    else:
        seen.addressed += 1
        seen.last_addressed = out.size
        seen.modified += channel == "changed"
        if seen.kind == "path":
            directory = seen.text.rpartition("/")[0][-60:]
            out.directories[directory] = out.directories.get(directory, 0) + 1


FEATURES = (
    "bias", "file", "directory", "identifier", "number", "id", "url", "flag",
    "addressed", "addressed_near", "addressed_far", "messages", "near", "middle", "user", "prompt", "said",
    "body", "results", "only_results", "defined", "directory_use", "unopened_user", "test", "modified", "crowd",
    "once", "length", "file_unopened", "identifier_addressed", "user_file",
)  # fmt: skip
WEIGHTS: tuple[float, ...] = (
    -2.42,
    0.31,
    0.1,
    -0.16,
    -0.02,
    -0.59,
    -1.25,
    -0.81,
    0.93,
    -0.34,
    1.01,
    0.36,
    1.5,
    -1.13,
    0.43,
    0.7,
    -0.28,
    -0.37,
    -0.71,
    -1.03,
    -0.18,
    -0.04,
    -0.69,
    0.45,
    -0.33,
    -0.29,
    -0.73,
    0.64,
    0.41,
    -0.41,
    0.27,
)


def features(seen: Seen, survey: Survey) -> tuple[float, ...]:
    """Describe a name in numbers, in the order of `FEATURES`."""
    size = max(1, survey.size)
    log = math.log1p
    file = seen.kind == "path" and "." in seen.key.rpartition("/")[2]
    age = (size - seen.last) / size
    addressed_age = (size - seen.last_addressed) / size if seen.last_addressed >= 0 else 9.0
    directory = survey.directories.get(seen.text.rpartition("/")[0][-60:], 0) if seen.kind == "path" else 0
    return (
        1.0,
        float(file),
        float(seen.kind == "path" and not file),
        float(seen.kind == "identifier"),
        float(seen.kind == "number"),
        float(seen.kind == "id"),
        float(seen.kind == "url"),
        float(seen.kind == "flag"),
        log(seen.addressed),
        math.exp(-addressed_age / 0.1),
        math.exp(-addressed_age / 0.5),
        log(seen.messages),
        math.exp(-age / 0.1),
        math.exp(-age / 0.5),
        log(seen.user),
        float(seen.prompt),
        log(seen.said),
        log(seen.body),
        log(seen.results),
        float(seen.results > 0 and seen.results == seen.messages),
        float(seen.defined > 0),
        log(directory),
        float(seen.user > 0 and seen.addressed == 0),
        float(seen.kind == "path" and "test" in seen.key),
        log(seen.modified),
        log(seen.crowd),
        float(seen.messages == 1),
        min(len(seen.key), 40) / 40,
        float(file and seen.addressed == 0),
        float(seen.kind == "identifier" and seen.addressed > 0),
        float(file and seen.user > 0),
    )


def worth(seen: Seen, survey: Survey, weights: Sequence[float] = WEIGHTS) -> float:
    """Estimate how likely a name is to be used again, from 0 to 1: 1 / (1 + exp(-weights . features))."""
    total = sum(weight * value for weight, value in zip(weights, features(seen, survey), strict=True))
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))
