"""`foldline compact FILE`: fit a session file into a budget."""

from __future__ import annotations

import time
from pathlib import Path

import click
import msgspec

from foldline.cli.common import (
    err,
    escape,
    file_argument,
    find_policy,
    find_window,
    json_option,
    out,
    policy_options,
    print_json,
    progress,
    read_session,
    warn,
)
from foldline.cli.report import print_done, print_floor, print_preview
from foldline.core.decide.ask import Ask
from foldline.core.log.codec import encode
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view import Fold
from foldline.dialects import names
from foldline.errors import FloorExceeded
from foldline.executor import run_sync
from foldline.loading import Loaded
from foldline.stateless import Done, apart, as_dict, budget, fit, now, unchanged
from foldline.summarizers.offline import OfflineSummarizer

EPILOG = """
\b
Examples:
  foldline compact session.jsonl --target 32000 -o folded.jsonl
  foldline compact session.jsonl --window 200000 --policy pi --json
  foldline compact claude.jsonl --target 20000 --preview
  cat messages.json | foldline compact - --target 8000 -o folded.json
"""


@click.command(epilog=EPILOG)
@file_argument
@click.option(
    "--target", type=click.IntRange(min=1), metavar="N", help="The budget in tokens; never exceeded."
)
@click.option(
    "--window",
    type=click.IntRange(min=1),
    metavar="N",
    help="A context window; the policy says how much is usable.",
)
@click.option("--model", metavar="NAME", help="Take the window of this model (anthropic:claude-sonnet-4-5).")
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
    help="Write the messages here (.json: a list; else JSON lines).",
)
@json_option
def command(
    file: str,
    target: int | None,
    window: int | None,
    model: str | None,
    policy_name: str | None,
    policy_file: Path | None,
    instructions: str | None,
    dialect: str | None,
    from_start: bool,
    preview: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Fit a session FILE into a budget of tokens, without a model or a network.

    FILE is a list of messages (OpenAI chat or Anthropic; JSON or JSON lines), a pi or Claude Code session,
    or Foldline's own form; - is standard input. What it is, is found out from its content. A file with
    compactions of its own is folded from the newest of them on.
    """
    started = time.perf_counter()
    loaded = read_session(file, from_start=from_start)
    rules = find_policy(policy_name, policy_file)
    limits = find_window(model, window, loaded.model)
    ask = Ask(
        policy=rules,
        window=limits,
        reason="target",
        target=budget(target, rules, limits),
        instructions=instructions,
        apart=apart(loaded.system, loaded.tools, OFFLINE),
        now=now(),
    )
    try:
        done = _fold(loaded, ask, started, dialect)
    except FloorExceeded as error:
        if as_json:
            print_json(
                {"error": "floor", "floor": error.floor, "budget": error.budget, "breakdown": error.breakdown}
            )
        else:
            print_floor(error, err())
        raise SystemExit(error.exit_code) from error
    warn(done.warnings)
    if preview:
        if as_json:
            print_json({key: value for key, value in as_dict(done).items() if key != "messages"})
        else:
            print_preview(done, loaded, out())
        return
    if output is not None:
        write_messages(done, output)
    if as_json:
        print_json(as_dict(done))
        return
    print_done(done, err() if str(output) == "-" else out())
    if output is None:
        out().print(
            f"\n[dim]Nothing was written: add -o FILE for the {len(done.messages)} messages, or --json.[/]"
        )
    else:
        err().print(f"[green]wrote[/] {len(done.messages)} messages to {escape(str(output))}")


def _fold(loaded: Loaded, ask: Ask, started: float, dialect: str | None) -> Done:
    with progress("folding"):
        fold = Fold(loaded.entries, counter=OFFLINE)
        if dialect is not None:
            loaded = msgspec.structs.replace(loaded, dialect=dialect)
        if not loaded.repaired and ask.apart_tokens + fold.tokens <= (ask.target or 0):
            return unchanged(loaded, fold, ask, started)
        return run_sync(
            fit(loaded, fold, ask, counter=OFFLINE, summarizer=OfflineSummarizer(), started=started)
        )


def write_messages(done: Done, output: Path) -> None:
    """Write the messages as a JSON list (.json) or as JSON lines; the file appears whole or not at all."""
    if output.suffix == ".json":
        raw = msgspec.json.format(encode(done.messages), indent=2) + b"\n"
    else:
        raw = b"".join(encode(message) + b"\n" for message in done.messages)
    part = output.with_name(output.name + ".part")
    try:
        part.write_bytes(raw)
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
