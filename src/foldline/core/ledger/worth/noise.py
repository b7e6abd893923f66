"""Quoted lines that tell a reader nothing: banners, acknowledgements, addresses, what prose says as well."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import clip
from foldline.core.ledger.text.words import words
from foldline.core.ledger.worth.passages import TopicPassage

ASKED = "asked: "  # before a request that is given as a reason
SAYS = 1  # plain words beyond which a line of code says something by itself
REQUEST = 80  # characters of it
NEARBY = 8  # messages within which the assistant's prose says what a record showed

_NOISE = re.compile(
    r"(?:platform|configfile|rootdir|plugins|cachedir|collected|collecting)\b[ :]"  # a test run's banner
    r"|(?:saved|wrote|created|updated|edited|overwrote|written|deleted|file created|successfully \w+)\b:? "
    r"\S+(?: \(\d+ \w+\))?(?:; now)?[.:]?$"
    r"|e\s{1,8}\S|>\s{2,}\S"  # a failed test's lines: errors have a place of their own
    r"|[\w.]*(?:error|exception)\W*$"
    r"|\[?(?:\w+ )?\d{4}-\d\d-\d\d[t ]\d\d:\d\d:\d\d"  # one line of a log
    r"|\d\d:\d\d:\d\d[.,\s]"
    r"|[-dl]?[rwx-]{9}[.+@]?\s"
    r"|(?:failed|error|passed) \S+"
    r"|\w+ = <.{1,80} at 0x[0-9a-f]+>"
    r"|from [\w.]+ import [\w, *()]+(?: as \w+)?(?: *#.*)?$|import [\w.]+(?: as \w+)?(?:, [\w.]+(?: as \w+)"
    r"?)*(?: *#.*)?$"
    r"|import (?:[\w{}*, $]+ from )?[\"'][^\"']+[\"'];?$|#include [<\"]"  # what a file needs tells little
    r"|(?:-?\w, )?--help\b.{0,20}show this help|use 'pytest --fixtures"
    r"|(?:ok|\?)\s+\S+/\S+\s|<?(?:command with )?shellid: \d|process group pgid|background pids"
    r"|agentid: |</?[\w-]+>\s*$|<([\w-]+)>.{0,200}</\1>\s*$"
    r"|(?:.{0,60}\b)?successfully (?:modified file|replaced text|wrote \d+|updated|edited)"
    r"|(?:\w+ ){1,3}successfully at: |.{0,80}\byou can use the '"
    r"|(?:.{0,80}\b)?pid:? \d+\b|@?[\w./-]+@\d+\.\d\S* [\w:.-]+ /|[✔✓√] "
    r"|exit code:? \d|\[?\d+ (?:more|remaining) lines?\b|.{0,60}\buse offset[= ]"
    r"|<current_datetime>|writing transcript to"
    r"|[\W\d_]*$",
)
_VARIES = re.compile(r"\b[0-9a-f]{6,}\b|\d+")
_HARNESS = re.compile(
    r"\b(?:session is being continued from a previous|continue the conversation from where|"
    r"read the full transcript at|before compaction \(|without asking the user any further|"
    r"conversation is summarized below)|^called the \w+ tool with",
    re.IGNORECASE,
)
"""What a harness writes around a summary, for the model that goes on from it."""
_TAGGED = re.compile(
    r"<(/?)(?:local-)?command-\w+>|^(?:\s*</?[\w-]+>\s*)+$"
)  # a slash command, or tags alone
_TAG = re.compile(r"</?\s?[a-z][\w-]*>")
_ADDRESS = re.compile(r"<[\w.]+ object at 0x[0-9a-f]{6,}>")
_PAIR = re.compile(r"\"[\w-]{1,40}\"\s*:")
_HEREDOC = re.compile(r"<<-?\s*['\"]?[A-Za-z_]\w*['\"]?")


def is_noise(line: str) -> bool:
    """Whether a quoted line of output tells a reader nothing whatever it names."""
    text = line.strip("… ")
    parts = text.split(", ")
    only_names = len(parts) > 4 and all(" " not in part.strip(" …") for part in parts)
    return only_names or bool(_NOISE.match(text.lower())) or bool(_ADDRESS.search(text))


def is_record(line: str) -> bool:
    """Whether a quoted line is a piece of JSON."""
    return bool(_PAIR.search(line)) and (line.lstrip("… ")[:1] in '{["' or line.rstrip("… ")[-1:] in "}],")


def quiet(passages: Sequence[TopicPassage], *, names_of_code: bool = False) -> list[TopicPassage]:
    """Return the passages without noise, code, records that prose nearby repeats, and here-documents.

    Of code that a file explains the names stay, where those are wanted (`names_of_code`). What was met
    without a reason given for it gets the request that was being worked on as its reason.
    """
    said: dict[str, list[int]] = {}
    for passage in passages:
        for key in passage.names if passage.kind == "said" else ():
            said.setdefault(key, []).append(passage.order)
    found: list[TopicPassage] = []
    shapes: set[tuple[str, str]] = set()
    asked = ("", 0)
    for passage in passages:
        kind, text = passage.kind, passage.text
        if kind == "asked" and passage.order != asked[1] and len(words(text)) > 1:
            asked = (clip(text.replace("`", "'"), REQUEST), passage.order)
        if kind in ("asked", "told") and not passage.topic and _TAGGED.search(text):
            continue
        if kind in ("line", "hit"):
            code = is_code(text) and not (passage.topic and is_explained(text))
            if (code and not (passage.topic and names_of_code)) or is_noise(text) or _stated(passage, said):
                continue
            known = len(shapes)
            shapes.add(shape(passage))
            if len(shapes) == known:
                continue  # a line like one before, but for numbers and ids
            found.append(_reasoned(mention(passage) if code else passage, asked[0]))
        elif kind != "told" or not is_for_the_agent(text):
            found.append(_reasoned(_short(passage), asked[0]))
    return found


def shape(passage: TopicPassage) -> tuple[str, str]:
    """Return a quoted line without what differs from one line of a log to the next: ids and numbers."""
    return passage.topic, _VARIES.sub("#", passage.text)


def is_for_the_agent(text: str) -> bool:
    """Whether a line beside a request is an instruction of the harness, or code, rather than a note."""
    return bool(_HARNESS.search(text) or _TAG.search(text)) or is_code(text)


def _reasoned(passage: TopicPassage, request: str) -> TopicPassage:
    """Return a passage that was met without a reason with the request as its reason."""
    if request and passage.kind in ("line", "hit", "outline") and not passage.note:
        return msgspec.structs.replace(passage, note=f"{ASKED}{request}")
    return passage


_CODE = re.compile(
    r"[{};]\s*$|=>|\$\{|^\s*[<|]/?\w|^[+-]\s|\w\([^)]*\)\s*[,;:{)]*\s*$"
    r"|^\W*(?:const|let|var|if|for|while|return|import|export|private|public|protected|static|async|await|def"
    r"|class|func|fn|function|type|interface|struct|enum|case|throw|raise|else|elif|try|catch|from|@\w)\b"
    r"|^\W*[\w.\[\]\"'-]+\??\s*(?::|[-+|&]?=|:=)(?!//)\s*\S"
)
"""What marks a line as code, or as a row of data, rather than words."""
_EXPLAINED = re.compile(r"\s(?:#|//|--|/\*)\s*\w+|=\s*[\d.]+\s+[A-Za-z]{3,}")
"""A comment behind code, or a number with its unit."""
_SETTING = re.compile(r"[\w.-]+\s*[:=]\s*[\"']?[\w./:-]+[\"']?,?(?:\s+[#/].*)?$")
"""A name that is given a plain value."""


def is_code(line: str) -> bool:
    """Whether a quoted line is code or data rather than a sentence."""
    return bool(_CODE.search(line)) and not (_SETTING.match(line) or is_record(line))


def is_explained(line: str) -> bool:
    """Whether a line of code says in words what it is for."""
    return len(words(line)) > SAYS and bool(_EXPLAINED.search(line))


def mention(passage: TopicPassage) -> TopicPassage:
    """Reduce a quoted line of code to the names in it; without any it stays."""
    found = names.find(passage.text)
    own = [name for name in found if name.key != passage.topic and name.kind not in ("flag", "number")]
    text = ", ".join(dict.fromkeys(f"`{name.text}`" for name in own if "`" not in name.text))
    return msgspec.structs.replace(passage, text=text, kind="mention") if text else passage


def _stated(passage: TopicPassage, said: dict[str, list[int]]) -> bool:
    """Whether prose just after a record names all that the record names."""
    if passage.topic or not is_record(passage.text):
        return False
    own = {name.key for name in names.find(_PAIR.sub(" ", passage.text)) if name.kind != "identifier"}
    return all(any(0 <= at - passage.order <= NEARBY for at in said.get(key, ())) for key in own)


def _short(passage: TopicPassage) -> TopicPassage:
    """Cut a command that was run where its here-document begins, if a reason says what it did."""
    if passage.kind != "ran" or not passage.topic:
        return passage
    match = _HEREDOC.search(passage.text)
    if match is None:
        return passage
    text = passage.text[: match.start()].rstrip() + " <<…`"
    shown = f"{text} {passage.topic}"
    kept = tuple(name.key for name in names.find(shown))
    return msgspec.structs.replace(passage, text=text, names=tuple(dict.fromkeys(kept)))
