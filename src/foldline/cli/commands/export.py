"""`foldline export SOURCE`: write a stored session, or a session file, in the format of another tool."""

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

LINES = (OWN, "pi", "claude-code", "codex")  # formats of JSON lines
Put = Callable[[bytes], object]  # takes the next bytes of an export
Write = Callable[[Put], ExportResult]


class _FoldSettings(msgspec.Struct, frozen=True):
    """How to fold a session before it is written."""

    policy: Policy
    target: int | None
    window: int | None

    async def entries(self, loaded: Loaded) -> list[Entry]:
        """Return the entries, with a boundary if they exceed the budget; nothing is stored."""
        info = settings().model_info(None, self.window, recorded=loaded.model)
        result = await fold_once(loaded, FoldOptions(self.policy, info, target=self.target))
        if self.target is None and info.warning:
            warn([info.warning])
        return [*loaded.entries, *([result.boundary] if result.boundary is not None else [])]


@command(
    "foldline export login-bug -o login-bug.jsonl              everything, lossless, for another Foldline",
    "foldline export login-bug --format pi --view -o pi.jsonl  the folded session, to continue it in pi",
    "foldline export claude.jsonl --format pi --view --target 32000 -o pi.jsonl",
    "foldline export pi.jsonl --format claude-code --cwd ~/my-project -o SESSION.jsonl",
    "foldline export login-bug --format markdown --results whole -o login-bug.md",
    "foldline export login-bug --format openai-chat --view     the folded messages, ready to send",
)
def export(
    source: str = argument("ID|FILE"),
    view: bool = option(
        "Export the folded messages for the model, not the whole history (jsonl: as openai-chat)."
    ),
    target: int | None = option("Fold the session to N tokens first (with --view)."),
    window: int | None = option("Fold the session for this context window (with --view)."),
    policy_name: str | None = POLICY,
    policy_file: Path | None = POLICIES,
    cwd: str | None = option(
        "The folder in which the session continues  [default: the file's, else this folder]", metavar="DIR"
    ),
    output: Path | None = option("Write to this file, not to standard output.", "-o", "--output"),
    store_url: str | None = STORE,
    form: str = option(
        "jsonl is Foldline's own format, lossless; dialects such as openai-chat are lists of messages.",
        "--format",
        type=OneOf(formats()),
        default=OWN,
    ),
    results: Literal["short", "whole"] = option(
        f"Tool results in Markdown: {RESULT_CAP:,} characters of each, or all.", default="short"
    ),
) -> Shown:
    """Write a stored session ID, or a session FILE of any known format, in the format of another tool.

    The whole history is written, with its compactions if the format has them; with --view the folded messages
    for the model. Warnings on standard error list what a format cannot express. A file takes precedence over
    a session of the same name. jsonl of a stored session has all branches. --json without -o prints one
    document; a list of messages is also one document in a file named .json.
    """
    folds = bool(target or window or policy_name)
    if folds and not view:
        raise InputError("--target, --window and --policy need --view")
    if policy_file and not folds:
        raise InputError("--policies needs --policy with the name of a policy in the file")
    if results == "whole" and form != "markdown":
        raise InputError("--results is only for --format markdown: other formats have whole results")
    folding = _FoldSettings(find_policy(policy_name, policy_file), target, window) if folds else None
    request = ExportRequest(
        form=dialects.OPENAI_CHAT if form == OWN and view else form,
        view=view,
        cwd=str(Path(cwd).expanduser().resolve()) if cwd else None,
        cap=None if results == "whole" else RESULT_CAP,
    )
    if is_file(source):
        write = _from_file(source, request, folding)
    else:
        write = _from_store(source, request, folding, store_url)

    def to_output() -> None:
        _write_export(write, request.form, Path("-"))

    if output is None:
        return Shown(lambda: _document(source, request, write), to_output)
    if str(output) == "-":
        to_output()
        return Shown(None, lambda: None)
    result = _write_export(write, request.form, output)
    fields = {"session": source, "file": str(output), "format": request.form, "view": request.view}

    def show() -> None:
        unit = "entries" if request.form == OWN else "messages"
        err().print(f"[green]wrote[/] {result.count:,} {unit} to {escape(str(output))}")
        if result.place and result.command:
            text = f"to continue: put it at {escape(result.place)}, then run {escape(result.command)}"
            err().print(f"[dim]{text}[/]", soft_wrap=True)

    return Shown(lambda: {**fields, **result_fields(result)}, show)


# ---- sources


def _from_file(source: str, request: ExportRequest, folding: _FoldSettings | None) -> Write:
    """Return a function that exports a session file; the file is read at once, to report its errors first."""
    loaded = read_session(source)
    name = loaded.session or Path(shown_name(source)).name
    if request.form == OWN:
        return lambda put: _write_own(loaded, name, put)
    complete = msgspec.structs.replace(
        request,
        title=loaded.title,
        model=loaded.model,
        cwd=request.cwd or recorded_folder(loaded),
        system=read_system(loaded.system, loaded.system_dialect or loaded.dialect) if loaded.system else None,
        tools=loaded.tools,
    )
    entries = run_sync(folding.entries(loaded)) if folding else loaded.entries
    return lambda put: export_entries(entries, name, complete, put)


def recorded_folder(loaded: Loaded) -> str | None:
    """Return the working folder that a session file names."""
    cwd = loaded.about.get("session", {}).get("cwd")
    return cwd if isinstance(cwd, str) and cwd else None


def _write_own(loaded: Loaded, name: str, put: Put) -> ExportResult:
    """Write a file in Foldline's own format."""
    log = with_notes(loaded)
    put(header_line(session=name, leaf=(loaded.entries if loaded.log else log)[-1].id))
    for entry in log:
        put(line(entry))
    return ExportResult(name, len(log))


def _from_store(source: str, request: ExportRequest, folding: _FoldSettings | None, url: str | None) -> Write:
    name = find_stored(source, url)

    async def write(store: Store, put: Put) -> ExportResult:
        if request.form == OWN:
            return ExportResult(name, await write_log(store, name, put))
        if folding is None:
            return await export_stored(store, name, request, put)
        entries = await folding.entries(from_entries([entry async for entry in store.path(name)]))
        return export_entries(entries, name, request, put)

    return lambda put: with_store(url, lambda store: write(store, put))


# ---- output


def _write_export(write: Write, form: str, output: Path) -> ExportResult:
    """Write an export to a file (`-` is standard output), and print its warnings."""
    results: list[ExportResult] = []
    json_file = output.suffix == ".json"

    def write_list(put: Put) -> ExportResult:
        """Write a list of messages as one JSON document."""
        raw, result = _collect(write)
        system, messages = _list_of(raw)
        extra = {} if system is None else {"system": system}
        put(pretty({"dialect": form, **extra, "messages": messages}) + b"\n")
        return result

    write_form = write_list if json_file and form in dialects.names() else write
    replaces = str(output) == "-" or output.exists()

    def write_checked(stream: BinaryIO) -> None:
        """Write the export; raises InputError if it would replace other files that the user did not name."""
        results.append(write_form(stream.write))
        for path in (_path_beside(output, name) for name in results[0].beside):
            if not replaces and path.exists():
                raise InputError(f"{path} already exists and would be replaced: give -o another name")

    with progress("writing"):
        write_whole(output, write_checked)
    [result] = results
    for name, content in result.beside.items():
        write_beside(output, name, content)
    warn(result.warnings)
    if json_file and form in LINES:
        warn([f"the format {form} is JSON lines: give the file the suffix .jsonl"])
    return result


def write_beside(output: Path, name: str, content: bytes) -> Path | None:
    """Write an additional file of an export and return its path; None for standard output."""
    if str(output) == "-":
        warn([f"{name.lstrip('/')} left out: to write it too, give a file with -o"])
        return None
    path = _path_beside(output, name)
    write_whole(path, lambda stream: stream.write(content))
    return path


def _path_beside(output: Path, name: str) -> Path:
    """Return the path of an additional file of an export.

    Only an export named `events` writes `meta.json`, or two exports would write the same file.
    """
    if name.startswith("/"):
        return output.with_name(name[1:] if output.stem == "events" else f"{output.stem}.{name[1:]}")
    return output.with_name(output.stem + name)


def _collect(write: Write) -> tuple[bytes, ExportResult]:
    pieces: list[bytes] = []
    result = write(pieces.append)
    return b"".join(pieces), result


def _list_of(raw: bytes) -> tuple[Any, list[Any]]:
    """Return the system prompt of an exported list, if it is separate, and the messages."""
    lines = [json.loads(text) for text in raw.splitlines()]
    if lines and set(lines[0]) == {"system"}:
        return lines[0]["system"], lines[1:]
    return None, lines


def _document(source: str, request: ExportRequest, write: Write) -> dict[str, Any]:
    """Return the whole export as one JSON document."""
    raw, result = _collect(write)
    fields = {"session": source, "format": request.form, "view": request.view, **result_fields(result)}
    if result.beside:
        fields["beside"] = {name: content.decode() for name, content in result.beside.items()}
    if request.form == "markdown":
        return {**fields, "text": raw.decode()}
    if request.form in dialects.names():
        system, messages = _list_of(raw)
        return {"dialect": request.form, "system": system, "messages": messages, "warnings": result.warnings}
    lines = [json.loads(text) for text in raw.splitlines()]
    if request.form == OWN:
        return {"session": result.session, "leaf": lines[0]["leaf"], "entries": lines[1:]}
    return {**fields, "lines": lines}
