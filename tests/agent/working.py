"""A host on a scripted model, and the events it emits, for tests of the agent."""

from __future__ import annotations

from contextlib import asynccontextmanager

from tests.support.live import Events

from foldline.agent.host import Host
from foldline.agent.options import HostOptions
from foldline.testing import Scripted


@asynccontextmanager
async def host_on(
    folder, answers=(), *, home=None, window=100_000, dialect="openai-chat", ask=None, store=None, **options
):
    """Open a host in a folder; `host.scripted` is its scripted model, `host.heard` its events."""
    work = folder / "work"
    work.mkdir(exist_ok=True)
    home = home or folder / "home"
    home.mkdir(exist_ok=True)
    model = answers if isinstance(answers, Scripted) else Scripted(answers, window=window, dialect=dialect)
    heard = Events()
    host_options = HostOptions(
        folder=work,
        home=home,
        window=model.window,
        store=store or f"sqlite:///{folder / 'sessions.db'}",
        **{"allow": ("*",), "provider": model, **options},
    )
    host = await Host.open(host_options, emit=heard.append, ask=ask)
    host.heard, host.scripted = heard, model
    try:
        yield host
    finally:
        await host.close()
