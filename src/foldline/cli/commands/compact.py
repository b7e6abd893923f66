"""`foldline compact FILE`: fit a session file into a budget."""

from __future__ import annotations

import time
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from foldline.cli.common import (
    file_argument,
    find_policy,
    find_window,
    json_option,
    policy_options,
    read_session,
)
from foldline.cli.output import err, escape, message_lines, out, print_json, progress, warn, write_whole
from foldline.cli.report import print_done, print_preview
from foldline.config import settings
from foldline.core.decide.ask import Ask
from foldline.core.decide.policy import Policy, usable_of
from foldline.core.log.codec import pretty
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.core.view import ViewState
from foldline.dialects import get, names
from foldline.executor import run_sync
from foldline.folding import Done, apart, as_dict, budget, closing, fit, now, unchanged
from foldline.loading import Loaded
from foldline.summarizers import ModelSummarizer, OfflineSummarizer, Summarizer, summarizer_for
from foldline.waiting import run_waiting

EPILOG = """
\b
Examples:
  foldline compact session.jsonl --target 32000 -o folded.jsonl
  foldline compact session.jsonl --window 200000 --policy pi --json
  foldline compact claude.jsonl --target 20000 --preview
  cat messages.json | foldline compact - --target 8000 -o - | jq .role
"""

_tokens = click.IntRange(min=1)


class Wish(msgspec.Struct, frozen=True):
    """How to fold a file: the policy, and what the flags say beside it (None: what the policy and the file say)."""

    policy: Policy
    target: int | None = None
    instructions: str | None = None
    dialect: str | None = None


@click.command(epilog=EPILOG)
@file_argument
@click.option("--target", type=_tokens, metavar="N", help="The budget in tokens; never exceeded.")
@click.option(
    "--window", type=_tokens, metavar="N", help="A context window; the policy says how much is usable."
)
@click.option(
    "--model",
    metavar="NAME",
    help="Take the window of this model (anthropic:claude-sonnet-4-6), and have it write the summary if its key is set.",
)
@click.option("--offline", is_flag=True, help="Ask no model: take its window alone.")
@policy_options
@click.option("--instructions", metavar="TEXT", help="What the checkpoint should look at first.")
@click.option("--dialect", type=click.Choice(names()), help="Write the messages in this dialect.")
@click.option(
    "--from-start", is_flag=True, help="Fold everything said, not from the file's newest compaction on."
)
@click.option("--preview", is_flag=True, help="Say what would be folded; write nothing.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the messages here (.json: one document; else JSON lines; -: standard output).",
)
@json_option
def command(
    file: str,
    target: int | None,
    window: int | None,
    model: str | None,
    offline: bool,
    policy_name: str | None,
    policy_file: Path | None,
    instructions: str | None,
    dialect: str | None,
    from_start: bool,
    preview: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Fit a session FILE into a budget of tokens, without a model or a network unless --model names one.

    FILE is a list of messages (JSON or JSON lines, any dialect), a session of Claude Code, Codex, pi or another
    agent that `foldline import` reads, or Foldline's own form; - is standard input. What it is, is found out from
    its content. A file with compactions of its own is folded from the newest of them on.
    """
    started = time.perf_counter()
    rules = find_policy(policy_name, policy_file)
    loaded = read_session(file, from_start=from_start)
    limits = find_window(model, window, loaded.model)
    wish = Wish(rules, target=target, instructions=instructions, dialect=dialect)
    asked = None if offline else model  # a model of the settings or of the file gives its window alone
    written = summarizer_for(asked, rules, window=limits, catalogue=settings().catalogue())
    with progress("folding"):
        done = fold(loaded, limits, wish, started, written)
    warn(done.warnings[len(loaded.warnings) :])
    if output is not None and preview:
        _say_unwritten(output)
    elif output is not None:
        write_messages(done, loaded, output)
    _tell(done, loaded, output, preview=preview, as_json=as_json)
    if target is None and done.boundary is None and not as_json:
        _say_budget(rules, limits)


def fold(
    loaded: Loaded, limits: Window, wish: Wish, started: float, summarizer: Summarizer | None = None
) -> Done:
    """Fold what was loaded, without a model where no summariser is given; what fits and is valid comes back as it is."""
    loaded = msgspec.structs.replace(loaded, dialect=wish.dialect or loaded.dialect)
    ask = Ask(
        policy=wish.policy,
        window=limits,
        reason="target",
        target=budget(wish.target, wish.policy, limits),
        instructions=wish.instructions,
        apart=apart(loaded.system, loaded.tools, OFFLINE),
        now=now(),
        recall=False,
    )
    view = ViewState(loaded.entries, counter=OFFLINE)
    if not loaded.repaired and ask.apart_tokens + view.tokens <= (ask.target or 0):
        done = unchanged(loaded, view, ask, started)
        if not get(done.dialect).validate(done.messages, done.system):
            return done
    written = summarizer or OfflineSummarizer()
    work = fit(loaded, view, ask, counter=OFFLINE, summarizer=written, started=started)
    return run_waiting(closing(work, written)) if isinstance(written, ModelSummarizer) else run_sync(work)


def _tell(done: Done, loaded: Loaded, output: Path | None, *, preview: bool, as_json: bool) -> None:
    """Say what was done: a JSON document, or text; beside the messages where those go to standard output."""
    console = err() if str(output) == "-" and not preview else out()
    if as_json and (preview or str(output) != "-"):
        shown = as_dict(done)
        print_json({key: value for key, value in shown.items() if key != "messages"} if preview else shown)
    elif preview:
        print_preview(done, loaded, console)
    elif not as_json:
        print_done(done, console, checkpoint=output is None)
    if preview or as_json:
        return
    count = f"{len(done.messages):,} messages"
    if output is None:
        console.print(f"\n[dim]Nothing was written: add -o FILE for the {count}, or --json.[/]")
    else:
        err().print(f"[green]wrote[/] {count} to {escape(str(output))}")


def _say_budget(rules: Policy, limits: Window) -> None:
    """Say what a file that was not folded fits into, where nobody named a budget."""
    err().print(
        f"[dim]the budget is what {escape(rules.name)} uses of a window of {limits.context:,} tokens, "
        f"{usable_of(rules, limits):,}: --target N asks for less[/]",
        soft_wrap=True,
    )


def _say_unwritten(output: Path) -> None:
    """Say that a preview writes nothing, where a file was named."""
    err().print(
        f"[yellow]note:[/] --preview writes nothing: run it without --preview to write {escape(str(output))}",
        soft_wrap=True,
    )


def write_messages(done: Done, loaded: Loaded, output: Path) -> None:
    """Write the messages, and the system prompt and tools that stand beside them, ready to be read again."""
    around = {"system": done.system, "tools": loaded.tools}
    around = {key: value for key, value in around.items() if value}

    def write(stream: BinaryIO) -> None:
        if output.suffix == ".json":
            whole = {**around, "messages": done.messages} if around else done.messages
            stream.write(pretty(whole) + b"\n")
        else:
            stream.writelines(message_lines(done.messages, **around))

    write_whole(output, write)
