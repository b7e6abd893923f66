"""`foldline compact FILE`: fit a session file into a budget."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import click

from foldline.cli.common import find_policy, find_summarizer, read_session
from foldline.cli.options import (
    DIALECT,
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
    target: int | None = option("The budget in tokens; never exceeded."),
    window: int | None = option("A context window; the policy says how much is usable."),
    model: str | None = option(
        "Take the window of this model (anthropic:claude-sonnet-4-6), and have it write the summary "
        "if its key is set.",
        metavar="NAME",
    ),
    up_to: int | None = option(
        "Fold all up to this message (from 0) and its exchange, and keep what follows as it is.",
        type=click.IntRange(0),
    ),
    since: int | None = option(
        "Fold from this message on, and keep what came before as it is.", type=click.IntRange(0)
    ),
    offline: bool = option("Ask no model, the policy's summary_model neither: take its window alone."),
    policy_name: str | None = POLICY,
    policy_file: Path | None = POLICIES,
    instructions: str | None = option("What the checkpoint should look at first.", metavar="TEXT"),
    dialect: str | None = DIALECT,
    from_start: bool = FROM_START,
    preview: bool = option("Say what would be folded; write nothing."),
    full: bool = option("Print the whole checkpoint, not the beginning of each section alone."),
    output: Path | None = option(
        "Write the messages here (.json: one document; else JSON lines; -: standard output).",
        *("-o", "--output"),
    ),
    store_url: str | None = STORE,
) -> Shown:
    """Fit a session FILE into a budget of tokens, without a model or a network unless --model names one.

    ID names a stored session instead, which stays as it is. Where a file has that name, it goes first.
    FILE is a list of messages (JSON or JSON lines, any dialect), a session of Claude Code, Codex, pi or
    another agent that `foldline import` reads, or Foldline's own form; - is standard input. Its content
    says which. What has compactions of its own is folded from the newest of them on.
    """
    loaded = read_session(source, store=store_url, from_start=from_start)
    info = settings().model_info(model, window, recorded=loaded.model)
    chosen = fold_range(_entry(loaded, up_to, -1), _entry(loaded, since, 0), target)
    options = FoldOptions(
        find_policy(policy_name, policy_file),
        info,
        target=target,
        instructions=instructions,
        dialect=dialect,
        chosen=chosen,
    )
    summarizer = None if offline else find_summarizer(model, options)
    with progress("folding"):
        done = fold_now(loaded, options, summarizer)
    warn(done.warnings[len(loaded.warnings) :])
    if preview:
        if output is not None:
            text = f"--preview writes nothing: run it without --preview to write {escape(str(output))}"
            err().print(f"[yellow]note:[/] {text}", soft_wrap=True)
        shown = {name: value for name, value in as_dict(done).items() if name != "messages"}
        return Shown(lambda: shown, lambda: print_preview(done, loaded, out(), full=full))
    count = "1 message" if len(done.messages) == 1 else f"{len(done.messages):,} messages"
    if output is not None:
        write_messages(done, loaded, output)
        warn(tools_left_out(done, loaded))
        err().print(f"[green]wrote[/] {count} to {escape(str(output))}")
    on_output = str(output) == "-"

    def show() -> None:
        console = err() if on_output else out()
        print_done(done, console, checkpoint=output is None, full=full)
        if output is None:
            console.print(f"\n[dim]Nothing was written: add -o FILE to write {count}, or --json.[/]")
        if target is None and done.boundary is None:
            _print_budget(options)

    return Shown(None if on_output else lambda: as_dict(done), show)


def _entry(loaded: Loaded, number: int | None, which: int) -> str | None:
    """Return the entry of a message of the file; where it is several, the first (0) or the last (-1)."""
    if number is None:
        return None
    found = [entry for entry, index in loaded.index.items() if index == number]
    if not found:
        raise InputError(f"no message {number} is read here: they are counted from 0")
    return found[which]


def _print_budget(options: FoldOptions) -> None:
    """Say what a file that was not folded fits into, where nobody named a budget."""
    err().print(
        f"[dim]the budget is what {escape(options.policy.name)} uses of a window of "
        f"{options.model.window.context:,} tokens, {options.budget:,}: --target N asks for less[/]",
        soft_wrap=True,
    )


def tools_left_out(done: Done, loaded: Loaded) -> list[str]:
    """Warn where the messages are written in another dialect than the tools beside them."""
    own = loaded.system_dialect or loaded.dialect
    if not loaded.tools or done.dialect == own:
        return []
    return [f"the tools are left out: they are definitions for {own}, and {done.dialect} has another form"]


def write_messages(done: Done, loaded: Loaded, output: Path) -> None:
    """Write the messages, and the system prompt and tools that stand beside them, ready to be read again."""
    around = {"system": done.system, "tools": None if tools_left_out(done, loaded) else loaded.tools}
    around = {key: value for key, value in around.items() if value}

    def write(stream: BinaryIO) -> None:
        if output.suffix == ".json":
            whole = {**around, "messages": done.messages} if around else done.messages
            stream.write(pretty(whole) + b"\n")
        else:
            stream.writelines(message_lines(done.messages, **around))

    write_whole(output, write)
