"""`foldline slim`: fold the session that an agent has in this folder into one that the same agent resumes.

What it wrote is kept in a list under the home directory, so that `--undo` takes away that and nothing else.
"""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import msgspec

from foldline import files
from foldline.cli.commands.export import write_beside
from foldline.cli.common import find_policy, find_summarizer, read_session
from foldline.cli.options import POLICIES, POLICY, Shown, argument, command, option
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
WRITTEN: Final = "~/.foldline/slimmed.json"
LONGEST: Final = 16 * 1024 * 1024  # bytes of that list


class _Written(msgspec.Struct, frozen=True):
    """What was written for a folder: the files with their SHA-256."""

    folder: str
    files: dict[str, str]


@command(
    "foldline slim                    the newest session of this folder, whoever's it is",
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
    window: int | None = option("The context window  [default: as known of the session's model]"),
    model: str | None = option(
        "Take the window of this model, and have it write the summary if its key is set.", metavar="NAME"
    ),
    policy_name: str | None = POLICY,
    policy_file: Path | None = POLICIES,
    instructions: str | None = option("What the checkpoint should look at first.", metavar="TEXT"),
    dry_run: bool = option("Say what would be written; write nothing."),
    undo: bool = option("Remove what the last slim in this folder wrote."),
) -> Shown:
    """Fold the session that an agent has in this folder into a new one, which the same agent resumes.

    AGENT is claude, codex, pi or klaude; without it, whoever wrote last here. FILE is a session file of one
    of them or an export of OpenCode. The original stays as it is. It prints the command that resumes the new
    session.
    """
    if undo:
        return _undone(Path.cwd())
    file = _file_of(source)
    loaded = read_session(str(file))
    if loaded.format not in RESUMED:
        raise InputError(
            f"{file}: a session in the form {loaded.format} cannot be written for an agent to resume, only "
            f"{', '.join(RESUMED)}: `foldline export {file} --view --format codex` writes one for Codex"
        )
    done = _folded(loaded, target, window, model, find_policy(policy_name, policy_file), instructions)
    known: dict[str, Any] = {
        "agent": loaded.format,
        "source": str(file),
        "tokens_before": done.receipt.tokens_before,
        "tokens_after": done.view_tokens,
    }
    if done.boundary is None:
        words = f"{escape(str(file))} has {done.view_tokens:,} tokens already: nothing was written"
        return Shown(
            lambda: {**known, "file": None, "command": None}, lambda: out().print(words, soft_wrap=True)
        )
    raw, told = _exported(loaded, done, str(file))
    path, resume = _place(loaded.format, told)
    if path.exists():
        raise InputError(f"{path} is there already: this session was folded before, {resume} resumes it")
    warn([one for one in told.warnings if not one.startswith(MEASURED_BEFORE)])  # of the fold asked for
    if not dry_run:
        _write(path, raw, told)

    def show() -> None:
        console = out()
        size = f"{done.receipt.tokens_before:,} tokens -> {done.view_tokens:,}"
        verb = "[yellow]would write[/]" if dry_run else "[green]wrote[/]"
        console.print(f"{size}; {verb} {escape(str(path))}", soft_wrap=True)
        if not dry_run:
            console.print(f"to go on: [bold]{escape(resume)}[/]", soft_wrap=True)
            console.print("[dim]the original is as it was; `foldline slim --undo` removes the new one[/]")

    document = {
        **known,
        "file": str(path),
        "session": told.session,
        "command": resume,
        "written": not dry_run,
    }
    return Shown(lambda: {**document, "warnings": list(told.warnings)}, show)


def _file_of(source: str | None) -> Path:
    """Return the file that is meant: one that is named, or the newest of an agent in this folder."""
    if source is not None and Path(source).is_file():
        return Path(source)
    if source == OPENCODE:
        raise InputError(
            "OpenCode keeps its sessions in a database: `opencode export > session.json`, then "
            "`foldline slim session.json`"
        )
    return newest_transcript(Path.cwd(), agent_of(source) if source else None).path


def _folded(
    loaded: Loaded, target: int | None, window: int | None, model: str | None, policy: Any, focus: str | None
) -> Done:
    info = settings().model_info(model, window, recorded=loaded.model)
    options = FoldOptions(policy, info, target=target, instructions=focus).slim()
    summarizer = find_summarizer(model, options)
    with progress("folding"):
        return fold_now(loaded, options, summarizer)


def _exported(loaded: Loaded, done: Done, name: str) -> tuple[bytes, ExportResult]:
    """Return the folded session in the form of its agent."""
    cwd = loaded.about.get("session", {}).get("cwd")
    wish = ExportRequest(
        loaded.format,
        view=True,
        title=f"{loaded.title} (folded)" if loaded.title else None,
        model=loaded.model,
        cwd=cwd if isinstance(cwd, str) and cwd else None,
    )
    entries = [*loaded.entries, *([done.boundary] if done.boundary is not None else [])]
    stream = BytesIO()
    told = export_entries(entries, name, wish, stream.write)
    return stream.getvalue(), told


def _place(agent: str, told: ExportResult) -> tuple[Path, str]:
    """Return where the agent looks for the session, and the command that resumes it there."""
    place = told.place or ""
    if agent in AGENTS:
        place = place.replace(AGENTS[agent].default, str(home_of(agent)), 1)
    path = Path(place)
    return path, f"pi --session {quoted(str(path))}" if agent == "pi" else told.command or ""


def _write(path: Path, raw: bytes, told: ExportResult) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = [path]
    write_whole(path, lambda stream: stream.write(raw))
    for name, content in told.beside.items():
        beside = write_beside(path, name, content)
        written += [beside] if beside is not None else []
    hashes = {str(one.absolute()): _hash(one) for one in written}
    _keep([*_kept(), _Written(str(Path.cwd()), hashes)])


# ---- what was written


def _undone(folder: Path) -> Shown:
    """Remove what the last slim in a folder wrote, unless somebody changed it since."""
    kept = _kept()
    last = next((one for one in reversed(kept) if one.folder == str(folder)), None)
    if last is None:
        raise InputError(f"nothing was written by `foldline slim` in {folder}: there is nothing to undo")
    changed = [
        name for name, known in last.files.items() if Path(name).exists() and _hash(Path(name)) != known
    ]
    if changed:
        raise InputError(
            f"the agent went on in {changed[0]}: it stays; to lose what was said there, remove it yourself"
        )
    for name in last.files:
        Path(name).unlink(missing_ok=True)
    _keep([one for one in kept if one is not last])
    removed = list(last.files)
    return Shown(
        lambda: {"removed": removed},
        lambda: out().print(f"removed {escape(', '.join(removed))}", soft_wrap=True),
    )


def _hash(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def _kept() -> list[_Written]:
    path = Path(WRITTEN).expanduser()
    if not path.exists():
        return []
    try:
        return msgspec.json.decode(files.content(path, LONGEST), type=list[_Written])
    except (msgspec.DecodeError, OSError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error


def _keep(written: list[_Written]) -> None:
    with files.written(Path(WRITTEN).expanduser(), mode=files.PRIVATE) as stream:
        stream.write(msgspec.json.encode(written))
