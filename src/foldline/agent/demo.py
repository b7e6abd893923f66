"""The demonstration: a scripted model without a key, in a temporary folder, with a small window.

It reads files at each prompt, so that a compaction follows soon; it answers a question from the history.
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
HIT: Final = re.compile(r"^- [0-9a-f]+ (?:\S+ \S+ UTC, )?")  # entry and time of a search hit
TO_TRY: Final = """\
- Say `Never change the limits.`, or name another part: loans, holds, members, fines, shelves.
- `/preview` shows what a fold would do, `/compact` folds, `/undo` reverts it.
- Ask about an earlier message: folded ones are found, too."""
SPEED: Final = 0.4  # seconds before a reply, so that progress is visible


def demonstration(options: HostOptions) -> HostOptions:
    """Return options for the demonstration."""
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
    """Return a source file of about 60 lines for a part of a library's lending desk."""
    head = [f'"""The {part} of the lending desk."""', "", f"LIMIT_{part.upper()} = {7 + number}", ""]
    body = [
        f"def {part}_{step}(count: int) -> int:\n"
        f'    """Return the {part} that step {step} leaves of a count."""\n'
        f"    return min(count, LIMIT_{part.upper()} * {step + 1})\n"
        for step in range(14)
    ]
    return "\n".join([*head, *body])


def _reply(request: Asked) -> Answer:
    """Answer a request: read a file, then describe it; look up a question in the history."""
    newest = request.messages[-1]
    prompts = [text for message in request.messages if (text := _prompt_text(message))]
    question = prompts[-1] if prompts else ""
    words = sorted({word.lower() for word in WORD.findall(question)} - COMMON, key=len, reverse=True)
    if newest.get("role") == "tool":
        answer = _describe(str(newest.get("content")), question, first=len(prompts) == 1)
        return msgspec.structs.replace(answer, wait=SPEED)
    if question.rstrip().endswith("?") and words:
        return msgspec.structs.replace(call("recall_search", query=words[0]), wait=SPEED)
    part = next((part for part in PARTS if part in question.lower()), PARTS[len(prompts) % len(PARTS)])
    answer = calls(call("read", path=f"{part}.py"), call("grep", pattern=f"LIMIT_{part.upper()}"))
    return msgspec.structs.replace(answer, text=f"I will look at {part}.py.", wait=SPEED)


def _prompt_text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if message.get("role") != "user" or not isinstance(content, str) or content.startswith("<"):
        return ""
    return content


def _describe(result: str, question: str, *, first: bool) -> Answer:
    if "recall" in result[:80].lower() or "messages match" in result or "matches" in result[:120]:
        hits = [line for line in result.splitlines() if line.startswith("- ") and question not in line]
        if not hits:
            return Answer(text=f"No earlier message matches “{question}”.")
        lines = "\n".join(f"- {HIT.sub('', line)}" for line in hits[:3])
        return Answer(text=f"I found these earlier messages, including folded ones:\n\n{lines}")
    match = re.search(r"LIMIT_(\w+) = (\d+)", result)
    if match is None:
        return Answer(text="Done.")
    part, limit = match.group(1).lower(), match.group(2)
    text = (
        f"**{part}.py**: at most {limit} {part} per member (`LIMIT_{match.group(1)} = {limit}`). "
        "Decision: the limit stays a constant, because every branch of the library has the same rules."
    )
    return Answer(text=f"{text}\n\n{TO_TRY}" if first else text)
