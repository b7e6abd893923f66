"""`foldline export SOURCE`: a stored session, or a session file, in the form of another tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import click
import msgspec

from foldline import dialects
from foldline.cli.common import find_policy, read_session, shown_name
from foldline.cli.options import TOKENS, OneOf, json_option, policy_options, store_option
from foldline.cli.output import err, escape, print_json, progress, warn, write_whole
from foldline.cli.store import known, with_store
from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.log.codec import pretty
from foldline.core.log.entries import Entry
from foldline.errors import InputError, SessionNotFound
from foldline.executor import run_sync
from foldline.exports import (
    OWN,
    ExportRequest,
    ExportResult,
    export_entries,
    export_stored,
    formats,
    result_fields,
)
from foldline.exports.base import RESULT_CAP, line
from foldline.folding import FoldOptions, fold_once
from foldline.loading import Loaded, from_entries, with_notes
from foldline.stores import Store
from foldline.transcripts import header_line

EPILOG = """
\b
Examples:
  foldline export login-bug -o login-bug.jsonl              everything, lossless, for another Foldline
  foldline export login-bug --format pi --view -o pi.jsonl  the folded session, to go on with it in pi
  foldline export claude.jsonl --format pi --view --target 32000 -o pi.jsonl
  foldline export pi.jsonl --format claude-code --cwd ~/my-project -o SESSION.jsonl
  foldline export login-bug --format markdown --results whole -o login-bug.md
  foldline export login-bug --format openai-chat --view     the folded messages, ready to send
"""

_LINES = (OWN, "pi", "claude-code", "codex")


class _Folding(msgspec.Struct, frozen=True):
    """How to fold a session before it is written."""

    policy: Policy
    target: int | None
    window: int | None

    def wish(self, loaded: Loaded) -> FoldOptions:
        """Return the wish for a session that was loaded: its model gives the window where no flag does."""
        info = settings().model_info(None, self.window, recorded=loaded.model)
        return FoldOptions(self.policy, info, target=self.target)


class _Asked(msgspec.Struct, frozen=True):
    """The call: what to write, and how to fold it first (None: as it is)."""

    source: str
    wish: ExportRequest
    store_url: str | None
    folding: _Folding | None


# Takes the function that writes bytes, writes the whole export with it, and returns what was written.
Write = Callable[[Callable[[bytes], object]], ExportResult]


@click.command(epilog=EPILOG)
@click.argument("source", metavar="ID|FILE")
@click.option(
    "--format",
    "form",
    type=OneOf(formats()),
    default=OWN,
    show_default=True,
    help="jsonl is our own, lossless; openai-chat and its like are lists of messages.",
)
@click.option(
    "--view",
    is_flag=True,
    help="What the model is sent, instead of all that was said (jsonl: as openai-chat).",
)
@click.option("--target", type=TOKENS, metavar="N", help="Fold it to N tokens first (with --view).")
@click.option("--window", type=TOKENS, metavar="N", help="Fold it for this context window (with --view).")
@policy_options
@click.option("--cwd", metavar="DIR", help="The folder to go on in  [default: the file's own, else this one]")
@click.option(
    "--results",
    type=OneOf(["short", "whole"]),
    default="short",
    show_default=True,
    help=f"Tool results in Markdown: {RESULT_CAP:,} characters of each, or all.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Write here instead of to standard output."
)
@store_option
@json_option
def command(
    source: str,
    form: str,
    view: bool,
    target: int | None,
    window: int | None,
    policy_name: str | None,
    policy_file: Path | None,
    cwd: str | None,
    results: str,
    output: Path | None,
    store_url: str | None,
    as_json: bool,
) -> None:
    """Write a stored session ID, or a session FILE of any known format, in the form of another tool.

    Without --view all that was said is written, with its compactions as the other tool writes its own; with
    it the folded form. What a form cannot carry is named on standard error. Where a file has that name, it is
    taken before a session. jsonl of a stored session holds every branch. With --json and no -o: one document;
    a list of messages is one as well in a file whose name ends in .json.
    """
    folds = bool(target or window or policy_name)
    if folds and not view:
        raise InputError("--target, --window and --policy say how to fold: add --view")
    folding = _Folding(find_policy(policy_name, policy_file), target, window) if folds else None
    wish = ExportRequest(
        form=dialects.OPENAI_CHAT if form == OWN and view else form,
        view=view,
        cwd=str(Path(cwd).expanduser().resolve()) if cwd else None,
        cap=None if results == "whole" else RESULT_CAP,
    )
    asked = _Asked(source, wish, store_url, folding)
    write = _from_file(asked) if source == "-" or Path(source).is_file() else _from_store(asked)
    if as_json and output is None:
        print_json(_document(asked, write))
        return
    told: list[ExportResult] = []
    form = asked.wish.form
    one = output is not None and output.suffix == ".json" and form in dialects.names()
    with progress("writing"):
        put = _as_document(form, write) if one else write
        write_whole(output or Path("-"), lambda stream: told.append(put(stream.write)))
    _write_beside(output, told[0])
    warn(told[0].warnings)
    if output is not None and output.suffix == ".json" and form in _LINES:
        warn([f"{form} is a form of JSON lines: a name that ends in .jsonl says so"])
    if output is not None and str(output) != "-":
        _tell(asked, told[0], output, as_json=as_json)


def _write_beside(output: Path | None, told: ExportResult) -> None:
    """Write the further files of an export beside it; on standard output they have no place."""
    for name, content in told.beside.items():
        if output is None or str(output) == "-":
            warn([f"{name.lstrip('/')} left out: it stands beside the file that -o names"])
            continue
        there = output.with_name(_beside(output.stem, name))
        write_whole(there, partial(_put, content))


def _beside(stem: str, name: str) -> str:
    """Return the name of a further file; `meta.json` is of `events` alone, or two exports would share it."""
    if not name.startswith("/"):
        return stem + name
    return name[1:] if stem == "events" else f"{stem}.{name[1:]}"


def _put(content: bytes, stream: BinaryIO) -> None:
    stream.write(content)


def _from_file(asked: _Asked) -> Write:
    """Return what writes a session file; it is read first, so that nothing is written where that fails."""
    loaded = read_session(asked.source)
    name = loaded.session or Path(shown_name(asked.source)).name
    if asked.wish.form == OWN:
        return lambda out: _own(with_notes(loaded), name, loaded.entries[-1].id if loaded.log else None, out)
    cwd = loaded.about.get("session", {}).get("cwd")
    wish = msgspec.structs.replace(
        asked.wish,
        title=loaded.title,
        model=loaded.model,
        cwd=asked.wish.cwd or (cwd if isinstance(cwd, str) and cwd else None),
    )
    entries = run_sync(_folded(loaded, asked.folding)) if asked.folding else loaded.entries
    return lambda out: export_entries(entries, name, wish, out)


def _own(log: Sequence[Entry], name: str, leaf: str | None, out: Callable[[bytes], object]) -> ExportResult:
    """Write our own form of a file that was read."""
    out(header_line(session=name, leaf=leaf or log[-1].id))
    for entry in log:
        out(line(entry))
    return ExportResult(name, len(log))


def _from_store(asked: _Asked) -> Write:
    """Return what writes a stored session."""
    try:
        name = with_store(asked.store_url, lambda store: known(store, asked.source))
    except SessionNotFound as error:
        if not asked.source or not Path(asked.source).is_dir():
            raise
        text = f"{asked.source} is a folder: name a session file in it; `foldline batch` folds them all"
        raise InputError(text) from error
    return lambda out: with_store(asked.store_url, lambda store: _stored(store, name, asked, out))


async def _stored(store: Store, name: str, asked: _Asked, out: Callable[[bytes], object]) -> ExportResult:
    if asked.wish.form == OWN:
        count = 0
        out(header_line(session=name, leaf=await store.leaf(name)))
        async for entry in store.all(name):
            out(line(entry))
            count += 1
        return ExportResult(name, count)
    if asked.folding is None:
        return await export_stored(store, name, asked.wish, out)
    loaded = from_entries(await store.active(name))
    return export_entries(await _folded(loaded, asked.folding), name, asked.wish, out)


async def _folded(loaded: Loaded, folding: _Folding) -> list[Entry]:
    """Return the entries with a boundary that fits them into the budget; nothing is stored."""
    wish = folding.wish(loaded)
    done = await fold_once(loaded, wish)
    if wish.target is None and wish.model.warning:
        warn([wish.model.warning])
    return [*loaded.entries, *([done.boundary] if done.boundary is not None else [])]


def _as_document(form: str, write: Write) -> Write:
    """Return what writes a list of messages as one JSON document, which `compact` and the others read."""

    def put(out: Callable[[bytes], object]) -> ExportResult:
        pieces: list[bytes] = []
        told = write(pieces.append)
        system, messages = _list_of(b"".join(pieces))
        known = {"dialect": form, **({} if system is None else {"system": system}), "messages": messages}
        out(pretty(known) + b"\n")
        return told

    return put


def _list_of(raw: bytes) -> tuple[Any, list[Any]]:
    """Return the system prompt of an exported list, if it stands apart, and the messages."""
    lines = [json.loads(text) for text in raw.splitlines()]
    if lines and set(lines[0]) == {"system"}:
        return lines[0]["system"], lines[1:]
    return None, lines


def _document(asked: _Asked, write: Write) -> dict[str, Any]:
    """Return the whole export as one JSON document."""
    pieces: list[bytes] = []
    told = write(pieces.append)
    raw, form = b"".join(pieces), asked.wish.form
    known = {"session": asked.source, "format": form, "view": asked.wish.view, **result_fields(told)}
    if form == "markdown":
        return {**known, "text": raw.decode()}
    if form in dialects.names():
        system, messages = _list_of(raw)
        return {"dialect": form, "system": system, "messages": messages, "warnings": told.warnings}
    lines = [json.loads(text) for text in raw.splitlines()]
    if form == OWN:
        return {"session": told.session, "leaf": lines[0]["leaf"], "entries": lines[1:]}
    return {**known, "lines": lines}


def _tell(asked: _Asked, told: ExportResult, output: Path, *, as_json: bool) -> None:
    """Say what was written, and how the other tool goes on with it."""
    wish = asked.wish
    if as_json:
        known = {"session": asked.source, "file": str(output), "format": wish.form, "view": wish.view}
        print_json({**known, **result_fields(told)})
        return
    what = "entries" if wish.form == OWN else "messages"
    err().print(f"[green]wrote[/] {told.count:,} {what} to {escape(str(output))}")
    if told.place and told.command:
        err().print(
            f"[dim]to go on: put it at {escape(told.place)}, then {escape(told.command)}[/]", soft_wrap=True
        )
