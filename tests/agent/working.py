"""A host at work on a scripted model, and what it said, for tests of the agent."""

from __future__ import annotations

from contextlib import asynccontextmanager

from tests.support.waiting import until

from foldline.agent.host import Host
from foldline.agent.options import HostOptions
from foldline.testing import Scripted

__all__ = ["Heard", "host_on", "until"]


class Heard(list):
    """The events that a host emitted."""

    def named(self, *names):
        return [event for event in self if event.name in names]


@asynccontextmanager
async def host_on(
    folder, answers=(), *, home=None, window=100_000, dialect="openai-chat", ask=None, store=None, **options
):
    """Open a host in a folder; `host.model_` is its scripted model, `host.heard` its events."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    own = home or folder / "home"
    own.mkdir(exist_ok=True)
    model = answers if isinstance(answers, Scripted) else Scripted(answers, window=window, dialect=dialect)
    heard = Heard()
    made = HostOptions(
        folder=work,
        home=own,
        window=model.window,
        store=store or f"sqlite:///{folder / 'sessions.db'}",
        **{"allow": ("*",), "provider": model, **options},
    )
    host = await Host.open(made, emit=heard.append, ask=ask)
    host.heard, host.scripted = heard, model
    try:
        yield host
    finally:
        await host.close()
