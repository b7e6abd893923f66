"""Helpers of several commands: policies and windows by name, and session files that fit into memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from foldline.cli.output import progress, warn
from foldline.cli.store import open_source
from foldline.compaction import choose_summarizer
from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import PRESETS
from foldline.core.measure.window import Window
from foldline.errors import InputError, PolicyError
from foldline.folding import FoldOptions
from foldline.loading import Loaded, from_stream
from foldline.policies import load
from foldline.summarizers import Summarizer, unasked_warning
from foldline.transcripts import MessageRecord, Record

NONE = Policy(name="none", summary="Never compacts.", enabled=False)
TEN = tuple(name for name in PRESETS if ":" not in name)  # without variants

# bytes of memory per byte of a session file; 100 MB of JSON lines took 2.4 to read or store, 6.1 to fold
TO_READ = 3
TO_FOLD = 8
SMALL = 64 * 1024 * 1024  # never checked below this size

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def find_policy(name: str | None, policy_file: Path | None) -> Policy:
    """Return the named policy (default: the configured one); those of `policy_file` come first."""
    return settings().find_policy(name or None, known_policies(policy_file))


def find_policies(
    names: Iterable[str], policy_file: Path | None, *, default: str | None = None
) -> dict[str, Policy]:
    """Return the policies that comma-separated lists name, each once; the lists default to `default`."""
    config, own = settings(), known_policies(policy_file)
    text = ",".join(names) or default or config.policy
    listed = [name.strip() for name in text.split(",") if name.strip()]
    if not listed:
        raise PolicyError("no policy named; give --policy none,pi,foldline or --policy all")
    every = ("none", *TEN, *own)
    expanded = chain.from_iterable(every if name == "all" else (name,) for name in listed)
    return {name: NONE if name == "none" else config.find_policy(name, own) for name in expanded}


def known_policies(policy_file: Path | None) -> dict[str, Policy]:
    """Return the user's own policies: those of the settings, overridden by those of a file."""
    return {**settings().user_policies(), **(load(policy_file) if policy_file else {})}


def find_window(model: str | None, window: int | None, recorded: str | None = None) -> Window:
    """Return the limits of the options, else of the settings, else of the model that a file `recorded`."""
    info = settings().model_info(model, window, recorded=recorded)
    warn([info.warning] if info.warning else [])
    return info.window


def find_summarizer(model: str | None, options: FoldOptions) -> Summarizer:
    """Return the summarizer; warn about a `summary_model` that cannot be used."""
    catalogue, policy = settings().catalogue(), options.resolved_policy
    summarizer = choose_summarizer(model, options.model, policy, catalogue)
    info = catalogue.look_up(None) if model is None else options.model
    warning = unasked_warning(info, policy, catalogue=catalogue)
    warn([warning] if warning else [])
    return summarizer


def shown_name(file: str) -> str:
    """Return how messages name a session file."""
    return "standard input" if file == "-" else file


def read_session(
    file: str, *, store: str | None = None, from_start: bool = False, room: int = TO_FOLD
) -> Loaded:
    """Read a session file of any known format, or a stored session, into entries; warnings are printed.

    `room` is the memory that the work needs, in bytes per byte of the file.
    """
    with progress(f"reading {shown_name(file)}") as tick:
        loaded = load_session(file, store=store, from_start=from_start, room=room, tick=tick)
    warn(loaded.warnings)
    return loaded


def load_session(
    file: str,
    *,
    store: str | None = None,
    from_start: bool = False,
    room: int = TO_FOLD,
    tick: Callable[[int], None] = lambda _: None,
) -> Loaded:
    """Read a session like `read_session`, but print nothing; `tick` receives the count of messages."""
    name = shown_name(file)
    with open_source(file, store) as stream:
        check_room(stream, name, room)
        return from_stream(
            stream,
            name,
            from_start=from_start,
            through=lambda records: counted(records, tick),
        )


def counted(records: Iterator[Record], tick: Callable[[int], None]) -> Iterator[Record]:
    """Yield the records, and pass the count of messages to `tick` every 500 messages."""
    count = 0
    for record in records:
        count += isinstance(record, MessageRecord)
        if count % 500 == 0:
            tick(count)
        yield record


def check_room(stream: BinaryIO, name: str, factor: int) -> None:
    """Raise InputError if `factor` times the size of an open file exceeds the free memory."""
    try:
        size = os.fstat(stream.fileno()).st_size
    except OSError:  # an archive, unpacked while it is read
        return
    free = available() if size > SMALL else None
    if free is not None and size * factor > free:
        needed = f"{size / 1e9:,.1f} GB need about {size * factor / 1e9:,.0f} GB of memory"
        raise InputError(
            f"{name}: too large for this machine: {needed}, and {free / 1e9:,.0f} GB are free. Split it, or "
            "use a larger machine; nothing was changed."
        )


def available() -> int | None:
    """Return the free bytes of memory; None if unknown (not Linux)."""
    limits: list[int] = []
    with suppress(OSError):
        lines = [line.split() for line in _MEMINFO.read_text().splitlines()]
        limits += [int(line[1]) * 1024 for line in lines if line[0] == "MemAvailable:"]
    with suppress(OSError, ValueError):  # "max": no limit
        most, now = (int((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        limits.append(most - now)
    return min(limits, default=None)
