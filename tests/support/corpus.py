"""Recorded sessions, and what must hold of every fold of one: each check returns what is wrong with it."""

from __future__ import annotations

import gzip
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

import foldline
from foldline.catalogue import ModelInfo
from foldline.core.checkpoint.checkpoint import Recognised, recognise
from foldline.core.cut.pairing import unanswered_from
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.ledger.table import collect
from foldline.core.log.codec import decode
from foldline.core.log.entries import Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.core.view_items import Item, MessageItem, native_items
from foldline.dialects import get
from foldline.dialects.edits import replacements
from foldline.folding import Done, FoldOptions, fold_now, overhead_of
from foldline.loading import Loaded, from_messages, from_records
from foldline.policies import policy as find_policy
from foldline.transcripts import MessageRecord, read

CHAT = "openai-chat"
DIALECTS = ("openai-chat", "anthropic")
SHARES = (0.05, 0.1, 0.2, 0.5)
ONE_IN = 30  # of the sessions, in the sample that every check of the project folds
LARGEST = 120_000  # bytes of a packed session in the sample
ROOT = Path(os.environ.get("FOLDLINE_CORPUS") or Path(__file__).parents[3] / "shared" / "data")
NOW = "2026-01-02T03:04:05Z"


class Report(msgspec.Struct):
    """What came out of folding one session many times; `floors` and `wrong` say where and why."""

    name: str
    folds: int = 0
    floors: list[str] = []
    wrong: list[str] = []
    seconds: float = 0.0


def sessions(root: Path) -> list[Path]:
    """The recorded sessions in the plain form, in a fixed order."""
    return sorted((root / "sessions").glob("*/*.jsonl.gz"))


def sample(paths: Sequence[Path]) -> list[Path]:
    """One in `ONE_IN` by the hash of the name, and the first by that hash of every agent that it left out.

    Of those of up to `LARGEST` bytes: a check is to be quick, and `make corpus` takes all.
    """
    small = [path for path in paths if path.stat().st_size <= LARGEST]
    ranked = sorted(small, key=lambda path: hashlib.sha256(path.name.encode()).digest())
    picked = [path for path in ranked if hashlib.sha256(path.name.encode()).digest()[0] % ONE_IN == 0]
    for path in ranked:
        if agent(path) not in {agent(known) for known in picked}:
            picked.append(path)
    return sorted(picked)


def agent(path: Path) -> str:
    """The agent that recorded a session: its name without the hash at the end."""
    return path.name.rpartition("-")[0]


def chat_messages(path: Path) -> list[dict[str, Any]]:
    """A recorded session as Chat Completions messages, all that was said."""
    with gzip.open(path, "rb") as stream:
        heard = [
            record.message for record in read(stream, name=path.name) if isinstance(record, MessageRecord)
        ]
    return [decode(message.native.raw) for message in heard if message.native is not None]


def with_boundaries(path: Path) -> Loaded:
    """A recorded session as the command line reads it, compacted where its agent compacted."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
        return from_records(read(stream, name=path.name), OFFLINE)


def size_of(loaded: Loaded) -> int:
    """The tokens of the repaired list and a system prompt apart, by Foldline's own counter."""
    return ViewState(loaded.entries, counter=OFFLINE).tokens + overhead_of(loaded.system, None, OFFLINE).total


def fold(loaded: Loaded, policy: str, target: int) -> Done:
    """Fold entries that are loaded already, as `foldline.compact` does."""
    overhead = overhead_of(loaded.system, None, OFFLINE)
    info = ModelInfo(None, Window(context=200_000))
    options = FoldOptions(find_policy(policy), info, target=target, overhead=overhead, recall=True, now=NOW)
    return fold_now(loaded, options)


def cached_collect() -> Callable[[Sequence[Said], Ledger], Ledger]:
    """The real collection of facts, which answers the same question of many policies once.

    An entry's id is a hash of all before it, so the ids say what the entries are.
    """
    answers: dict[tuple[Ledger, tuple[str, ...]], Ledger] = {}

    def collected(entries: Sequence[Said], before: Ledger) -> Ledger:
        key = before, tuple(entry.id for entry in entries)
        if key not in answers:
            answers[key] = collect(entries, before)
        return answers[key]

    return collected


def record_figures(report: Report, record_property: Callable[[str, Any], None]) -> None:
    """Hand the figures of a report to the summary at the end of the run."""
    figures = {
        "sessions": 1,
        "folds": report.folds,
        "floors": len(report.floors),
        "violations": len(report.wrong),
        "seconds": report.seconds,
    }
    for name, value in figures.items():
        record_property(name, value)
    for floor in report.floors:
        record_property("floor", floor)


# ---- what must hold


def check_all(payloads: Sequence[Any], folds: Iterable[tuple[str, float]], name: str) -> Report:
    """Fold a session under each policy at each share of its size, and check every fold."""
    return check_loaded(from_messages(payloads, OFFLINE), folds, name, payloads)


def check_native(
    messages: Sequence[Any], system: Any, folds: Iterable[tuple[str, float]], name: str
) -> Report:
    """The same for Anthropic messages with a system prompt apart, which is sent beside the result."""
    loaded = from_messages(messages, OFFLINE, dialect="anthropic")
    loaded.system = system
    return check_loaded(loaded, folds, name, messages)


def check_loaded(
    loaded: Loaded,
    folds: Iterable[tuple[str, float]],
    name: str,
    payloads: Sequence[Any] | None = None,
) -> Report:
    """Fold entries under each policy at each share of the size of their view, and check every fold."""
    started = time.perf_counter()
    report = Report(name)
    size = size_of(loaded)
    for policy, share in folds:
        target = int(size * share)
        where = f"{name} under {policy} at {share:.0%} ({target:,} of {size:,} tokens)"
        report.folds += 1
        try:
            done = fold(loaded, policy, target)
        except foldline.FloorExceeded as error:
            report.floors.append(f"{where}: {error.floor:,} {error.breakdown}")
            if error.floor <= target or sum(error.breakdown.values()) <= target:
                report.wrong.append(f"{where}: refused although its floor fits: {error}")
            continue
        wrong = [*check(loaded, done, target, payloads), *check_second_fold(done, policy, target)]
        report.wrong.extend(f"{where}: {text}" for text in wrong)
    report.seconds = time.perf_counter() - started
    return report


def check(loaded: Loaded, done: Done, target: int, payloads: Sequence[Any] | None = None) -> Iterator[str]:
    """Yield what is wrong with one fold: its size, its validity, its kept messages."""
    after = [*loaded.entries, *([done.boundary] if done.boundary is not None else [])]
    folded = ViewState(after, counter=OFFLINE)
    size = folded.tokens + overhead_of(loaded.system, None, OFFLINE).total
    if not done.view_tokens == done.receipt.tokens_after == size <= target:
        yield f"{done.view_tokens} tokens in the result, {size} in the view, {target} asked for"
    yield from check_valid(folded)
    yield from (f"{done.dialect}: {p}" for p in get(done.dialect).validate(done.messages, done.system))
    yield from check_kept(folded.view(), done, loaded, payloads)
    yield from check_unanswered(loaded, folded)


def check_valid(folded: ViewState) -> Iterator[str]:
    """Yield the rules that a view breaks in either dialect."""
    for name in DIALECTS:
        rendered = get(name).render(native_items(folded.view()), whole=True)
        yield from (
            f"{name}: {problem}" for problem in get(name).validate(rendered.messages, rendered.system)
        )


def check_kept(
    view: Sequence[Item], done: Done, loaded: Loaded, payloads: Sequence[Any] | None
) -> Iterator[str]:
    """Yield the kept messages that are not as received but for the parts that the boundary lists."""
    dialect = get(done.dialect)
    alone = [dialect.render([pair]).messages for pair in native_items(view)]
    if done.dialect == CHAT and [message for group in alone for message in group] != done.messages:
        yield "the messages are not those of the view, one after the other"
    listed = {(edit.entry, edit.part) for edit in done.boundary.edits} if done.boundary is not None else set()
    for item, group in zip(view, alone, strict=True):
        if not isinstance(item, MessageItem):
            continue
        entry, message = item.entry, item.entry.message
        unlisted = [e for e in item.edits if e.kind != "repaired" and (entry.id, e.part) not in listed]
        if unlisted and done.boundary is not None:
            yield f"message {loaded.index[entry.id]} has edits that the boundary does not list: {unlisted}"
        if not item.edits and payloads is not None and message.native is not None:
            if group != [payloads[loaded.index[entry.id]]]:
                yield f"message {loaded.index[entry.id]} is not as received"
        elif item.edits:
            wanted = replacements(item.edits)
            parts = [wanted.get(at, part) for at, part in enumerate(message.parts)]
            found = [part for message in group for part in dialect.decode(message).parts]
            if found != [part for part in parts if part is not None]:
                yield f"message {loaded.index[entry.id]} differs in a part that is not listed"


def check_unanswered(loaded: Loaded, folded: ViewState) -> Iterator[str]:
    """Yield the messages that no reply has seen and that the view does not hold."""
    said = [entry for entry in loaded.entries if isinstance(entry, Said)]
    shown = {item.entry.id for item in folded.view() if isinstance(item, MessageItem)}
    for entry in said[unanswered_from([entry.message for entry in said]) :]:
        blank = not entry.message.calls and not entry.message.results and not entry.message.text.strip()
        if entry.id not in shown and not blank:
            yield f"message {loaded.index[entry.id]} is unanswered and not in the view"


def checkpoint_of(messages: Sequence[Any]) -> Recognised | None:
    """The checkpoint in a folded list of Chat Completions messages."""
    return recognise([get(CHAT).decode(message) for message in messages])


def check_second_fold(done: Done, policy: str, target: int) -> Iterator[str]:
    """Yield what a second fold in a row changes."""
    again = foldline.compact(
        done.messages, target=target, policy=policy, dialect=done.dialect, system=done.system
    )
    if again.messages != done.messages or again.cut is not None or again.summary is not None:
        yield f"a second fold changes it: {again.view_tokens} tokens after {done.view_tokens}"


def as_anthropic(path: Path) -> tuple[list[dict[str, Any]], Any]:
    """A recorded session as Anthropic messages, and its system prompt."""
    loaded = from_messages(chat_messages(path), OFFLINE)
    rendered = get("anthropic").render(
        native_items(ViewState(loaded.entries, counter=OFFLINE).view()), whole=True
    )
    return rendered.messages, rendered.system
