"""`foldline compact FILE`: fit a session file into a budget."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import click

from foldline.cli.common import find_policy, find_summarizer, read_session
from foldline.cli.options import (
    DIALECT,
    FOCUS,
    FROM_START,
    POLICIES,
    POLICY,
    SOURCE,
    STORE,
    Shown,
    command,
    option,
)
from foldline.cli.output import err, escape, message_lines, out, progress, warn, write_whole
from foldline.cli.reports.fold import print_done, print_preview
from foldline.config import settings
from foldline.core.decide.ask import fold_range
from foldline.core.log.codec import pretty
from foldline.errors import InputError
from foldline.folding import Done, FoldOptions, as_dict, fold_now
from foldline.loading import Loaded


@command(
    "foldline compact session.jsonl --target 32000 -o folded.jsonl",
    "foldline compact session.jsonl --window 200000 --policy pi --json",
    "foldline compact claude.jsonl --target 20000 --preview",
    "foldline compact session.jsonl --up-to 40 -o folded.jsonl",
    "foldline compact login-bug --target 8000 -o folded.jsonl     a stored session",
    "cat messages.json | foldline compact - --target 8000 -o - | jq .role",
)
def compact(
    source: str = SOURCE,
    target: int | None = option("The budget in tokens; it is never exceeded."),
    window: int | None = option("The context window; the policy decides how much of it is usable."),
    model: str | None = option(
        "Use the window of this model (such as anthropic:claude-sonnet-4-6), and let it write the summary if "
        "its key is set.",
        metavar="NAME",
    ),
    up_to: int | None = option(
        "Fold everything up to this message (counted from 0) and its exchange, and keep later messages.",
        type=click.IntRange(0),
    ),
    since: int | None = option(
        "Fold everything from this message on, and keep earlier messages.", type=click.IntRange(0)
    ),
    offline: bool = option(
        "Call no model, not even the policy's summary_model; --model sets only the window."
    ),
    policy_name: str | None = POLICY,
    policy_file: Path | None = POLICIES,
    instructions: str | None = FOCUS,
    dialect: str | None = DIALECT,
    from_start: bool = FROM_START,
    preview: bool = option("Show what would be folded; write nothing."),
    full: bool = option("Print the whole checkpoint, not only the beginning of each section."),
    output: Path | None = option(
        "Write the messages to this file (.json: one document; else JSON lines; -: standard output).",
        *("-o", "--output"),
    ),
    store_url: str | None = STORE,
) -> Shown:
    """Fit a session FILE into a token budget; it uses no model unless --model or the policy names one.

    FILE is a list of messages (JSON or JSON lines, any dialect), a session of Claude Code, Codex, pi or
    another agent that `foldline import` reads, or Foldline's own format; - is standard input. The format is
    detected. ID is a stored session, which is not changed; a file with that name takes precedence. A file
    with compactions is folded from the newest compaction on.
    """
    loaded = read_session(source, store=store_url, from_start=from_start)
    info = settings().model_info(model, window, recorded=loaded.model)
    options = FoldOptions(
        find_policy(policy_name, policy_file),
        info,
        target=target,
        instructions=instructions,
        dialect=dialect,
        chosen=fold_range(_entry(loaded, up_to, -1), _entry(loaded, since, 0), target),
    )
    summarizer = None if offline else find_summarizer(model, options)
    with progress("folding"):
        result = fold_now(loaded, options, summarizer)
    warn(result.warnings[len(loaded.warnings) :])
    if preview:
        if output is not None:
            text = f"--preview writes nothing: leave it out to write {escape(str(output))}"
            err().print(f"[yellow]note:[/] {text}", soft_wrap=True)
        document = {name: value for name, value in as_dict(result).items() if name != "messages"}
        return Shown(lambda: document, lambda: print_preview(result, loaded, out(), full=full))
    count = "1 message" if len(result.messages) == 1 else f"{len(result.messages):,} messages"
    if output is not None:
        write_messages(result, loaded, output)
        warn(tools_left_out(result, loaded))
        err().print(f"[green]wrote[/] {count} to {escape(str(output))}")
    on_output = str(output) == "-"

    def show() -> None:
        console = err() if on_output else out()
        print_done(result, console, checkpoint=output is None, full=full)
        if output is None:
            console.print(f"\n[dim]Nothing was written: add -o FILE to write {count}, or --json.[/]")
        if target is None and result.boundary is None:
            _print_budget(options)

    return Shown(None if on_output else lambda: as_dict(result), show)


def _entry(loaded: Loaded, number: int | None, position: int) -> str | None:
    """Return the entry of a message of the file; if it has several, the first (0) or the last (-1)."""
    if number is None:
        return None
    entries = [entry for entry, index in loaded.index.items() if index == number]
    if not entries:
        raise InputError(f"there is no message {number}: messages are counted from 0")
    return entries[position]


def _print_budget(options: FoldOptions) -> None:
    """Explain the default budget of a file that was not folded."""
    err().print(
        f"[dim]the budget is {options.budget:,} tokens, the part that {escape(options.policy.name)} uses of "
        f"a window of {options.model.window.context:,}: set a smaller budget with --target N[/]",
        soft_wrap=True,
    )


def tools_left_out(result: Done, loaded: Loaded) -> list[str]:
    """Return a warning if the messages are written in another dialect than the tools."""
    dialect = loaded.system_dialect or loaded.dialect
    if not loaded.tools or result.dialect == dialect:
        return []
    return [f"the tools are left out: they are definitions for {dialect}, not for {result.dialect}"]


def write_messages(result: Done, loaded: Loaded, output: Path) -> None:
    """Write the messages with their system prompt and tools, in a form that `compact` reads."""
    extra = {"system": result.system, "tools": None if tools_left_out(result, loaded) else loaded.tools}
    extra = {key: value for key, value in extra.items() if value}

    def write(stream: BinaryIO) -> None:
        if output.suffix == ".json":
            document = {**extra, "messages": result.messages} if extra else result.messages
            stream.write(pretty(document) + b"\n")
        else:
            stream.writelines(message_lines(result.messages, **extra))

    write_whole(output, write)
