"""The loop: a prompt, a reply, its tool calls, and again until the model needs the user.

The session keeps it inside the window: `context` before each request, `overflowed` after one that did not
fit, `append` for every message.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from foldline import ContextMessages, Message, Said, Session, ToolCall, ToolResult
from foldline.agent import events, replies
from foldline.agent.events import CallEnded, CallStarted, PromptTaken, TurnEnded, reply_event
from foldline.agent.replies import Prepare, Words
from foldline.agent.tools.toolbox import Toolbox
from foldline.errors import FoldlineError, InputError, ProviderError
from foldline.providers import Provider, Reply
from foldline.session.events import Event

Emit = Callable[[Event], None]
STEPS = 500  # replies to one prompt, after which the user is asked


class Agent:
    """An agent; one `run` at a time. `emit` gets every event, `words` turns an error into text."""

    def __init__(
        self,
        session: Session,
        provider: Provider,
        tools: Toolbox,
        *,
        emit: Emit = lambda _: None,
        prepare: Prepare = replies.as_prompt,
        steps: int = STEPS,
        max_tokens: int | None = None,
        words: Callable[[Exception], str] = str,
    ) -> None:
        self.session, self.provider, self.tools = session, provider, tools
        self.queue: deque[Words] = deque()
        self.busy = False  # from taking a prompt until its turn and the queue are finished
        self._emit = emit
        self._prepare, self._steps = prepare, steps
        self._max_tokens, self._error_text = max_tokens, words
        self.turn: asyncio.Task[TurnEnded] | None = None  # the running one
        self._stopping = False

    async def run(self, *prompt: str | Message) -> TurnEnded:
        """Append a prompt and work until the model needs the user, then on the queue; return how it ended.

        Prompts that a failed turn left in the queue go first; without a prompt the session is continued.
        Errors of the provider or the window are not raised: the turn ends as failed.
        """
        if self.busy:
            raise InputError("the agent is busy: queue the prompt, or interrupt it first")
        self.busy = True
        try:
            if prompt:
                self.queue.append(prompt)
                await self._take_next(prompt)
            while True:
                ended = await self._turn()
                self._emit(ended)
                if ended.how == "failed" or not await self._take_next():
                    return ended
        finally:
            self.busy = self._stopping = False

    def interrupt(self) -> bool:
        """Stop the running turn, if any; complete messages stay, and queued prompts continue."""
        if self.busy:
            self._stopping = True
            if self.turn is not None:
                self.turn.cancel()
        return self.busy

    async def _take_next(self, own: Words = ()) -> bool:
        """Append the next valid prompt of the queue; an error of `own` is raised if no other is left."""
        while self.queue:
            words = self.queue.popleft()
            try:
                prompt = await self._prepare(*words)
                entries = await replies.append_after_others(
                    self.session, prompt, exists=bool(self.session.leaf)
                )
            except FoldlineError as error:
                if words is own and not self.queue:
                    raise
                self._emit(TurnEnded(how="failed", detail=self._error_text(error)))
                continue
            self._emit(PromptTaken(entry=entries[0], text=prompt[0].text, queued=words is not own))
            return True
        return False

    async def _turn(self) -> TurnEnded:
        """Run a turn in its own task, so that an interrupt cancels nothing else."""
        self.turn = asyncio.ensure_future(self._until_answered())
        if self._stopping:
            self.turn.cancel()
        try:
            return await self.turn
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            return TurnEnded(how="interrupted")
        except FoldlineError as error:
            return TurnEnded(how="failed", detail=self._error_text(error))
        finally:
            self.turn, self._stopping = None, False

    async def _until_answered(self) -> TurnEnded:
        await self._answer_open_calls()
        for _ in range(self._steps):
            reply, calls = await self._reply()
            if not (calls or reply.reason == replies.PAUSED) or reply.stop == "refused":
                await self._answer_open_calls()
                return replies.ending(reply, waiting=(await self.session.standing()).state == "waiting")
            if calls:
                await self._run_calls(calls)
        return TurnEnded(how="steps", detail=f"{self._steps} replies to one prompt: say whether to continue")

    # ---- the model

    async def _reply(self) -> tuple[Reply, tuple[ToolCall, ...]]:
        """Ask until a reply is stored; return it with its calls. A request that does not fit is folded first.

        After an empty reply the model is asked once more.
        """
        messages = await self.session.context()
        empty = False
        while True:
            try:
                reply = await replies.ask(
                    self.session, self.provider, messages, max_tokens=self._max_tokens, emit=self._emit
                )
                if replies.is_empty(reply) and not empty:
                    empty = True
                    for event in replies.EMPTY:
                        self._emit(event)
                    continue
                if reply.stop != "length" or (folded := await self._after_overflow(reply, messages)) is None:
                    break
                messages = folded
            except ProviderError as error:
                messages = await self.session.overflowed(error, view=messages, max_tokens=self._max_tokens)
                for event in replies.asked_again(str(error)):
                    self._emit(event)
        entries = await replies.store(self.session, reply.native, lambda: self._late(reply))
        said = [e for e in await self.session.store.entries(self.session.id, entries) if isinstance(e, Said)]
        self._emit(reply_event(reply, entries[-1] if entries else "", self.session.setup.info.price))
        return reply, tuple(call for entry in said for call in entry.message.calls)

    def _late(self, reply: Reply) -> Message:
        """Emit a reply that came too late, for its price; return it as a note."""
        self._emit(reply_event(reply, "", self.session.setup.info.price))
        return events.late_reply(reply)

    async def _after_overflow(self, reply: Reply, messages: ContextMessages) -> ContextMessages | None:
        """Return folded messages for another request if the window cut the reply short, else None."""
        try:
            folded = await self.session.overflowed(reply.native, view=messages, max_tokens=reply.tokens_asked)
        except FoldlineError:
            return None  # its own token limit cut it, or nothing can be folded
        for event in replies.asked_again("the window cut the reply short"):
            self._emit(event)
        return folded

    # ---- the tools

    async def _answer_open_calls(self) -> None:
        """Answer calls that an earlier run left open with an error."""
        if open_calls := (await self.session.standing()).calls:
            await self.session.append(
                replies.results_of(replies.unfinished(call, replies.ABANDONED) for call in open_calls)
            )

    async def _run_calls(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls of a reply and append their results in one commit, even if interrupted."""
        results: dict[str, ToolResult] = {}
        try:
            for batch in self.tools.batches(calls):
                await asyncio.gather(*(self._call(call, results) for call in batch))
        finally:
            message = replies.results_of(
                results.get(call.id) or replies.unfinished(call.id) for call in calls
            )
            await replies.run_shielded(replies.store(self.session, message, lambda: message))
        await self.session.track_files(**self.tools.touched())
        await self.tools.settle()
        await self._answer_open_calls()  # of a reply that the model rewound to

    async def _call(self, call: ToolCall, results: dict[str, ToolResult]) -> None:
        arguments = call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments}
        self._emit(CallStarted(id=call.id, tool=call.name, arguments=arguments))
        result = results[call.id] = await self.tools.run(call)
        self._emit(CallEnded(id=call.id, tool=call.name, text=result.text, failed=result.is_error))
