"""`foldline bench`: Foldline's presets, simple controls and other systems, measured side by side."""

from __future__ import annotations

import shlex
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import msgspec
from rich.text import Text

from foldline.bench.folds import read_sessions
from foldline.bench.measures import FULL_SIZES, MEASURES, BenchSetup
from foldline.bench.report import filled_columns, headline, leads, page, run_details, table_lines
from foldline.bench.run import Bench, run_bench, select_measures
from foldline.bench.systems import FIRST, select_systems
from foldline.cli.options import Shown, command, option
from foldline.cli.output import escape, out, print_table, progress, row, rule, table, tell, warn, write_whole
from foldline.dialects import OPENAI_CHAT
from foldline.errors import FoldlineError, InputError
from foldline.lab.sources import session_files
from foldline.providers import choose

USUAL = BenchSetup()
DECISION = "decision"


@command(
    "foldline bench --html bench.html",
    "foldline bench --systems presets --measures valid,rules",
    "foldline bench --systems foldline,controls,rivals --sessions ~/.claude/projects/my-project",
    "foldline bench --full --json bench.json --html bench.html",
    json=False,
)
def bench(
    systems: str = option(
        "The systems, by name or by group: presets, controls, rivals  [default: all]",
        metavar="NAME,...",
        default="",
        show_default=False,
    ),
    names: str = option(
        f"The measures: {', '.join(MEASURES)}  [default: all; decision only with --model]",
        "--measures",
        metavar="NAME,...",
        default="",
        show_default=False,
    ),
    sessions: tuple[str, ...] = option(
        "Measure retention and decision on the sessions of this folder or file.", metavar="DIR"
    ),
    model: str | None = option(
        "Ask this model for decisions: openai:NAME, openai-compatible:NAME@URL.", metavar="NAME"
    ),
    full: bool = option("Also time turns at 100,000 messages."),
    window: int = option("The context window of live sessions, in tokens.", default=USUAL.window),
    messages: int = option("Messages of a live session.", default=USUAL.messages),
    context: int = option("Tokens of a session that is folded once.", default=USUAL.context),
    seed: int = option("The seed of the made-up sessions.", default=7),
    timeout: int | None = option(
        "The most seconds for one measure of one system  [default: 120, with --full 1200]"
    ),
    jobs: int | None = option("Processes  [default: one per core]"),
    as_json: Path | None = option(
        "Write the figures as JSON; - is standard output.",
        "--json",
        metavar="FILE",
        is_flag=False,
        flag_value="-",
    ),
    html: Path | None = option("Write an HTML page.", metavar="FILE"),
) -> Shown:
    """Measure systems that fit a conversation into a budget, on the same made-up sessions.

    Without --model, no key or network is needed. A row is a preset of Foldline, a simple control, or
    another system whose package is installed. The first lines name the measures in which Foldline is not
    first. docs/bench.md describes the measures.
    """
    rows = select_systems(_split(systems))
    selected = select_measures(_split(names))
    if model is not None and DECISION not in selected:
        selected = (*selected, DECISION)
    if DECISION in selected:
        _check_decision(model, sessions)
    setup = BenchSetup(
        seed=seed,
        window=window,
        messages=messages,
        context=context,
        sizes=FULL_SIZES if full else FULL_SIZES[:2],
        sessions=_readable(sessions) if {"retention", DECISION} & set(selected) else (),
        model=model or "",
        seconds=timeout or USUAL.seconds * (10 if full else 1),
    )
    with progress(f"measuring {len(rows)} systems", len(rows) * len(selected)) as tick:
        found = run_bench(
            rows, selected, setup, shlex.join(["foldline", *sys.argv[1:]]), jobs=jobs, tick=tick
        )
    if html is not None:
        raw = page(found).encode()
        write_whole(html, lambda file: file.write(raw))
        tell(f"wrote {html}")
    if as_json is not None:
        document = msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"
        write_whole(as_json, lambda file: file.write(document))
    compared = leads(found)[1] or all(row.name != FIRST for row in found.rows)
    on_output = str(as_json) == "-"
    return Shown(None, (lambda: None) if on_output else (lambda: _print(found)), 0 if compared else 1)


def _check_decision(model: str | None, sessions: Sequence[str]) -> None:
    """Raise InputError unless a usable model and sessions are named."""
    if model is None or not sessions:
        missing = "--model" if model is None else "--sessions"
        raise InputError(f"{DECISION} needs {missing}: a model is asked what comes next in your own sessions")
    if problem := choose.missing(model):
        raise InputError(f"{model}: {problem}")
    choose.get(model, dialect=OPENAI_CHAT)


def _readable(names: Sequence[str]) -> tuple[str, ...]:
    """Return the session files that can be read, and warn of the others; raises InputError if none can."""
    found: list[str] = []
    for file in session_files(names):
        try:
            deque(read_sessions([file]), maxlen=0)
            found.append(file)
        except FoldlineError as error:
            warn([f"left out: {error}"])
    if names and not found:
        raise InputError("none of the sessions could be read")
    return tuple(found)


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _print(found: Bench) -> None:
    console = out()
    first, *others = headline(found)
    console.print(f"[bold]{escape(first)}[/]", soft_wrap=True)
    for line in others:
        console.print(f"  {escape(line)}", soft_wrap=True)
    for name in found.measures:
        measure = MEASURES[name]
        shown = filled_columns(found, measure)
        rule(console, name)
        console.print(escape(measure.about), soft_wrap=True)
        titles = (column.title if column.form == "text" else f"#{column.title}" for column in shown)
        result = table("=system", *titles, "")
        for line in table_lines(found, measure, shown):
            styles = {"best": "bold green", "over": "dim"}
            cells = [Text(text, styles.get(kind, "")) for text, kind in line.cells]
            row(result, line.row.label, *(cells or [""] * len(shown)), line.problem)
        print_table(result, console)
    console.print("", *(f"[dim]{escape(line)}[/]" for line in run_details(found)), sep="\n", soft_wrap=True)
