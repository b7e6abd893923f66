"""The scripted demonstration: a model that needs no key, in a folder of its own, with a small window.

It reads files at each prompt, so that a compaction comes after a few; a question it looks up in the past.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any, Final

import msgspec

from foldline.agent.options import HostOptions
from foldline.core.measure.window import Window
from foldline.testing import Answer, Asked, Scripted, call, calls

WINDOW: Final = Window(context=12_000, output=1_000)
PARTS: Final = ("loans", "holds", "members", "fines", "shelves", "notices", "reports", "branches")
WORD: Final = re.compile(r"[A-Za-z_]{4,}")
COMMON: Final = frozenset((
    "what", "which", "when", "where", "does", "this", "that", "with",
    "have", "were", "your", "about", "there", "said", "please",
))  # fmt: skip
HIT: Final = re.compile(r"^- [0-9a-f]+ (?:\S+ \S+ UTC, )?")  # the entry and the time of a hit
TO_TRY: Final = """\
- Say `Never change the limits.`, and what else to look at: loans, holds, members, fines, shelves.
- `/preview` shows a fold first, `/compact` makes it, `/undo` takes it back.
- Ask what was said before: what was folded is found."""
SPEED: Final = 0.4  # seconds before a reply: it is to be seen that something goes on


def demonstration(options: HostOptions) -> HostOptions:
    """Return options for the demonstration: a scripted model in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="foldline-demo-"))
    for number, part in enumerate(PARTS):
        (folder / f"{part}.py").write_text(_source(part, number), encoding="utf-8")
    (folder / "AGENTS.md").write_text("Run `make test` before you say that you are done.\n", encoding="utf-8")
    model = Scripted(_reply, window=WINDOW, dialect="openai-chat", model="demonstration", keep=1)
    return msgspec.structs.replace(
        options,
        folder=folder,
        provider=model,
        window=WINDOW,
        model=None,
        store=options.store or f"sqlite:///{folder / 'sessions.db'}",
    )


def _source(part: str, number: int) -> str:
    """Return a file of some 90 lines about a part of a library's lending desk."""
    head = [f'"""The {part} of the lending desk."""', "", f"LIMIT_{part.upper()} = {7 + number}", ""]
    body = [
        f"def {part}_{step}(count: int) -> int:\n"
        f'    """Return the {part} that step {step} leaves of a count."""\n'
        f"    return min(count, LIMIT_{part.upper()} * {step + 1})\n"
        for step in range(14)
    ]
    return "\n".join([*head, *body])


def _reply(asked: Asked) -> Answer:
    """Answer a request: read a file, then tell of it; a question is looked up."""
    newest = asked.messages[-1]
    prompts = [text for message in asked.messages if (text := _said(message))]
    question = prompts[-1] if prompts else ""
    words = sorted({word.lower() for word in WORD.findall(question)} - COMMON, key=len, reverse=True)
    if newest.get("role") == "tool":
        return msgspec.structs.replace(
            _told(str(newest.get("content")), question, first=len(prompts) == 1), wait=SPEED
        )
    if question.rstrip().endswith("?") and words:
        return msgspec.structs.replace(call("recall_search", query=words[0]), wait=SPEED)
    part = next((one for one in PARTS if one in question.lower()), PARTS[len(prompts) % len(PARTS)])
    found = calls(call("read", path=f"{part}.py"), call("grep", pattern=f"LIMIT_{part.upper()}"))
    return msgspec.structs.replace(found, text=f"I look at {part}.py.", wait=SPEED)


def _said(message: dict[str, Any]) -> str:
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, str) or content.startswith("<"):
        return ""
    return content


def _told(result: str, question: str, *, first: bool) -> Answer:
    """Tell of what a tool answered."""
    if "recall" in result[:80].lower() or "messages match" in result or "matches" in result[:120]:
        hits = [line for line in result.splitlines() if line.startswith("- ") and question not in line]
        lines = hits[:3]
        if not lines:
            return Answer(text=f"I find nothing of “{question}” in what was said.")
        said = "\n".join(f"- {HIT.sub('', line)}" for line in lines)
        return Answer(text=f"In what was said, folded messages included, I find:\n\n{said}")
    found = re.search(r"LIMIT_(\w+) = (\d+)", result)
    if found is None:
        return Answer(text="Done.")
    part, limit = found.group(1).lower(), found.group(2)
    text = (
        f"**{part}.py**: at most {limit} {part} a member (`LIMIT_{found.group(1)} = {limit}`). "
        "Decision: the limit stays a constant, because every branch of the library has the same rules."
    )
    return Answer(text=f"{text}\n\n{TO_TRY}" if first else text)
