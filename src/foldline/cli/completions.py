"""What a shell completes for a parameter: the names of policies, ids of stored sessions, agents, files.

Which of them is told by the flag and the metavar of the parameter, so that no command names its own; types
such as a choice or a path complete themselves. A mistake in the settings or a store that cannot be read
completes nothing: a shell has no place for an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

import click
from click.shell_completion import CompletionItem

from foldline.cli.store import is_missing
from foldline.config import settings
from foldline.core.decide.policy import Policy
from foldline.core.decide.presets import PRESETS
from foldline.errors import FoldlineError
from foldline.stores import open_store
from foldline.transcripts.places import AGENTS, NAMES

Items = list["CompletionItem[str]"]  # quoted: generic only since click 8.5
Complete = Callable[[click.Context, click.Parameter, str], Items]

MOST: Final = 100  # sessions that are offered
_FILES: Final = {"FILE", "FILE.toml", "SOURCE"}
_KNOWN: Final = {"POLICY", "ID", "AGENT", *_FILES}


def completed(flags: Sequence[str], metavar: str) -> Complete | None:
    """Return what completes a parameter with these flags and metavar; None where its type does."""
    kinds = set(metavar.strip("[].").split("|"))
    if "--policy" in flags or kinds >= {"NAME", "FILE.toml"}:
        kinds = {"POLICY", *kinds}
    if not kinds & _KNOWN:
        return None

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        del param
        found: Items = []
        if "POLICY" in kinds:
            found += _policies(incomplete)
        if "ID" in kinds:
            found += _begun(_sessions(ctx, incomplete), incomplete)
        if "AGENT" in kinds:
            found += _begun([*NAMES, *AGENTS], incomplete)
        if kinds & _FILES:
            found.append(CompletionItem(incomplete, type="file"))
        return found

    return complete


def _begun(names: Iterable[str], incomplete: str) -> Items:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _policies(incomplete: str) -> Items:
    """Complete the last name of a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    own: dict[str, Policy] = {}
    with suppress(FoldlineError):
        own = settings().user_policies()
    return [
        CompletionItem(f"{before}{comma}{name}", help=one.summary)
        for name, one in {**PRESETS, **own}.items()
        if name.startswith(last)
    ]


def _sessions(ctx: click.Context, incomplete: str) -> list[str]:
    async def ids() -> list[str]:
        store = open_store(ctx.params.get("store_url") or ctx.params.get("store") or settings().store)
        try:
            return [] if is_missing(store) else await store.ids(incomplete, MOST)
        finally:
            await store.close()

    try:
        return asyncio.run(ids())
    except (FoldlineError, OSError):
        return []
