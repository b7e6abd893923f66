"""Sentences planted into sessions, and how to fold a session ten times while it grows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from foldline.core.checkpoint.checkpoint import recognise
from foldline.core.checkpoint.page import parse
from foldline.core.ledger.text.origin import prompts
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text
from foldline.core.measure.tokens import OFFLINE
from foldline.dialects import get
from foldline.loading import from_messages

FOLDS = 10

# Five for each of ten sessions: many ways to say what must always or never hold, no two about one thing.
STANDING = (
    "Never touch anything under vendor/zlib without asking me first.",
    "All money amounts must be integers in cents.",
    "Always answer in British English.",
    "Don't add any new runtime dependency.",
    "From now on, every log line has to carry the request id.",
    "Under no circumstances may the exporter write outside of ./out.",
    "We never mock the clock in these tests.",
    "Please make sure that no secret ever ends up in a fixture.",
    "Only use double quotes in the YAML files.",
    "Keep functions under 35 lines.",
    "The public API must stay backwards compatible with release 2.4.",
    "Always run the linter before you tell me that something is done.",
    "Do not rename database columns.",
    "No network access in unit tests.",
    "I never want to see a wildcard import.",
    "Nothing outside of gateway.ts may talk to the payment provider.",
    "Ask me before you delete a file.",
    "Every exported type must have a doc comment with an example.",
    "Prefer composition over inheritance.",
    "Timestamps in reports should always be UTC.",
    "Don't ever force-push a shared branch.",
    "When you change a prompt template, also bump PROMPT_VERSION.",
    "Use tabs, not spaces, in the Makefile fragments.",
    "It is important that the importer stays idempotent.",
    "We don't use default exports in this codebase.",
    "The changelog must only mention what a user can notice.",
    "Never commit generated files.",
    "Avoid abbreviations in identifiers.",
    "All shell scripts must start with set -euo pipefail.",
    "Remember that legacy/ is frozen.",
    "Each migration needs a rollback.",
    "You may not call the billing sandbox more than once per test run.",
    "Always keep the German and the English texts in step.",
    "Stick to the existing error hierarchy.",
    "Please never print a customer's e-mail address.",
    "Whenever you add a flag, update the man page.",
    "Retries must never exceed 4 attempts.",
    "Leave src/compat alone.",
    "Tests should never depend on their order.",
    "Don't use sleep in integration tests.",
    "For the rest of this session, write commit messages in the imperative mood.",
    "Only I merge pull requests.",
    "Everything in packages/core must build without a bundler.",
    "No more than one class in each file.",
    "Bitte verwende niemals absolute Pfade.",
    "The worker is not allowed to open more than 8 connections.",
    "N'utilise jamais de variable globale.",
    "Before you commit, run make fast-check.",
    "Follow our naming convention for feature flags: area.name.",
    "Handlers must return within 200 ms, no exceptions.",
)

# What a user asks of every reply: the kinds of a public set of side constraints (COMPINT), in words of our own.
SIDE_CONSTRAINTS = (
    "Before you run a command that changes files, show me the command and wait for my go-ahead.",
    "When you finish a task, end your reply with the line READY FOR REVIEW.",
    "Before you answer, restate my question in one sentence.",
    "When you recommend a library, name its licence too.",
    "Reply in bullet points only.",
    "Never use the word leverage.",
    "Keep every reply under 150 words.",
    "Do not open a browser.",
    "Ask me before you install anything.",
    "Always give sums in Swiss francs.",
    "Write all file names in full.",
    "Only read from the replica, never from the primary.",
    "Answer in British English.",
    "Don't mention the merger to anybody.",
    "Use at most three web searches for one question.",
)
FRAMES = ("For the rest of this session: ", "This is an important constraint: ", "From now on, ")

# What is said first, what replaces it later, and how to tell the old value and the new one in a line.
REPLACED = (
    ("Always use port 8080 for the preview server.", "Always use port 9090 instead of 8080 for the preview server.", "8080", "9090"),
    ("Functions in the parser must stay under 40 lines.", "Functions in the parser must stay under 60 lines.", "40 lines", "60 lines"),
    ("Always indent the SQL files with tabs.", "Actually, always indent the SQL files with spaces.", "tabs", "spaces"),
    ("Only use npm in this repository.", "Only use pnpm in this repository.", "npm", "pnpm"),
    ("Keep the upload timeout at 30 seconds.", "The upload timeout must be 45 seconds from now on.", "30 seconds", "45 seconds"),
    ("Never write a summary longer than 200 words.", "Never write a summary longer than 350 words.", "200 words", "350 words"),
    ("Reports must be written in German.", "Reports must be written in Spanish.", "written in German", "written in Spanish"),
    ("The cache must never hold more than 500 entries.", "The cache must never hold more than 2000 entries.", "500 entries", "2000 entries"),
    ("Never deploy to the staging-eu cluster.", "Forget the staging-eu rule, you may now deploy to the staging-eu cluster.", "Never deploy", "may now deploy"),
    ("All temperatures should be in Fahrenheit.", "All temperatures should be in Celsius.", "Fahrenheit", "Celsius"),
)  # fmt: skip


def stated(sentences: Sequence[str], dialect: str) -> list[Any]:
    """The user says the sentences, and the model answers."""
    said = [
        Message("user", (Text("Some things to keep to.\n\n" + "\n".join(f"- {s}" for s in sentences)),)),
        Message("assistant", (Text("Understood."),)),
    ]
    return get(dialect).render([(message, ()) for message in said]).messages


def plant_replacements(pieces: Sequence[list[Any]], dialect: str, new_in: int = 3) -> list[list[Any]]:
    """Put what is said first at the end of the first piece, and what replaces it at the end of piece `new_in`."""
    found = [list(piece) for piece in pieces]
    found[0] += stated([old for old, *_ in REPLACED], dialect)
    found[new_in] += stated([new for _, new, *_ in REPLACED], dialect)
    return found


def own_prompts(messages: Sequence[Any], dialect: str = "openai-chat") -> list[int]:
    """The indices of the messages in which the user speaks."""
    loaded = from_messages(messages, OFFLINE, dialect=dialect)
    said = [entry for entry in loaded.entries if isinstance(entry, Said)]
    return sorted(loaded.index[entry.id] for entry, _ in prompts(said))


def plant(messages: Sequence[dict[str, Any]], sentences: Sequence[str]) -> list[dict[str, Any]]:
    """Put each sentence into a message of the user's in the first sixth, by turns before and after its words."""
    places = own_prompts(messages)
    early = [index for index in places if index < len(messages) // 6] or places[:1]
    found = [dict(message) for message in messages]
    for number, sentence in enumerate(sentences):
        body = found[early[number % len(early)]]
        text = body["content"]
        body["content"] = f"{text}\n\n{sentence}" if number % 2 else f"{sentence}\n\n{text}"
    return found


def plant_side_constraints(
    messages: Sequence[dict[str, Any]], place: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Put what a user asks of every reply at the top, in the middle, or behind what is said there.

    Each place has a frame of its own; a plan that an agent wrote is nobody's words and gets none.
    """
    at = ("top", "middle", "behind").index(place)
    low, high = (0, 0.1) if place == "top" else (0.3, 0.55)
    mine = [
        n for n in own_prompts(messages) if not messages[n]["content"].lstrip().startswith("Implement the")
    ]
    within = [n for n in mine if len(messages) * low <= n < len(messages) * high] or mine[:1]
    found = [dict(message) for message in messages]
    framed = [f"{FRAMES[at]}{text[0].lower()}{text[1:]}" for text in SIDE_CONSTRAINTS]
    for number, sentence in enumerate(framed):
        body = found[within[number % len(within)]]
        pair = (body["content"], sentence) if place == "behind" else (sentence, body["content"])
        body["content"] = "\n\n".join(pair)
    return found, framed


def chunks(messages: Sequence[Any], dialect: str, first: float = 1 / 6) -> list[list[Any]]:
    """A head of the session and ten more pieces of it, none of which ends inside a batch of calls."""
    ends = list(_closed(messages, dialect))
    head = int(len(messages) * first)
    wanted = [head + (len(messages) - head) * step // FOLDS for step in range(FOLDS + 1)]
    at = [
        0,
        *(next((end for end in ends if end >= place), len(messages)) for place in wanted[:-1]),
        len(messages),
    ]
    return [list(messages[start:stop]) for start, stop in pairwise(at)]


def _closed(messages: Sequence[Any], dialect: str) -> Iterator[int]:
    """Yield the numbers of messages after which no call waits for a result that comes later."""
    read = [get(dialect).decode(payload) for payload in messages]
    answered = {result.call_id for message in read for result in message.results}
    waiting: set[str] = set()
    for index, message in enumerate(read):
        if not waiting and index:
            yield index
        waiting.update({call.id for call in message.calls} & answered)
        waiting.difference_update(result.call_id for result in message.results)


# ---- what a folded list says


def checkpoint_summary(messages: Sequence[Any], dialect: str) -> str:
    """The summary in the checkpoint of a folded list, "" where it has none."""
    found = recognise([get(dialect).decode(message) for message in messages])
    return found.checkpoint.summary if found is not None else ""


def constraints_in(summary: str) -> list[str]:
    """The standing constraints of a checkpoint, word for word."""
    return [fact.text for fact in parse(summary).constraints]


def missing_sentences(messages: Sequence[Any], dialect: str, sentences: Sequence[str]) -> list[str]:
    """The sentences that neither the checkpoint's constraints nor a kept message of the user's hold."""
    read = [get(dialect).decode(message) for message in messages]
    kept = [m.text for m in read if m.is_prompt and not m.text.startswith("<foldline-checkpoint")]
    held = constraints_in(checkpoint_summary(messages, dialect))
    return [s for s in sentences if s not in held and not any(s in text for text in kept)]


def stale_constraints(summary: str) -> list[str]:
    """The standing constraints of a checkpoint that name an old value of `REPLACED` and not the new one.

    What was said at the time stands in the conversation, as history.
    """
    return [
        text
        for _, _, old, new in REPLACED
        for text in constraints_in(summary)
        if _names(old, text) and not _names(new, text)
    ]


def _names(value: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None
