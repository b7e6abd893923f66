"""`foldline export SOURCE`: a stored session, or a session file, in the form of another tool."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from foldline import dialects
from foldline.cli.common import find_policy, read_session, shown_name
from foldline.cli.options import POLICIES, POLICY, STORE, OneOf, Shown, argument, command, option
from foldline.cli.output import err, escape, progress, warn, write_whole
from foldline.cli.store import find_stored, is_file, with_store, write_log
from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.log.codec import pretty
from foldline.core.log.entries import Entry
from foldline.dialects.base import read_system
from foldline.errors import InputError
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

LINES = (OWN, "pi", "claude-code", "codex")  # forms of JSON lines
Put = Callable[[bytes], object]  # takes the bytes of an export, a piece at a time
Write = Callable[[Put], ExportResult]


class _Folding(msgspec.Struct, frozen=True):
    """How to fold a session before it is written."""

    policy: Policy
    target: int | None
    window: int | None

    async def entries(self, loaded: Loaded) -> list[Entry]:
        """Return the entries with a boundary that fits them into the budget; nothing is stored."""
        info = settings().model_info(None, self.window, recorded=loaded.model)
        done = await fold_once(loaded, FoldOptions(self.policy, info, target=self.target))
        if self.target is None and info.warning:
            warn([info.warning])
        return [*loaded.entries, *([done.boundary] if done.boundary is not None else [])]


@command(
    "foldline export login-bug -o login-bug.jsonl              everything, lossless, for another Foldline",
    "foldline export login-bug --format pi --view -o pi.jsonl  the folded session, to go on with it in pi",
    "foldline export claude.jsonl --format pi --view --target 32000 -o pi.jsonl",
    "foldline export pi.jsonl --format claude-code --cwd ~/my-project -o SESSION.jsonl",
    "foldline export login-bug --format markdown --results whole -o login-bug.md",
    "foldline export login-bug --format openai-chat --view     the folded messages, ready to send",
)
def export(
    source: str = argument("ID|FILE"),
    view: bool = option("What the model is sent, instead of all that was said (jsonl: as openai-chat)."),
    target: int | None = option("Fold it to N tokens first (with --view)."),
    window: int | None = option("Fold it for this context window (with --view)."),
    policy_name: str | None = POLICY,
    policy_file: Path | None = POLICIES,
    cwd: str | None = option(
        "The folder to go on in  [default: the file's own, else this one]", metavar="DIR"
    ),
    output: Path | None = option("Write here instead of to standard output.", "-o", "--output"),
    store_url: str | None = STORE,
    form: str = option(
        "jsonl is our own, lossless; openai-chat and its like are lists of messages.",
        "--format",
        type=OneOf(formats()),
        default=OWN,
    ),
    results: Literal["short", "whole"] = option(
        f"Tool results in Markdown: {RESULT_CAP:,} characters of each, or all.", default="short"
    ),
) -> Shown:
    """Write a stored session ID, or a session FILE of any known format, in the form of another tool.

    Without --view all that was said is written, with its compactions as the other tool writes its own; with
    it the folded form. What a form cannot carry is named on standard error. Where a file has that name, it is
    taken before a session. jsonl of a stored session holds every branch. With --json and no -o: one document;
    a list of messages is one as well in a file whose name ends in .json.
    """
    folds = bool(target or window or policy_name)
    if folds and not view:
        raise InputError("--target, --window and --policy say how to fold: add --view")
    if policy_file and not folds:
        raise InputError("--policies names a file of policies: say with --policy which one is to fold")
    if results == "whole" and form != "markdown":
        raise InputError("--results is for --format markdown: every other form has them whole")
    folding = _Folding(find_policy(policy_name, policy_file), target, window) if folds else None
    wish = ExportRequest(
        form=dialects.OPENAI_CHAT if form == OWN and view else form,
        view=view,
        cwd=str(Path(cwd).expanduser().resolve()) if cwd else None,
        cap=None if results == "whole" else RESULT_CAP,
    )
    if is_file(source):
        write = _from_file(source, wish, folding)
    else:
        write = _from_store(source, wish, folding, store_url)

    def to_output() -> None:
        _written(write, wish.form, Path("-"))

    if output is None:
        return Shown(lambda: _document(source, wish, write), to_output)
    if str(output) == "-":
        to_output()
        return Shown(None, lambda: None)
    told = _written(write, wish.form, output)
    known = {"session": source, "file": str(output), "format": wish.form, "view": wish.view}

    def show() -> None:
        what = "entries" if wish.form == OWN else "messages"
        err().print(f"[green]wrote[/] {told.count:,} {what} to {escape(str(output))}")
        if told.place and told.command:
            text = f"to go on: put it at {escape(told.place)}, then {escape(told.command)}"
            err().print(f"[dim]{text}[/]", soft_wrap=True)

    return Shown(lambda: {**known, **result_fields(told)}, show)


# ---- what is written


def _from_file(source: str, wish: ExportRequest, folding: _Folding | None) -> Write:
    """Return what writes a session file; it is read first, so that nothing is written where that fails."""
    loaded = read_session(source)
    name = loaded.session or Path(shown_name(source)).name
    if wish.form == OWN:
        return lambda put: _own(loaded, name, put)
    cwd = loaded.about.get("session", {}).get("cwd")
    own_cwd = cwd if isinstance(cwd, str) and cwd else None
    whole = msgspec.structs.replace(
        wish,
        title=loaded.title,
        model=loaded.model,
        cwd=wish.cwd or own_cwd,
        system=read_system(loaded.system, loaded.system_dialect or loaded.dialect) if loaded.system else None,
        tools=loaded.tools,
    )
    entries = run_sync(folding.entries(loaded)) if folding else loaded.entries
    return lambda put: export_entries(entries, name, whole, put)


def _own(loaded: Loaded, name: str, put: Put) -> ExportResult:
    """Write our own form of a file that was read."""
    log = with_notes(loaded)
    put(header_line(session=name, leaf=(loaded.entries if loaded.log else log)[-1].id))
    for entry in log:
        put(line(entry))
    return ExportResult(name, len(log))


def _from_store(source: str, wish: ExportRequest, folding: _Folding | None, url: str | None) -> Write:
    """Return what writes a stored session."""
    name = find_stored(source, url)

    async def stored(store: Store, put: Put) -> ExportResult:
        if wish.form == OWN:
            return ExportResult(name, await write_log(store, name, put))
        if folding is None:
            return await export_stored(store, name, wish, put)
        entries = await folding.entries(from_entries([entry async for entry in store.path(name)]))
        return export_entries(entries, name, wish, put)

    return lambda put: with_store(url, lambda store: stored(store, put))


# ---- where it goes


def _written(write: Write, form: str, output: Path) -> ExportResult:
    """Write an export to a file, `-` is standard output, and say what was lost."""
    told: list[ExportResult] = []
    json_file = output.suffix == ".json"

    def write_list(put: Put) -> ExportResult:
        """Write a list of messages as one JSON document, which `compact` and the others read."""
        raw, result = _collected(write)
        system, messages = _list_of(raw)
        beside = {} if system is None else {"system": system}
        put(pretty({"dialect": form, **beside, "messages": messages}) + b"\n")
        return result

    chosen = write_list if json_file and form in dialects.names() else write
    replaces = str(output) == "-" or output.exists()

    def write_alone(stream: BinaryIO) -> None:
        """Write the export, unless a new one would replace a file beside it that nobody named."""
        told.append(chosen(stream.write))
        for path in (_path_beside(output, name) for name in told[0].beside):
            if not replaces and path.exists():
                raise InputError(f"{path} is there already, and would be replaced: give -o another name")

    with progress("writing"):
        write_whole(output, write_alone)
    for name, content in told[0].beside.items():
        write_beside(output, name, content)
    warn(told[0].warnings)
    if json_file and form in LINES:
        warn([f"{form} is a form of JSON lines: a name that ends in .jsonl says so"])
    return told[0]


def write_beside(output: Path, name: str, content: bytes) -> Path | None:
    """Write a further file of an export and return it; on standard output it has no place."""
    if str(output) == "-":
        warn([f"{name.lstrip('/')} left out: it stands beside the file that -o names"])
        return None
    path = _path_beside(output, name)
    write_whole(path, lambda stream: stream.write(content))
    return path


def _path_beside(output: Path, name: str) -> Path:
    """Return where a further file of an export goes.

    `meta.json` is of `events` alone, or two exports would share it.
    """
    if name.startswith("/"):
        return output.with_name(name[1:] if output.stem == "events" else f"{output.stem}.{name[1:]}")
    return output.with_name(output.stem + name)


def _collected(write: Write) -> tuple[bytes, ExportResult]:
    pieces: list[bytes] = []
    told = write(pieces.append)
    return b"".join(pieces), told


def _list_of(raw: bytes) -> tuple[Any, list[Any]]:
    """Return the system prompt of an exported list, if it stands apart, and the messages."""
    lines = [json.loads(text) for text in raw.splitlines()]
    if lines and set(lines[0]) == {"system"}:
        return lines[0]["system"], lines[1:]
    return None, lines


def _document(source: str, wish: ExportRequest, write: Write) -> dict[str, Any]:
    """Return the whole export as one JSON document."""
    raw, told = _collected(write)
    known = {"session": source, "format": wish.form, "view": wish.view, **result_fields(told)}
    if told.beside:
        known["beside"] = {name: content.decode() for name, content in told.beside.items()}
    if wish.form == "markdown":
        return {**known, "text": raw.decode()}
    if wish.form in dialects.names():
        system, messages = _list_of(raw)
        return {"dialect": wish.form, "system": system, "messages": messages, "warnings": told.warnings}
    lines = [json.loads(text) for text in raw.splitlines()]
    if wish.form == OWN:
        return {"session": told.session, "leaf": lines[0]["leaf"], "entries": lines[1:]}
    return {**known, "lines": lines}
