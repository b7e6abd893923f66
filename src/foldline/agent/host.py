"""The agent with its store and folder, behind `chat`, `run` and `rpc`."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit
from zlib import crc32

import msgspec

from foldline.agent.attachments import attach_references, text_of
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
from foldline.policies import CompactionSettings
from foldline.providers import Provider, Retrying, get, missing
from foldline.providers.access import unusable_certificates
from foldline.session.events import EVERY, Event, WarningGiven
from foldline.session.hooks import NOTE
from foldline.session.kept import kept_of
from foldline.session.links import SUBAGENTS, origin
from foldline.session.opening import open_with
from foldline.session.session import Session
from foldline.stores import SessionInfo, find_store
from foldline.stores.ids import find_session, short_ids

log = logging.getLogger("foldline")

OUTPUTS = Path(".foldline") / "outputs"  # in the home directory: full outputs of commands
HOW_TO_SET_A_MODEL = """\
No model is set. Name one, with its key in the environment:
  export ANTHROPIC_API_KEY=...   foldline chat --model anthropic:claude-sonnet-4-5
  export OPENAI_API_KEY=...      foldline chat --model openai:gpt-5.2
or your own server, without a key:
  foldline chat --model openai-compatible:NAME@http://127.0.0.1:8080/v1
`model = "..."` in ~/.foldline/settings.toml sets it permanently.
To try it without a model: foldline chat --demo"""


class Host:
    """One agent with its store, session, model and tools; made by `Host.open`, closed with `close`."""

    def __init__(self, options: HostOptions, *, emit: Emit, ask: FoldRequest | None) -> None:
        self.options = options
        self.home = options.home or expanded("~")
        self.settings = settings(home=self.home, folder=options.folder.resolve())
        self.emit = emit
        own = self.settings.agent
        self.workspace = Workspace(
            options.folder, others=(*own.folders, *options.folders), outputs=self.home / OUTPUTS
        )
        self.permissions = Permissions(
            allow=(*own.allow, *options.allow), deny=(*own.deny, *options.deny), ask=ask
        )
        self._requested_model = options.model  # by the user; otherwise a session keeps its own
        self.model = options.model or self.settings.model or ""
        self.usd = 0.0  # the known price of the replies since this host was opened
        self.session: Session
        self.agent: Agent
        self._provider: Provider | None = options.provider
        self._extra_tools = list(options.tools)
        self._servers = McpServers(self.settings.mcp)
        self._hooks = CommandHooks(self.settings.hooks, self.workspace.root)
        self.store = find_store(self.settings.store if options.store is None else options.store)

    @classmethod
    async def open(
        cls, options: HostOptions, *, emit: Emit = lambda _: None, ask: FoldRequest | None = None
    ) -> Self:
        """Open the store and the session; raises InputError, with how to set one, if no model is set."""
        host = cls(options, emit=emit, ask=ask)
        try:
            session = await host._session_id()
            await host._connect(session)
            tools, failures = await host._servers.open()
            host._extra_tools += tools
            for text in failures:
                emit(WarningGiven(kind="failed", text=text))
            await host._open_session(session)
        except BaseException:
            await host.close()
            raise
        return host

    async def close(self) -> None:
        """Close the session, the model and the store, unless the caller opened them."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._servers.close)
            if self.store is not self.options.store:
                stack.push_async_callback(self.store.close)
            if self._provider is not None and self._provider is not self.options.provider:
                stack.push_async_callback(self._provider.close)
            if hasattr(self, "session"):
                stack.push_async_callback(self.session.close)

    # ---- prompts

    async def prompt(self, text: str) -> TurnEnded:
        """Run a prompt, with the files and sessions that it refers to."""
        return await self.agent.run(text)

    async def _with_attachments(self, *words: str | Message) -> Prompt:
        attach = partial(attach_references, workspace=self.workspace, session=self.session)
        prompts = [await attach(part) if isinstance(part, str) else (part,) for part in words]
        return tuple(message for prompt in prompts for message in prompt)

    def interrupt(self) -> bool:
        """Stop the running turn and compaction, if any; the queue continues."""
        folding = self.session.cancel_compaction()
        return self.agent.interrupt() or folding

    # ---- sessions

    async def _session_id(self) -> str:
        if self.options.session is not None:
            return await self.find(self.options.session)
        newest = await self.sessions(limit=1) if self.options.newest else []
        return newest[0].id if newest else self.new_id()

    def new_id(self) -> str:
        """Return the id of a new session: its folder, the time and a random part."""
        return f"{self._prefix()}{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(2)}"

    def _prefix(self) -> str:
        root = self.workspace.root
        name = re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")[:24] or "root"
        return f"{name}-{crc32(str(root).encode()):08x}-"

    async def sessions(self, *, everywhere: bool = False, limit: int = 50) -> list[SessionInfo]:
        """Return the sessions of this folder (or of all), without those of sub-agents, the newest first."""
        prefix, found = self._prefix(), list[SessionInfo]()
        for info in sorted(await self.store.sessions(), key=lambda info: info.updated, reverse=True):
            if len(found) == limit:
                break
            if everywhere or info.id.startswith(prefix):
                link = await origin(self.store, info.id)
                found += [info] if link is None or link.how != "subagent" else []
        return found

    async def find(self, name: str) -> str:
        """Return the full id of the session that a part of it names; raises SessionNotFound."""
        return await find_session(self.store, name)

    async def short(self, session: str) -> str:
        """Return the shortest unique form of a session's id."""
        return (await short_ids(self.store))(session)

    async def resume(self, session: str) -> None:
        """Switch to another session, which may be new; the previous one is closed, unchanged."""
        self.check_idle()
        previous, before = self.session, (self.model, self._provider)
        try:
            await self._connect(session)
            await self._open_session(session)
        except BaseException:  # the previous one goes on, with its own model
            self.model, self._provider = before
            raise
        await previous.close()

    def check_idle(self) -> None:
        """Raise InputError during a turn."""
        if self.agent.busy:
            raise InputError("the agent is busy: wait for it, or interrupt it first")

    async def _open_session(self, session_id: str) -> None:
        assert self._provider is not None
        provider = self._provider
        toolbox = self._toolbox(lambda: self.session)
        session = open_with(
            self.settings,
            self.store,
            session_id,
            model=self.model if self.options.provider is None else None,
            policy=self.with_autocompact(self.settings.find_policy(self.options.policy)),
            window=self.options.window,
            dialect=provider.dialect,
            system=system_prompt(self.workspace, self.options.system),
            tools=toolbox.definitions(provider.dialect) or None,
        )
        await session.__aenter__()
        if SUBAGENTS in await session.live():  # left by a killed process: no sub-agent is running any more
            await session.note(NOTE, **{SUBAGENTS: ""})
        self.session = session
        self.agent = self._agent(session, toolbox, self._on_event, self._with_attachments)
        session.on(EVERY, self._on_event)
        self._hooks.watch(session)
        session.attach_files(lambda path: asyncio.to_thread(text_of, path, self.workspace))

    def _agent(self, session: Session, toolbox: Toolbox, emit: Emit, prepare: Prepare = as_prompt) -> Agent:
        assert self._provider is not None
        limits = self.settings.agent
        return Agent(
            session,
            self._provider,
            toolbox,
            emit=emit,
            prepare=prepare,
            steps=limits.steps,
            max_tokens=limits.max_tokens,
        )

    async def _model_of(self, session: str) -> str:
        """Return the requested model, else the one stored with a session, else the configured one.

        A stored remote address is not used: the session may have come from someone else.
        """
        if self._requested_model:
            return self._requested_model
        stored = (await kept_of(self.store, session)).model
        if ":" not in stored:
            return self.model
        host = urlsplit(stored.partition("@")[2]).hostname
        if host not in (None, "localhost", "127.0.0.1", "::1"):
            text = f"the session last used {stored}, which is used only if you name it: --model {stored}"
            self.emit(WarningGiven(kind="failed", text=text))
            return self.model
        return stored

    async def _connect(self, session: str) -> None:
        """Connect the model of a session, and close the previous one if it is another."""
        if self.options.provider is not None:
            return
        model, previous = await self._model_of(session), self._provider
        if previous is None or model != self.model:
            self._provider = connect(model, self.settings)
            self.model = model
            if previous is not None:
                await previous.close()

    def with_autocompact(self, policy: Policy) -> Policy:
        """Return a policy, disabled if the user turned auto-compaction off."""
        return policy if self.options.autocompact else CompactionSettings(enabled=False).over(policy)

    def _on_event(self, event: Event) -> None:
        if isinstance(event, ReplyEnded):
            self.usd += event.usd or 0.0
        self.emit(event)

    # ---- the model and its tools

    async def use_model(self, model: str, *, window: int | Window | None = None) -> None:
        """Switch to another model for all later requests; raises InputError if it cannot be used."""
        self.check_idle()
        provider, previous = connect(model, self.settings), self._provider
        tools = self.agent.tools.definitions(provider.dialect)
        await self.session.use_model(model, window=window, dialect=provider.dialect, tools=tools)
        self.model = self._requested_model = model
        self.options = msgspec.structs.replace(self.options, window=window)
        self._provider = self.agent.provider = provider
        if previous is not None and previous is not self.options.provider:
            await previous.close()

    @property
    def model_name(self) -> str:
        """The model's name, for display."""
        return self.model or (self._provider.name if self._provider is not None else "")

    def _toolbox(self, session: Callable[[], Session], *, nested: bool = False) -> Toolbox:
        if not (self.options.use_tools and self.settings.agent.tools):
            return Toolbox(())
        place = self.workspace.apart() if nested else self.workspace
        context = ContextTools(session)
        tools = [
            *(read.make(place), change.write(place), change.edit(place)),
            *(bash.make(place), search.grep(place, self.permissions.may_read), search.find(place)),
            todo.make(session),
            task(refuse_nested if nested else self._run_subagent),
            *context.all(),
            *self._extra_tools,
        ]
        return Toolbox(tools, self.permissions, workspace=place, deferred=context.deferred)

    async def _run_subagent(self, goal: str) -> str:
        """Run a sub-agent on a goal in a separate session; return its report."""
        child = await self.session.subagent(goal)
        try:
            async with child:
                agent = self._agent(child, self._toolbox(lambda: child, nested=True), self._on_subagent_event)
                ended = await agent.run(goal)
        finally:
            await asyncio.shield(self.session.finished(child.id))
        if ended.how in ("failed", "refused", "empty"):
            raise InputError(f"the sub-agent gave no answer: {ended.detail}")
        if ended.fell_short and ended.text:
            return f"{ended.text}\n\n[{ended.detail}]"
        return ended.text or f"The sub-agent returned no text ({ended.how})."

    def _on_subagent_event(self, event: Event) -> None:
        """Emit a sub-agent's calls, and count its price; its text is in its report."""
        if isinstance(event, CallStarted | CallEnded):
            self.emit(msgspec.structs.replace(event, tool=f"task: {event.tool}"))
        elif isinstance(event, ReplyEnded):
            self.usd += event.usd or 0.0


async def refuse_nested(_goal: str) -> str:
    """Refuse a sub-agent of a sub-agent."""
    raise InputError("a sub-agent cannot start sub-agents: do the work yourself")


def connect(model: str, settings: Settings) -> Provider:
    """Return a provider that retries transient failures.

    Raises InputError, with what to do, if the model is not set or cannot be used.
    """
    if not model:
        raise InputError(HOW_TO_SET_A_MODEL)
    if why := missing(model):
        raise InputError(f"{model} cannot be used: {why} (`foldline chat --demo` needs no model)")
    if problem := unusable_certificates():
        raise InputError(problem)
    return Retrying(get(model, info=settings.model_info(model)))
