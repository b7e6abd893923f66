"""Measure every system by every measure, on the cores of this machine."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from io import StringIO

import msgspec

from foldline.bench.folds import Figures
from foldline.bench.measures import MEASURES, BenchSetup
from foldline.bench.system import Kind, System, how_to_install, installed, machine
from foldline.bench.systems import SYSTEMS
from foldline.errors import InputError, did_you_mean
from foldline.lab.runner import Failed, LocalPool

MODEL_NEEDED = "needs a model"  # to write summaries


class Cell(msgspec.Struct, frozen=True):
    """One system under one measure: its figures, or the reason for having none."""

    figures: Figures = {}
    problem: str = ""


class SystemRow(msgspec.Struct, frozen=True):
    """One system, and its cells by measure; `version` is None where it is not installed."""

    name: str
    kind: Kind
    package: str
    version: str | None
    entry: str
    cells: dict[str, Cell]

    @property
    def label(self) -> str:
        """The name, with the version of a rival."""
        return f"{self.name} {self.version}" if self.kind == "rival" and self.version else self.name


class Bench(msgspec.Struct, frozen=True):
    """The results of one run."""

    command: str
    date: str
    machine: str
    foldline: str
    setup: BenchSetup
    measures: tuple[str, ...]
    rows: list[SystemRow]


def select_measures(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of measures, each once; without names all that call no model.

    Raises InputError for an unknown name.
    """
    for name in names:
        if name not in MEASURES:
            known = ", ".join(MEASURES)
            raise InputError(f"no measure {name!r}{did_you_mean(name, MEASURES)}; the measures are {known}")
    return tuple(dict.fromkeys(names)) or tuple(name for name in MEASURES if not MEASURES[name].asks)


def run_bench(
    systems: Sequence[System],
    names: Sequence[str],
    setup: BenchSetup,
    command: str,
    *,
    jobs: int | None = None,
    tick: Callable[[int], None] = lambda _: None,
) -> Bench:
    """Measure systems, each cell in a process that may die or hang; `tick` gets the finished cells."""
    chosen = select_measures(names)
    cells = {(system.name, name): _fixed_cell(system, name) for system in systems for name in chosen}
    pending = [pair for pair, cell in cells.items() if cell is None]
    tick(len(cells) - len(pending))
    pool = LocalPool(jobs, setup.seconds)
    results = pool.each(pending, partial(_measure, setup), file=" under ".join)
    for finished, (pair, cell) in enumerate(results, len(cells) - len(pending) + 1):
        if isinstance(cell, Failed):
            cell = Cell(problem=cell.error.removeprefix(f"{' under '.join(pair)}: "))  # noqa: PLW2901
        cells[pair] = cell
        tick(finished)
    rows = [
        SystemRow(
            system.name,
            system.kind,
            system.package,
            system.version,
            system.entry,
            {name: cell for name in chosen if (cell := cells[system.name, name]) is not None},
        )
        for system in systems
    ]
    now = f"{datetime.now(UTC):%Y-%m-%d}"
    return Bench(command, now, machine(), version("foldline"), setup, chosen, rows)


def _fixed_cell(system: System, name: str) -> Cell | None:
    """Return a cell that needs no measurement, or None."""
    measure = MEASURES[name]
    for package in filter(None, (measure.needs, system.package)):
        if installed(package) is None:
            return Cell(problem=f"not installed: {how_to_install(package)}")
    if system.writer and measure.reads:
        return Cell(problem=MODEL_NEEDED)
    return None


@contextmanager
def _quiet() -> Generator[None]:
    """Suppress output, logs and warnings of systems."""
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def _measure(setup: BenchSetup, pair: tuple[str, str]) -> Cell:
    system, name = pair
    try:
        with _quiet():
            return Cell(MEASURES[name].take(SYSTEMS[system], setup))
    except Exception as error:
        text = " ".join(str(error).split())
        return Cell(problem=f"failed: {type(error).__name__}: {text}"[:200])
