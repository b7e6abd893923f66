"""The formats by name, and the export itself: survey the entries, then write them one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from foldline import dialects
from foldline.core.log.entries import Entry, Noted
from foldline.core.log.messages import Message
from foldline.core.log.opaque import stored_calls
from foldline.dialects.edits import told_in_words
from foldline.dialects.payload import items_of
from foldline.dialects.values import Losses
from foldline.errors import InputError, did_you_mean
from foldline.exports.base import RESULT_CAP, ExportWriter, FoldStep, Origin, Out, SaidStep, Step
from foldline.exports.claude_code import ClaudeCodeWriter
from foldline.exports.codex import CodexWriter
from foldline.exports.coop import CoopWriter
from foldline.exports.gencode import GenCodeWriter
from foldline.exports.klaude import KlaudeWriter
from foldline.exports.lists import ListWriter
from foldline.exports.markdown import MarkdownWriter
from foldline.exports.moldable import MoldableWriter
from foldline.exports.opencode import OpenCodeWriter
from foldline.exports.pi import PiPlanWriter, PiWriter
from foldline.exports.steps import StepSurvey, join_replies, said_step, split_turn, view_steps
from foldline.stores.base import Store

OWN = "jsonl"
"""Foldline's own format: the log itself, written by `transcripts.dump`."""

_TOOLS: dict[str, type[ExportWriter]] = {
    "pi": PiWriter,
    "claude-code": ClaudeCodeWriter,
    "moldable": MoldableWriter,
    "codex": CodexWriter,
    "opencode": OpenCodeWriter,
    "klaude-code": KlaudeWriter,
    "coop": CoopWriter,
    "gencode": GenCodeWriter,
    "pi-plan": PiPlanWriter,
    "markdown": MarkdownWriter,
}


class ExportRequest(msgspec.Struct, frozen=True):
    """The format, the view or the whole history, and metadata that the entries lack.

    `cwd` is the folder in which the other tool continues (None: the current one); `cap` is how many
    characters of a result a readable format shows (None: all). `system` is a separate system prompt, `tools`
    are tool definitions: only lists write the first, no format the second. Defaults come from the notes.
    """

    form: str
    view: bool = False
    title: str | None = None
    model: str | None = None
    cwd: str | None = None
    cap: int | None = RESULT_CAP
    system: Message | None = None
    tools: Any = None


class ExportResult(msgspec.Struct, frozen=True):
    """What an export wrote: the session's id in it, the number of messages, and warnings about losses.

    `place` is the path where the other tool expects the file, `command` resumes it there. `beside` are
    further files by name: a suffix to the stem of the export's name, or "/" and a whole name.
    """

    session: str
    count: int
    warnings: tuple[str, ...] = ()
    place: str | None = None
    command: str | None = None
    beside: dict[str, bytes] = {}


def export_entries(
    entries: Sequence[Entry],
    session: str,
    request: ExportRequest,
    out: Out,
    *,
    boundaries: Sequence[Entry] = (),
) -> ExportResult:
    """Write the entries of a path, root to leaf, to `out`.

    `session` is our id of the session. If `entries` are only those that its view needs, `boundaries` are the
    boundaries and notes of the whole path. Raises InputError for an unknown format.
    """
    survey = StepSurvey()
    for entry in boundaries:
        if isinstance(entry, Noted):
            survey.note(entry)
    for entry in entries:
        survey.note(entry)
    export = _Export(survey, session, request, out)
    if request.view:
        own = export.writer.own_boundaries
        export.write(view_steps(entries, export.losses, own_boundaries=own, boundaries=boundaries))
    else:
        export.write(export.history(entries))
    return export.finish()


async def export_stored(store: Store, session: str, request: ExportRequest, out: Out) -> ExportResult:
    """Write a stored session to `out`: the whole history page by page, or the view.

    Raises the store's errors, and InputError for an unknown format.
    """
    info = await store.info(session)
    leaf = info.leaf if info is not None else None  # the same path in every read
    if request.view:
        title = request.title or (info.title if info is not None else None)
        boundaries = await store.marks(session, leaf, kinds=("compacted", "lifted", "noted"))
        request = msgspec.structs.replace(request, title=title)
        entries = await store.active(session, leaf)
        return export_entries(entries, session, request, out, boundaries=boundaries)
    survey = StepSurvey()
    async for entry in store.path(session, leaf):
        survey.note(entry)
    export = _Export(survey, session, request, out)
    if info is not None and info.entries > survey.entries:
        export.losses.add("entries on other branches left out", info.entries - survey.entries)
    async for entry in store.path(session, leaf):
        export.write(export.history([entry]))
    return export.finish()


class _Export:
    """One export in progress: passes the steps of a session to the writer of its format."""

    def __init__(self, survey: StepSurvey, session: str, request: ExportRequest, out: Out) -> None:
        make_writer = writer_of(request.form)
        started = survey.started if survey.started is not None else time.time()
        origin = Origin(
            session=session,
            started=started,
            ended=survey.ended if survey.ended is not None else started,
            cwd=request.cwd or str(Path.cwd()),
            title=survey.noted("title") or request.title or None,
            model=survey.model or request.model or survey.noted("model"),
            view=request.view,
            kept=frozenset(() if request.view else survey.kept),
            quoted=frozenset(() if request.view else survey.quoted),
            cap=request.cap,
            system=request.system or survey.system,
        )
        self._survey = survey
        self.writer: ExportWriter = make_writer(origin, origin.uuid(request.form, survey.leaf), out)
        self.losses: Losses = self.writer.losses
        if (tools := request.tools or survey.tools) and request.form in dialects.names():
            self.losses.add("tool definitions left out", len(items_of(tools)) or 1)
        self._held: SaidStep | None = None
        self._called: set[str] = set()  # the ids of calls so far
        self._refers = False  # a message referred to a call that its provider stored
        self.writer.begin()

    def history(self, entries: Iterable[Entry]) -> Iterator[Step]:
        """Yield the steps of the history."""
        for entry in entries:
            step = said_step(entry, self._survey, self.losses, quotes=self.writer.quotes)
            if step is not None:
                yield step

    def write(self, steps: Iterable[Step]) -> None:
        """Write steps, split and joined as the format requires."""
        for step in steps:
            if isinstance(step, FoldStep):
                self._release()
                self.writer.begun = True
                self.writer.fold(step)
                continue
            plain_step = self._without_references(step)
            for piece in split_turn(plain_step) if self.writer.stepwise else [plain_step]:
                self._say(piece)

    def _without_references(self, step: SaidStep) -> SaidStep:
        """Return a step with results of provider-stored calls as text: no tool knows those calls."""
        self._called.update(call.id for call in step.message.calls)
        self._refers = self._refers or bool(stored_calls(step.message))
        if not self._refers:
            return step
        message, edits = told_in_words(step.message, step.edits, self._called)
        return msgspec.structs.replace(step, message=message, edits=tuple(edits))

    def _say(self, step: SaidStep) -> None:
        """Write a message, or hold a reply that may have to be joined with the next one."""
        joined = join_replies(self._held, step) if self._held is not None else None
        if joined is None:
            self._release()
        self._held = joined or step
        if not (self.writer.joins and self._held.message.calls):
            self._release()

    def _release(self) -> None:
        step, self._held = self._held, None
        if step is not None:
            self.writer.say(step)

    def finish(self) -> ExportResult:
        """Write the end and return the result."""
        self._release()
        writer = self.writer
        writer.end()
        place, command = writer.resume() or (None, None)
        lost = self.losses.lines()
        return ExportResult(writer.session, writer.count, lost, place, command, writer.beside())


def result_fields(result: ExportResult) -> dict[str, Any]:
    """Return an export's result as --json prints it."""
    return {
        "count": result.count,
        "written_as": result.session,
        "warnings": list(result.warnings),
        "place": result.place,
        "command": result.command,
    }


# ---- the formats


def formats() -> tuple[str, ...]:
    """Return the names of all formats, our own first, then those of other tools, then the dialects' lists."""
    return (OWN, *_TOOLS, *dialects.names())


def agents() -> tuple[str, ...]:
    """Return the names of the formats of other agents."""
    return tuple(name for name in _TOOLS if name != "markdown")


def writer_of(name: str) -> Callable[[Origin, str, Out], ExportWriter]:
    """Return the writer of a format; raises InputError for an unknown one."""
    if name in _TOOLS:
        return _TOOLS[name]
    if name in dialects.names():
        return partial(ListWriter, dialect=name)
    hint = did_you_mean(name, formats())
    raise InputError(f"unknown format {name!r}{hint}: choose one of {', '.join(formats())}")
