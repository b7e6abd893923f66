"""The agent at work, as its faces use it: one store, one folder; session, model and policy can change.

`chat`, `run` and `rpc` differ in how they show it and how they ask.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import ssl
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit
from zlib import crc32

import msgspec

from foldline.agent.attachments import attached, text_of
from foldline.agent.events import CallEnded, CallStarted, ReplyEnded, TurnEnded
from foldline.agent.hooks import CommandHooks
from foldline.agent.loop import Agent, Emit
from foldline.agent.options import HostOptions
from foldline.agent.permissions import FoldRequest, Permissions
from foldline.agent.prompt import system_prompt
from foldline.agent.replies import Prepare, Prompt, as_prompt
from foldline.agent.servers import McpServers
from foldline.agent.tools import bash, change, read, search, todo
from foldline.agent.tools.context import ContextTools, task
from foldline.agent.tools.toolbox import Toolbox
from foldline.agent.workspace import Workspace
from foldline.config import Settings, settings
from foldline.core.decide.policy import Policy
from foldline.core.log.messages import Message
from foldline.core.measure.window import Window
from foldline.errors import InputError
from foldline.files import expanded
from foldline.providers import Provider, Retrying, get, missing
from foldline.session.events import EVERY, Event, WarningGiven
from foldline.session.kept import kept_of
from foldline.session.links import SUBAGENTS, origin
from foldline.session.opening import open_with
from foldline.session.session import Session
from foldline.session.state import NOTE
from foldline.stores import SessionInfo, find_store
from foldline.stores.ids import find_session, short_ids

log = logging.getLogger("foldline")

OUTPUTS = Path(".foldline") / "outputs"  # in the home directory: whole outputs of commands
HOW_TO_SET_A_MODEL = """\
No model is set. Name one, with its key in the environment:
  export ANTHROPIC_API_KEY=...   foldline chat --model anthropic:claude-sonnet-4-5
  export OPENAI_API_KEY=...      foldline chat --model openai:gpt-5.2
or a server of your own, without a key:
  foldline chat --model openai-compatible:NAME@http://127.0.0.1:8080/v1
`model = "..."` in ~/.foldline/settings.toml sets it for good.
To see how it works without any model: foldline chat --demo"""


class Host:
    """One agent and all that it works with; made by `Host.open`, closed with `close`."""

    def __init__(self, options: HostOptions, *, emit: Emit, ask: FoldRequest | None) -> None:
        self.options = options
        self.home = options.home or expanded("~")
        self.settings = settings(home=self.home, here=options.folder.resolve())
        self.emit = emit
        own = self.settings.agent
        self.workspace = Workspace(
            options.folder, others=(*own.folders, *options.folders), outputs=self.home / OUTPUTS
        )
        self.permissions = Permissions(
            allow=(*own.allow, *options.allow), deny=(*own.deny, *options.deny), ask=ask
        )
        self._named = options.model  # by the user; else a session goes on with its own
        self.model = options.model or self.settings.model or ""
        self.usd = 0.0  # what was spent on replies since this host was opened, as far as prices are known
        self.session: Session
        self.agent: Agent
        self._provider: Provider | None = options.provider
        self._more_tools = list(options.tools)
        self._servers = McpServers(self.settings.mcp)
        self._hooks = CommandHooks(self.settings.hooks, self.workspace.root)
        self.store = find_store(self.settings.store if options.store is None else options.store)

    @classmethod
    async def open(
        cls, options: HostOptions, *, emit: Emit = lambda _: None, ask: FoldRequest | None = None
    ) -> Self:
        """Open the store and the session; raises InputError, with how to set a model, where none is."""
        host = cls(options, emit=emit, ask=ask)
        try:
            session = await host._chosen()
            await host._connect(session)
            await host._start_servers()
            await host._go_on(session)
        except BaseException:
            await host.close()
            raise
        return host

    async def _start_servers(self) -> None:
        """Offer the tools of the MCP servers; one that does not come up is warned of."""
        tools, failed = await self._servers.open()
        self._more_tools += tools
        for text in failed:
            self.emit(WarningGiven(kind="failed", text=text))

    async def close(self) -> None:
        """Close the session, the model and the store, each only where it was opened here."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._servers.close)
            if self.store is not self.options.store:
                stack.push_async_callback(self.store.close)
            if self._provider is not None and self._provider is not self.options.provider:
                stack.push_async_callback(self._provider.close)
            if hasattr(self, "session"):
                stack.push_async_callback(self.session.close)

    # ---- talking

    async def prompt(self, text: str) -> TurnEnded:
        """Have the agent work on a prompt, with the files and sessions that it refers to."""
        return await self.agent.run(text)

    async def queue(self, text: str) -> None:
        """Leave a prompt for when the turn under way has ended."""
        self.agent.queue.append((text,))

    async def _with_attachments(self, *words: str | Message) -> Prompt:
        attach = partial(attached, workspace=self.workspace, session=self.session)
        parts = [await attach(one) if isinstance(one, str) else (one,) for one in words]
        return tuple(message for part in parts for message in part)

    def interrupt(self) -> bool:
        """Stop the turn and the compaction behind a reply, if there are any; the queue goes on."""
        folding = self.session.cancel_compaction()
        return self.agent.interrupt() or folding

    # ---- sessions

    async def _chosen(self) -> str:
        if self.options.session is not None:
            return await self.find(self.options.session)
        newest = await self.sessions(limit=1) if self.options.newest else []
        return newest[0].id if newest else self.new_id()

    def new_id(self) -> str:
        """Return the id of a new session: the folder, when, and something that nobody else has."""
        return f"{self._prefix()}{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(2)}"

    def _prefix(self) -> str:
        root = self.workspace.root
        name = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")[:24] or "root"
        return f"{name}-{crc32(str(root).encode()):08x}-"

    async def sessions(self, *, everywhere: bool = False, limit: int = 50) -> list[SessionInfo]:
        """Return the sessions of this folder (or of all), none of a sub-agent, the newest first."""
        own, found = self._prefix(), list[SessionInfo]()
        for info in sorted(await self.store.sessions(), key=lambda info: info.updated, reverse=True):
            if len(found) == limit:
                break
            if (everywhere or info.id.startswith(own)) and not await self._is_subagent(info.id):
                found.append(info)
        return found

    async def _is_subagent(self, session: str) -> bool:
        link = await origin(self.store, session)
        return link is not None and link.how == "subagent"

    async def find(self, name: str) -> str:
        """Return the full id of a session from a part of it; raises SessionNotFound."""
        return await find_session(self.store, name)

    async def short(self, session: str) -> str:
        """Return as much of a session's id as names it."""
        return (await short_ids(self.store))(session)

    async def resume(self, session: str) -> None:
        """Go on with another session, a new one too; the one before is closed and stays as it is."""
        self.check_idle()
        before = self.session
        await self._connect(session)
        await self._go_on(session)
        await before.close()

    def check_idle(self) -> None:
        """Raise InputError while a turn is under way."""
        if self.agent.busy:
            raise InputError("the agent is at work: wait for it, or interrupt it first")

    async def _go_on(self, session: str) -> None:
        assert self._provider is not None
        provider = self._provider
        toolbox = self._toolbox(lambda: self.session)
        opened = open_with(
            self.settings,
            self.store,
            session,
            model=self.model if self.options.provider is None else None,
            policy=self.as_asked(self.settings.find_policy(self.options.policy)),
            window=self.options.window,
            dialect=provider.dialect,
            system=system_prompt(self.workspace, self.options.system),
            tools=toolbox.definitions(provider.dialect) or None,
        )
        await opened.__aenter__()
        self.session = opened
        self.agent = self._agent(opened, toolbox, self._heard, self._with_attachments)
        opened.on(EVERY, self._heard)
        self._hooks.watch(opened)
        if SUBAGENTS in await opened.live():  # left by a process that was killed: none of them runs any more
            await opened.note(NOTE, **{SUBAGENTS: ""})
        opened.attach_files(lambda path: asyncio.to_thread(text_of, path, self.workspace))

    def _agent(self, session: Session, toolbox: Toolbox, emit: Emit, prepare: Prepare = as_prompt) -> Agent:
        assert self._provider is not None
        own = self.settings.agent
        return Agent(
            session,
            self._provider,
            toolbox,
            emit=emit,
            prepare=prepare,
            steps=own.steps,
            max_tokens=own.max_tokens,
        )

    async def _model_of(self, session: str) -> str:
        """Return the model that the user named, else the one that is stored with a session, else the usual.

        A stored address elsewhere is not asked: the session may have come from somebody else.
        """
        if self._named:
            return self._named
        kept = (await kept_of(self.store, session)).model
        if ":" not in kept:
            return self.model
        host = urlsplit(kept.partition("@")[2]).hostname
        if host not in (None, "localhost", "127.0.0.1", "::1"):
            text = f"the session went on with {kept}, which is not asked unless you name it: --model {kept}"
            self.emit(WarningGiven(kind="failed", text=text))
            return self.model
        return kept

    async def _connect(self, session: str) -> None:
        """Have the model at hand that a session goes on with; the one before is closed if it is another."""
        if self.options.provider is not None:
            return
        model, before = await self._model_of(session), self._provider
        if before is None or model != self.model:
            self._provider = connected(model, self.settings)
            self.model = model
            if before is not None:
                await before.close()

    def as_asked(self, policy: Policy) -> Policy:
        """Return a policy, without folds that nobody asks for where the user wants none."""
        return policy if self.options.autocompact else msgspec.structs.replace(policy, enabled=False)

    def _heard(self, event: Event) -> None:
        if isinstance(event, ReplyEnded):
            self.usd += event.usd or 0.0
        self.emit(event)

    # ---- the model and its tools

    async def use_model(self, model: str, *, window: int | Window | None = None) -> None:
        """Go on with another model from the next request on; raises InputError where it cannot be asked."""
        self.check_idle()
        provider, before = connected(model, self.settings), self._provider
        tools = self.agent.tools.definitions(provider.dialect)
        await self.session.use_model(model, window=window, dialect=provider.dialect, tools=tools)
        self.model, self._named = model, model
        self.options = msgspec.structs.replace(self.options, window=window)
        self._provider = self.agent.provider = provider
        if before is not None and before is not self.options.provider:
            await before.close()

    @property
    def model_name(self) -> str:
        """The model's name, for people."""
        return self.model or (self._provider.name if self._provider is not None else "")

    def with_policy(self, policy: str) -> HostOptions:
        """Return the options with another policy, for the sessions opened from now on."""
        return msgspec.structs.replace(self.options, policy=policy)

    def _toolbox(self, session: Callable[[], Session], *, nested: bool = False) -> Toolbox:
        if not (self.options.use_tools and self.settings.agent.tools):
            return Toolbox(())
        place = self.workspace
        context = ContextTools(session)
        tools = [
            *(read.make(place), change.write(place), change.edit(place)),
            *(bash.make(place), search.grep(place, self.permissions.may_read), search.find(place)),
            todo.make(session),
            task(refuse_nested if nested else self._delegated),
            *context.all(),
            *self._more_tools,
        ]
        return Toolbox(tools, self.permissions, workspace=place, settle=context.settle)

    async def _delegated(self, goal: str) -> str:
        """Have a sub-agent work on a goal in a session of its own; return its report."""
        child = await self.session.subagent(goal)
        try:
            async with child:
                agent = self._agent(child, self._toolbox(lambda: child, nested=True), self._heard_below)
                ended = await agent.run(goal)
        finally:
            await asyncio.shield(self.session.finished(child.id))
        if ended.how in ("failed", "refused", "empty"):
            raise InputError(f"the sub-agent gave no answer: {ended.detail}")
        if ended.fell_short and ended.text:
            return f"{ended.text}\n\n[{ended.detail}]"
        return ended.text or f"The sub-agent said nothing ({ended.how})."

    def _heard_below(self, event: Event) -> None:
        """Tell of a sub-agent's calls, and count what it costs; its words are its report's."""
        if isinstance(event, CallStarted | CallEnded):
            self.emit(msgspec.structs.replace(event, tool=f"task: {event.tool}"))
        elif isinstance(event, ReplyEnded):
            self.usd += event.usd or 0.0


async def refuse_nested(_goal: str) -> str:
    """Refuse a sub-agent of a sub-agent."""
    raise InputError("a sub-agent cannot have sub-agents: do it yourself")


def check_model(model: str | None) -> None:
    """Raise InputError, with how to set one, where no model can be asked."""
    if not model:
        raise InputError(HOW_TO_SET_A_MODEL)
    if why := missing(model):
        raise InputError(f"{model} cannot be asked: {why} (`foldline chat --demo` needs no model)")
    if certificates := os.environ.get("SSL_CERT_FILE"):
        try:
            ssl.create_default_context(cafile=certificates)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"SSL_CERT_FILE={certificates} cannot be used: {reason}; correct or unset it"
            ) from error


def connected(model: str, known: Settings) -> Provider:
    """Return a model, asked again after transient failures; raises InputError where none can be."""
    check_model(model)
    return Retrying(get(model, info=known.model_info(model)))
