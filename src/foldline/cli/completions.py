"""Shell completion of parameters: names of policies, ids of stored sessions, agents, files.

The flag and the metavar of a parameter decide what completes it; types such as a choice or a path complete
themselves. A mistake in the settings or an unreadable store completes nothing: a shell cannot show errors.
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

MAX_SESSIONS: Final = 100
_FILES: Final = {"FILE", "FILE.toml", "SOURCE"}
_KNOWN: Final = {"POLICY", "ID", "AGENT", *_FILES}


def completion_for(flags: Sequence[str], metavar: str) -> Complete | None:
    """Return the completion of a parameter with these flags and metavar; None to leave it to its type."""
    kinds = set(metavar.strip("[].").split("|"))
    if "--policy" in flags or kinds >= {"NAME", "FILE.toml"}:
        kinds = {"POLICY", *kinds}
    if not kinds & _KNOWN:
        return None

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        del param
        items: Items = []
        if "POLICY" in kinds:
            items += _policies(incomplete)
        if "ID" in kinds:
            items += _matching(_sessions(ctx, incomplete), incomplete)
        if "AGENT" in kinds:
            items += _matching([*NAMES, *AGENTS], incomplete)
        if kinds & _FILES:
            items.append(CompletionItem(incomplete, type="file"))
        return items

    return complete


def _matching(names: Iterable[str], incomplete: str) -> Items:
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def _policies(incomplete: str) -> Items:
    """Complete the last name of a comma-separated list."""
    before, comma, last = incomplete.rpartition(",")
    own: dict[str, Policy] = {}
    with suppress(FoldlineError):
        own = settings().user_policies()
    return [
        CompletionItem(f"{before}{comma}{name}", help=policy.summary)
        for name, policy in {**PRESETS, **own}.items()
        if name.startswith(last)
    ]


def _sessions(ctx: click.Context, incomplete: str) -> list[str]:
    async def ids() -> list[str]:
        store = open_store(ctx.params.get("store_url") or ctx.params.get("store") or settings().store)
        try:
            return [] if is_missing(store) else await store.ids(incomplete, MAX_SESSIONS)
        finally:
            await store.close()

    try:
        return asyncio.run(ids())
    except (FoldlineError, OSError):
        return []
