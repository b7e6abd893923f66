"""The visible conversation: the newest part of the log, folded messages dimmed, new ones live."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from textual.containers import VerticalScroll
from textual.widget import Widget

from foldline.agent.events import (
    CallEnded,
    CallStarted,
    PromptTaken,
    ReplyEnded,
    ReplyRestarted,
    TextStreamed,
    ThinkingStreamed,
    provider_compaction_text,
)
from foldline.core.cut.edits import summary_of
from foldline.core.log.entries import Compacted, Entry, Pruned, Said
from foldline.core.log.log import undone
from foldline.session.events import (
    CompactionDone,
    Event,
    NothingDone,
    ProviderCompacted,
    PruneDone,
    Struck,
    SummaryStreamed,
)
from foldline.session.recall import HIDDEN
from foldline.tui.blocks import (
    Block,
    BoundaryBlock,
    CallBlock,
    NoteBlock,
    PromptBlock,
    ReplyBlock,
    SummaryBlock,
)

if TYPE_CHECKING:
    from foldline.session.session import Session

SHOWN = 120  # entries shown when a session is opened; /recall finds the others


class Transcript(VerticalScroll, can_focus=False):
    """The blocks of one session; it follows the newest unless the user has scrolled up."""

    DEFAULT_CSS = """
    Transcript { height: 1fr; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[str, CallBlock] = {}
        self._reply: ReplyBlock | None = None
        self._summary: SummaryBlock | None = None
        self._entry = ""  # of the reply whose calls are running

    # ---- stored entries

    async def load(self, session: Session) -> None:
        """Show the newest part of a session's path."""
        path = [entry async for entry in session.store.path(session.id)]
        self._calls, self._reply, self._summary = {}, None, None
        shown = path[-SHOWN:]
        blocks: list[Widget] = []
        if len(path) > len(shown):
            blocks.append(NoteBlock(f"{len(path) - len(shown)} earlier entries: `/recall` finds them."))
        lifted = undone(path)
        for entry in shown:
            position = _position(blocks, entry)
            blocks[position:position] = self._blocks(entry, lifted=entry.id in lifted)
        async with self.batch():  # the old blocks stay in view until the new ones are there
            await self.remove_children()
            await self.mount(*blocks)
            await self.dim(session)
        self.anchor()

    def _blocks(self, entry: Entry, *, lifted: bool = False) -> Iterable[Widget]:
        match entry:
            case Said():
                yield from self._message_blocks(entry)
            case Compacted():
                page = entry.checkpoint
                yield BoundaryBlock(entry.receipt, page.summary, page.number, entry.id, lifted=lifted)
            case Pruned():
                yield BoundaryBlock(entry.receipt, summary_of(entry), 0, entry.id, lifted=lifted)
            case _:
                pass

    def _message_blocks(self, entry: Said) -> Iterable[Widget]:
        message = entry.message
        if message.is_prompt:
            yield PromptBlock(message.text, entry.id)
        elif message.role == "assistant" and message.text.strip():
            yield ReplyBlock(message.text, entry.id)
        for call in message.calls:
            arguments = call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments}
            block = self._calls[call.id] = CallBlock(call.name, arguments, entry.id)
            yield block
        for result in message.results:
            if result.call_id in self._calls:
                self._calls[result.call_id].show_answer(result.text, failed=result.is_error)

    async def dim(self, session: Session) -> None:
        """Dim the messages that the model no longer sees."""
        infos = await session.entries()
        folded = {info.entry for info in infos if info.how in HIDDEN}
        for block in self.query(Block):
            block.set_class(block.entry in folded, "folded")

    # ---- events

    async def show(self, event: Event, session: Session) -> None:
        """Show an event of the agent or the session."""
        match event:
            case PromptTaken():
                await self.mount(PromptBlock(event.text, event.entry))
            case TextStreamed():
                await (await self._open_reply()).write(event.text)
            case ThinkingStreamed():
                (await self._open_reply()).think(event.text)
            case ReplyRestarted():
                await self._drop_reply()
            case ReplyEnded():
                await self._finish_reply(event)
            case CallStarted():
                block = self._calls[event.id] = CallBlock(event.tool, event.arguments, self._entry)
                await self.mount(block)
            case CallEnded():
                if event.id in self._calls:
                    self._calls[event.id].show_answer(event.text, failed=event.failed)
            case SummaryStreamed():
                await self._show_summary(event)
            case NothingDone() | Struck():
                await self.drop_summary()
            case CompactionDone() | PruneDone():
                await self.drop_summary()
                await self._show_boundary(event, session)
            case ProviderCompacted():
                await self.note(f"{provider_compaction_text(event)} /undo reverts it.")
                await self.dim(session)
            case _:
                return

    async def _open_reply(self) -> ReplyBlock:
        if self._reply is None:
            self._reply = ReplyBlock()
            await self.mount(self._reply)
        return self._reply

    async def _show_summary(self, event: SummaryStreamed) -> None:
        if event.anew or self._summary is None:
            await self.drop_summary()
            self._summary = SummaryBlock()
            await self.mount(self._summary)
        self._summary.write(event.text)

    async def drop_summary(self) -> None:
        """Remove the summary that was being written."""
        block, self._summary = self._summary, None
        if block is not None:
            await block.remove()

    async def _drop_reply(self) -> None:
        reply, self._reply = self._reply, None
        if reply is not None:
            await reply.finish(reply.text)
            await reply.remove()

    async def _finish_reply(self, event: ReplyEnded) -> None:
        self._entry = event.entry
        if not event.text.strip():
            await self._drop_reply()
            return
        reply = await self._open_reply()
        self._reply, reply.entry = None, event.entry
        await reply.finish(event.text)

    async def end(self) -> None:
        """End a turn: remove a reply that was not stored, and mark running calls as stopped."""
        for block in self._calls.values():
            block.stop()
        await self._drop_reply()
        await self.drop_summary()

    async def _show_boundary(self, event: CompactionDone | PruneDone, session: Session) -> None:
        entry = await session.store.entry(session.id, event.entry)
        if isinstance(entry, Compacted | Pruned):
            blocks = list(self.children)
            position = _position(blocks, entry)
            before = blocks[position] if position < len(blocks) else None
            await self.mount(*self._blocks(entry), before=before)
        await self.dim(session)

    async def note(self, text: str, kind: str = "") -> None:
        """Add a note at the end: the result of a command, or (`kind`) a warning or an error."""
        await self.mount(NoteBlock(text, kind))

    def page(self, pages: int) -> None:
        """Scroll by pages; at the end it follows new blocks again."""
        self.release_anchor()
        self.scroll_relative(y=pages * max(1, self.size.height - 2), animate=False)
        if self.scroll_target_y >= self.max_scroll_y:
            self.anchor()

    def open_calls(self, *, opened: bool) -> None:
        """Open or close every tool call."""
        for block in self.query(CallBlock):
            block.toggle(opened=opened)


def _position(blocks: Sequence[Widget], entry: Entry) -> int:
    """Return where to insert the blocks of an entry: a compaction at its cut, all others at the end."""
    first = entry.first_kept if isinstance(entry, Compacted) else None
    cuts = (
        number for number, block in enumerate(blocks) if isinstance(block, Block) and block.entry == first
    )
    return next(cuts, len(blocks)) if first else len(blocks)
