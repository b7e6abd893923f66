"""`foldline check FILE...`: replay recorded sessions under a policy, and fail on a problem."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from foldline.cli.common import find_policies
from foldline.cli.options import POLICIES, Shown, argument, command, option
from foldline.cli.output import escape, out, progress
from foldline.lab.recordings import problems_of
from foldline.lab.report import SessionReport
from foldline.lab.run import replay_many, replay_setup
from foldline.lab.runner import Failed
from foldline.lab.sources import session_files


@command(
    "foldline check recordings --window 60000",
    "foldline check 'recordings/**/*.jsonl' --policy foldline,pi",
    "foldline check session.jsonl --json | jq -r '.problems[].text'",
)
def check(
    files: tuple[str, ...] = argument("FILE..."),
    policies: tuple[str, ...] = option(
        "Presets, or your own policies  [default: the settings', else foldline]",
        "--policy",
        metavar="NAME,...",
    ),
    policy_file: Path | None = POLICIES,
    window: int | None = option(
        "The context window, in tokens  [default: the file's own, else its model's, else 200000]"
    ),
    model: str | None = option("The model whose window to use  [default: the file's]", metavar="NAME"),
    jobs: int | None = option("Processes for several files  [default: one per core]"),
) -> Shown:
    """Replay recorded session FILEs, and fail on a problem.

    The exit code is 1 if a view lacks a standing rule of the user, a view is invalid for its dialect, a
    request exceeds the window, or a file cannot be replayed. FILE may be a folder or a pattern.
    """
    chosen = find_policies(policies, policy_file)
    setup = replay_setup(chosen.values(), window, model, checks=True)
    paths = session_files(files)
    with progress("checking sessions", len(paths) if len(paths) > 1 else None) as tick:
        results = replay_many(paths, setup, jobs, tick)
    failed = [result for result in results if isinstance(result, Failed)]
    reports = [result for result in results if isinstance(result, SessionReport)]
    problems = [problem for report in reports for problem in problems_of(report)]

    def show() -> None:
        console = out()
        for line in (*(failure.error for failure in failed), *map(str, problems)):
            console.print(f"[red]failed:[/] {escape(line)}", soft_wrap=True)
        sessions = "1 session" if len(results) == 1 else f"{len(results):,} sessions"
        bad = {item.session for item in (*failed, *problems)}
        console.print(f"{sessions}, {len(bad):,} failed, under {', '.join(chosen)}")

    def document() -> dict[str, Any]:
        return {"sessions": len(results), "policies": list(chosen), "problems": problems, "failed": failed}

    return Shown(document, show, 1 if failed or problems else 0)
