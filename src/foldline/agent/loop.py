"""The loop: a prompt, a reply, its tool calls, and again until the model needs the user.

All that keeps it inside the window is the session's: `context` before each request, `overflowed` after one
that did not fit, `append` for all that is said.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from foldline import ContextMessages, Message, Said, Session, ToolCall, ToolResult
from foldline.agent import events, replies
from foldline.agent.events import CallEnded, CallStarted, OverflowRetried, PromptTaken, TurnEnded, replied
from foldline.agent.replies import Prepare, Words
from foldline.agent.tools.toolbox import Toolbox
from foldline.errors import FoldlineError, InputError, ProviderError
from foldline.providers import Provider, Reply
from foldline.session.events import Event

Emit = Callable[[Event], None]
STEPS = 500  # replies to one prompt, after which the user is asked


class Agent:
    """An agent at work; one `run` at a time. `emit` gets all that happens, `words` says an error."""

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
        self.session = session
        self.provider = provider
        self.tools = tools
        self.queue: deque[Words] = deque()
        self.busy = False  # from the moment a prompt is taken until nothing is left to be done
        self._emit = emit
        self._prepare = prepare
        self._steps = steps
        self._most, self._words = max_tokens, words
        self._work: asyncio.Task[TurnEnded] | None = None
        self._stopping = False

    async def run(self, *prompt: str | Message) -> TurnEnded:
        """Append a prompt and work until the model needs the user, then on the queue; return how it ended.

        What a failed turn left in the queue goes first; without a prompt it goes on where the session stands.
        What a provider or the window refuses is never raised: the turn has failed then, and all is stored.
        """
        if self.busy:
            raise InputError("the agent is at work: queue the prompt, or interrupt it first")
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
        """Stop the turn under way, if there is one; what is whole stays, and queued prompts go on."""
        if self.busy:
            self._stopping = True
            if self._work is not None:
                self._work.cancel()
        return self.busy

    async def _take_next(self, own: Words = ()) -> bool:
        """Append the next prompt that can be sent; raises what is wrong with `own` where none is left."""
        while self.queue:
            words = self.queue.popleft()
            try:
                prompt = await self._prepare(*words)
                entries = await replies.behind(self.session, prompt, begun=bool(self.session.leaf))
            except FoldlineError as error:
                if words is own and not self.queue:
                    raise
                self._emit(TurnEnded(how="failed", detail=self._words(error)))
                continue
            self._emit(PromptTaken(entry=entries[0], text=prompt[0].text, queued=words is not own))
            return True
        return False

    async def _turn(self) -> TurnEnded:
        """Work in a task of its own, so that an interrupt ends it alone."""
        self._work = asyncio.ensure_future(self._until_answered())
        if self._stopping:
            self._work.cancel()
        try:
            return await self._work
        except asyncio.CancelledError:
            if not self._stopping:
                raise
            return TurnEnded(how="interrupted")
        except FoldlineError as error:
            return TurnEnded(how="failed", detail=self._words(error))
        finally:
            self._work, self._stopping = None, False

    async def _until_answered(self) -> TurnEnded:
        await self._answer_open()
        for _ in range(self._steps):
            reply, calls = await self._reply()
            if not (calls or reply.reason == replies.PAUSED) or reply.stop == "refused":
                await self._answer_open()
                return replies.ending(reply, waiting=(await self.session.standing()).state == "waiting")
            if calls:
                await self._answer(calls)
        return TurnEnded(how="steps", detail=f"{self._steps} replies to one prompt: say whether to go on")

    # ---- the model

    async def _reply(self) -> tuple[Reply, tuple[ToolCall, ...]]:
        """Ask until a reply is stored; return it with its calls. What does not fit is folded first.

        A reply in which nothing is said is not stored at first: the model is asked once more.
        """
        messages = await self.session.context()
        empty = False
        while True:
            try:
                reply = await self._asked(messages)
                if replies.says_nothing(reply) and not empty:
                    empty = True
                    for event in replies.EMPTY:
                        self._emit(event)
                    continue
                if reply.stop != "length" or (again := await self._cut_short(reply, messages)) is None:
                    break
                messages = again
            except ProviderError as error:
                messages = await self.session.overflowed(error, view=messages, max_tokens=self._most)
                self._emit(OverflowRetried(why=str(error)))
        entries = await replies.stored(self.session, reply.native, lambda: self._late(reply))
        said = [e for e in await self.session.store.entries(self.session.id, entries) if isinstance(e, Said)]
        self._emit(replied(reply, entries[-1] if entries else "", self.session.setup.info.price))
        return reply, tuple(call for entry in said for call in entry.message.calls)

    def _late(self, reply: Reply) -> Message:
        """Tell of a reply that is not gone on with, for what it cost; return it as a note."""
        self._emit(replied(reply, "", self.session.setup.info.price))
        return events.late_reply(reply)

    async def _cut_short(self, reply: Reply, messages: ContextMessages) -> ContextMessages | None:
        """Return the folded messages to ask with again where the window cut a reply short; None otherwise."""
        try:
            again = await self.session.overflowed(reply.native, view=messages, max_tokens=reply.tokens_asked)
        except FoldlineError:
            return None  # its own limit did, or nothing can be done
        self._emit(OverflowRetried(why="the window cut the reply short"))
        return again

    async def _asked(self, messages: ContextMessages) -> Reply:
        return await replies.ask(
            self.session, self.provider, messages, max_tokens=self._most, emit=self._emit
        )

    # ---- the tools

    async def _answer_open(self) -> None:
        """Answer the calls that an earlier run left open: nobody knows how they ended."""
        if still_open := (await self.session.standing()).calls:
            await self.session.append(
                replies.results_of(replies.unfinished(call, replies.LEFT) for call in still_open)
            )

    async def _answer(self, calls: Sequence[ToolCall]) -> None:
        """Run the calls of a reply and append their results in one commit, also when they are interrupted."""
        done: dict[str, ToolResult] = {}
        try:
            for batch in self.tools.batches(calls):
                await asyncio.gather(*(self._call(call, done) for call in batch))
        finally:
            answers = [done.get(call.id) or replies.unfinished(call.id) for call in calls]
            results = replies.results_of(answers)
            await replies.to_its_end(replies.stored(self.session, results, lambda: results))
        await self.session.track_files(**self.tools.touched())
        await self.tools.settle()
        await self._answer_open()  # of a reply that the model went back to

    async def _call(self, call: ToolCall, done: dict[str, ToolResult]) -> None:
        given = call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments}
        self._emit(CallStarted(id=call.id, tool=call.name, arguments=given))
        result = done[call.id] = await self.tools.run(call)
        self._emit(CallEnded(id=call.id, tool=call.name, text=result.text, failed=result.is_error))
