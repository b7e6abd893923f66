"""What a batch prints: a line per file while it runs, and the results at the end."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from foldline.cli.output import err, escape, out, print_json_rows, progress, share, tell, warn
from foldline.cli.reports.replay import print_totals
from foldline.lab.manifest import NAME, Manifest, Result
from foldline.lab.report import ReplaySums, SessionReport


@contextmanager
def ticking(verb: str, count: int) -> Generator[Callable[[Result], None]]:
    """Show a batch's progress on standard error: a bar on a terminal, else a line per file."""
    finished, console = 0, err()

    with progress(f"{verb} {count:,} sessions", count) as bar:

        def tick(result: Result) -> None:
            nonlocal finished
            finished += 1
            bar(finished)
            if result.state == "failed":
                console.print(f"[red]failed:[/] {escape(result.error)}", soft_wrap=True)
            elif result.state == "done" and not console.is_terminal:
                tell(f"{finished:,} of {count:,}: {result.file}")

        try:
            yield tick
        except KeyboardInterrupt:
            tell(f"{finished:,} of {count:,} files are done; run the same command again to continue")
            raise


def print_results(manifest: Manifest, folder: Path, *, as_json: bool) -> dict[str, Any]:
    """Print the results of all sessions, one JSON document or text, and return their totals."""
    sums = BatchSums()
    if as_json:
        print_json_rows("files", map(_row, sums.through(manifest.results())), sums.as_json)
        return sums.totals()
    for _ in sums.through(manifest.results()):
        pass
    warn(_warnings(manifest), most=5)
    if sums.replays.sessions:
        print_totals(sums.replays, out())
    _print_sums(sums.totals(), folder)
    return sums.totals()


class BatchSums:
    """What the results of a batch come to."""

    def __init__(self) -> None:
        self.replays = ReplaySums()
        self._states: dict[str, int] = dict.fromkeys(("done", "earlier", "failed"), 0)
        self._folds: dict[str, int] = dict.fromkeys(("tokens_before", "tokens_after", "folded"), 0)
        self._has_folds = False

    def through(self, results: Iterable[Result]) -> Iterator[Result]:
        """Pass results on, and add them up."""
        for result in results:
            if result.state in self._states:
                self._states[result.state] += 1
            if "report" in result.found:
                self.replays.add(msgspec.convert(result.found["report"], SessionReport))
            if "tokens_before" in result.found:
                self._has_folds = True
                for name in self._folds:
                    self._folds[name] += result.found[name]
            yield result

    def totals(self) -> dict[str, Any]:
        """Return how many sessions there are in each state, and the sums of what was folded."""
        folds: dict[str, int] = self._folds if self._has_folds else {}
        return {"files": sum(self._states.values()), **self._states, **folds}

    def as_json(self) -> dict[str, Any]:
        """Return the totals, and those of each policy."""
        policies = [
            {"policy": name, "totals": one.totals(), "retention": one.retention()}
            for name, one in self.replays.policies.items()
        ]
        return {"totals": self.totals(), **({"policies": policies} if policies else {})}


def _warnings(manifest: Manifest) -> Iterator[str]:
    return (f"{one.file}: {text}" for one in manifest.results("done") for text in one.found["warnings"])


def _row(result: Result) -> dict[str, Any]:
    """Return a session as --json prints it."""
    found = {key: value for key, value in result.found.items() if key != "report"}
    if result.state == "failed":
        found["error"] = result.error
    return {"file": result.file, "output": result.output, "state": result.state, **found}


def _print_sums(sums: dict[str, Any], folder: Path) -> None:
    console = out()
    states = (("done", "done now"), ("earlier", "done before"), ("failed", "failed"))
    told = [f"{sums[name]:,} {text}" for name, text in states if sums[name]]
    console.print(f"{sums['files']:,} files: {', '.join(told)}", soft_wrap=True)
    if "tokens_before" in sums:
        before, after = sums["tokens_before"], sums["tokens_after"]
        console.print(
            f"{before:,} tokens -> {after:,} ({share(before - after, before)} less); {sums['folded']:,} were "
            "folded, "
            "the others fit as they are",
            soft_wrap=True,
        )
    console.print(f"[dim]results and {NAME} are in {escape(str(folder))}[/]", soft_wrap=True)
