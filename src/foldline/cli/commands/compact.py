"""`foldline compact FILE`: fit a session file into a budget."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import click

from foldline.cli.common import find_policy, read_session
from foldline.cli.options import TOKENS, OneOf, file_argument, json_option, policy_options
from foldline.cli.output import err, escape, message_lines, out, print_json, progress, warn, write_whole
from foldline.cli.reports.fold import print_done, print_preview
from foldline.compaction import asked_summarizer
from foldline.config import settings
from foldline.core.log.codec import pretty
from foldline.dialects import names
from foldline.folding import Done, FoldOptions, as_dict, fold_now
from foldline.loading import Loaded
from foldline.summarizers import Summarizer, unasked_warning

EPILOG = """
\b
Examples:
  foldline compact session.jsonl --target 32000 -o folded.jsonl
  foldline compact session.jsonl --window 200000 --policy pi --json
  foldline compact claude.jsonl --target 20000 --preview
  cat messages.json | foldline compact - --target 8000 -o - | jq .role
"""


@click.command(epilog=EPILOG)
@file_argument
@click.option("--target", type=TOKENS, metavar="N", help="The budget in tokens; never exceeded.")
@click.option(
    "--window", type=TOKENS, metavar="N", help="A context window; the policy says how much is usable."
)
@click.option(
    "--model",
    metavar="NAME",
    help="Take the window of this model (anthropic:claude-sonnet-4-6), and have it write the summary "
    "if its key is set.",
)
@click.option(
    "--offline", is_flag=True, help="Ask no model, the policy's summary_model neither: take its window alone."
)
@policy_options
@click.option("--instructions", metavar="TEXT", help="What the checkpoint should look at first.")
@click.option("--dialect", type=OneOf(names()), help="Write the messages in this dialect.")
@click.option(
    "--from-start", is_flag=True, help="Fold everything said, not from the file's newest compaction on."
)
@click.option("--preview", is_flag=True, help="Say what would be folded; write nothing.")
@click.option(
    "--full", is_flag=True, help="Print the whole checkpoint, not its story, state and rules alone."
)
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
    full: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Fit a session FILE into a budget of tokens, without a model or a network unless --model names one.

    FILE is a list of messages (JSON or JSON lines, any dialect), a session of Claude Code, Codex, pi or
    another agent that `foldline import` reads, or Foldline's own form; - is standard input. Its content
    says which. A file with compactions of its own is folded from the newest of them on.
    """
    known = settings()
    loaded = read_session(file, from_start=from_start)
    info = known.model_info(model, window, recorded=loaded.model)
    options = FoldOptions(
        find_policy(policy_name, policy_file), info, target=target, instructions=instructions, dialect=dialect
    )
    summarizer = None if offline else _summarizer(model, options)
    with progress("folding"):
        done = fold_now(loaded, options, summarizer)
    warn(done.warnings[len(loaded.warnings) :])
    if output is not None and preview:
        _say_unwritten(output)
    elif output is not None:
        write_messages(done, loaded, output)
    _tell(done, loaded, output, preview=preview, full=full, as_json=as_json)
    if target is None and done.boundary is None and not as_json:
        _say_budget(options)


def _summarizer(model: str | None, options: FoldOptions) -> Summarizer:
    """Return who writes the summary where a model may be asked; warn of a `summary_model` that cannot be."""
    catalogue, policy = settings().catalogue(), options.resolved_policy
    summarizer = asked_summarizer(model, options.model, policy, catalogue)
    info = catalogue.look_up(None) if model is None else options.model
    told = unasked_warning(info, policy, catalogue=catalogue)
    warn([told] if told else [])
    return summarizer


def _tell(
    done: Done, loaded: Loaded, output: Path | None, *, preview: bool, full: bool, as_json: bool
) -> None:
    """Say what was done: a JSON document, or text; beside the messages where those go to standard output."""
    console = err() if str(output) == "-" and not preview else out()
    if as_json and (preview or str(output) != "-"):
        shown = as_dict(done)
        print_json({key: value for key, value in shown.items() if key != "messages"} if preview else shown)
    elif preview:
        print_preview(done, loaded, console, full=full)
    elif not as_json:
        print_done(done, console, checkpoint=output is None, full=full)
    if preview or as_json:
        return
    count = "1 message" if len(done.messages) == 1 else f"{len(done.messages):,} messages"
    if output is None:
        console.print(f"\n[dim]Nothing was written: add -o FILE to write {count}, or --json.[/]")
    else:
        err().print(f"[green]wrote[/] {count} to {escape(str(output))}")


def _say_budget(options: FoldOptions) -> None:
    """Say what a file that was not folded fits into, where nobody named a budget."""
    err().print(
        f"[dim]the budget is what {escape(options.policy.name)} uses of a window of "
        f"{options.model.window.context:,} tokens, {options.budget:,}: --target N asks for less[/]",
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
