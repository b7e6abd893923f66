"""`foldline slim`: fold an agent's session of this folder into a new session that the agent resumes.

A list in the home directory records the written files for `--undo`.
"""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import msgspec

from foldline import files
from foldline.cli.commands.export import recorded_folder, write_beside
from foldline.cli.common import find_policy, find_summarizer, read_session
from foldline.cli.options import FOCUS, POLICIES, POLICY, Shown, argument, command, option
from foldline.cli.output import escape, out, progress, warn, write_whole
from foldline.config import settings
from foldline.errors import InputError
from foldline.exports import ExportRequest, ExportResult, export_entries
from foldline.exports.base import MEASURED_BEFORE, quoted
from foldline.folding import Done, FoldOptions, fold_now
from foldline.loading import Loaded
from foldline.transcripts.places import AGENTS, agent_of, home_of, newest_transcript

OPENCODE: Final = "opencode"  # it keeps sessions in a database, and imports files
RESUMED: Final = ("claude-code", "codex", "pi", "klaude-code", OPENCODE)
RECORDS: Final = "~/.foldline/slimmed.json"
LARGEST: Final = 16 * 1024 * 1024  # bytes of that list


class _SlimRecord(msgspec.Struct, frozen=True):
    """The files written for a folder, with their SHA-256."""

    folder: str
    files: dict[str, str]


@command(
    "foldline slim                    the newest session in this folder, of any agent",
    "foldline slim claude --target 40000",
    "foldline slim codex --dry-run",
    "foldline slim session.jsonl --model anthropic:claude-haiku-4-5",
    "foldline slim --undo",
)
def slim(
    source: str | None = argument("[AGENT|FILE]", required=False),
    target: int | None = option(
        "The budget in tokens  [default: a fifth of what the policy uses of the window]"
    ),
    window: int | None = option("The context window  [default: the session's model's]"),
    model: str | None = option(
        "Use the window of this model, and let it write the summary if its key is set.", metavar="NAME"
    ),
    policy_name: str | None = POLICY,
    policy_file: Path | None = POLICIES,
    instructions: str | None = FOCUS,
    dry_run: bool = option("Show what would be written; write nothing."),
    undo: bool = option("Remove the files that the last `foldline slim` in this folder wrote."),
) -> Shown:
    """Fold an agent's session of this folder into a new session, and print the command that resumes it.

    AGENT is claude, codex, pi or klaude, by default the agent with the newest session. FILE is a session file
    of one of them, or an export of OpenCode. The original session is not changed.
    """
    if undo:
        return _undo_last(Path.cwd())
    file = _file_of(source)
    loaded = read_session(str(file))
    if loaded.format not in RESUMED:
        raise InputError(
            f"{file} has the format {loaded.format}; only sessions of {', '.join(RESUMED)} can be resumed; "
            f"`foldline export {file} --view --format codex` writes one for Codex"
        )
    folded = _fold(loaded, target, window, model, find_policy(policy_name, policy_file), instructions)
    fields: dict[str, Any] = {
        "agent": loaded.format,
        "source": str(file),
        "tokens_before": folded.receipt.tokens_before,
        "tokens_after": folded.view_tokens,
    }
    if folded.boundary is None:
        text = f"{escape(str(file))} has only {folded.view_tokens:,} tokens: nothing was written"
        return Shown(
            lambda: {**fields, "file": None, "command": None}, lambda: out().print(text, soft_wrap=True)
        )
    data, export = _export(loaded, folded, str(file))
    path, resume = _target(loaded.format, export)
    if path.exists():
        raise InputError(f"{path} already exists: the session was folded before; {resume} resumes it")
    warn([text for text in export.warnings if not text.startswith(MEASURED_BEFORE)])
    if not dry_run:
        _write_files(path, data, export)

    def show() -> None:
        console = out()
        size = f"{folded.receipt.tokens_before:,} tokens -> {folded.view_tokens:,}"
        verb = "[yellow]would write[/]" if dry_run else "[green]wrote[/]"
        console.print(f"{size}; {verb} {escape(str(path))}", soft_wrap=True)
        if not dry_run:
            console.print(f"to continue: [bold]{escape(resume)}[/]", soft_wrap=True)
            console.print("[dim]the original is unchanged; `foldline slim --undo` removes the new session[/]")

    document = {
        **fields,
        "file": str(path),
        "session": export.session,
        "command": resume,
        "written": not dry_run,
    }
    return Shown(lambda: {**document, "warnings": list(export.warnings)}, show)


def _file_of(source: str | None) -> Path:
    """Return a named file, or the newest session of an agent in this folder."""
    if source is not None and Path(source).is_file():
        return Path(source)
    if source == OPENCODE:
        raise InputError(
            "OpenCode keeps its sessions in a database: run `opencode export > session.json`, then "
            "`foldline slim session.json`"
        )
    return newest_transcript(Path.cwd(), agent_of(source) if source else None).path


def _fold(
    loaded: Loaded, target: int | None, window: int | None, model: str | None, policy: Any, focus: str | None
) -> Done:
    info = settings().model_info(model, window, recorded=loaded.model)
    options = FoldOptions(policy, info, target=target, instructions=focus).slim()
    summarizer = find_summarizer(model, options)
    with progress("folding"):
        return fold_now(loaded, options, summarizer)


def _export(loaded: Loaded, folded: Done, name: str) -> tuple[bytes, ExportResult]:
    """Return the folded session in the format of its agent."""
    request = ExportRequest(
        loaded.format,
        view=True,
        title=f"{loaded.title} (folded)" if loaded.title else None,
        model=loaded.model,
        cwd=recorded_folder(loaded),
    )
    entries = [*loaded.entries, *([folded.boundary] if folded.boundary is not None else [])]
    stream = BytesIO()
    export = export_entries(entries, name, request, stream.write)
    return stream.getvalue(), export


def _target(agent: str, export: ExportResult) -> tuple[Path, str]:
    """Return the path at which the agent finds the session, and the command that resumes it."""
    place = export.place or ""
    if agent in AGENTS:
        place = place.replace(AGENTS[agent].default, str(home_of(agent)), 1)
    path = Path(place)
    return path, f"pi --session {quoted(str(path))}" if agent == "pi" else export.command or ""


def _write_files(path: Path, data: bytes, export: ExportResult) -> None:
    records = _load_records()  # a broken list is told before anything is written
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path]
    write_whole(path, lambda stream: stream.write(data))
    for name, content in export.beside.items():
        extra = write_beside(path, name, content)
        written += [extra] if extra is not None else []
    hashes = {str(file.absolute()): _hash(file) for file in written}
    _save_records([*records, _SlimRecord(str(Path.cwd()), hashes)])


# ---- records of written files


def _undo_last(folder: Path) -> Shown:
    """Remove the files that the last slim in a folder wrote, unless one was changed since."""
    records = _load_records()
    last = next((record for record in reversed(records) if record.folder == str(folder)), None)
    if last is None:
        raise InputError(f"there is nothing to undo: `foldline slim` wrote no session in {folder}")
    changed = [
        name for name, digest in last.files.items() if Path(name).exists() and _hash(Path(name)) != digest
    ]
    if changed:
        raise InputError(
            f"the agent has continued {changed[0]}: to discard the new messages, delete this file yourself"
        )
    removed = list(last.files)
    for name in removed:
        Path(name).unlink(missing_ok=True)
    _save_records([record for record in records if record is not last])
    return Shown(
        lambda: {"removed": removed},
        lambda: out().print(f"removed {escape(', '.join(removed))}", soft_wrap=True),
    )


def _hash(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _load_records() -> list[_SlimRecord]:
    path = files.expanded(RECORDS)
    if not path.exists():
        return []
    try:
        return msgspec.json.decode(files.content(path, LARGEST), type=list[_SlimRecord])
    except (msgspec.DecodeError, OSError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def _save_records(records: list[_SlimRecord]) -> None:
    with files.written(files.expanded(RECORDS), mode=files.PRIVATE) as stream:
        stream.write(msgspec.json.encode(records))
