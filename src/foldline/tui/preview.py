"""The screen of `/preview`: what would be folded and what stays, and the summary to edit."""

from __future__ import annotations

import re
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Button, Input, OptionList, Static, TextArea

from foldline.agent.commands.boundaries import result_text, sizes_text
from foldline.core.decide.ask import Nothing
from foldline.core.log.entries import Compacted
from foldline.errors import FoldlineError
from foldline.session.preview import Preview
from foldline.session.recall import HIDDEN, EntryInfo
from foldline.session.session import Session
from foldline.terminal import clean
from foldline.tui.dialogs import Dialog

ROLE: Final = re.compile(r"\A\[[A-Z][A-Za-z ]*\]: ")  # before the words of an entry


class PreviewScreen(Dialog[str]):
    """Shows a compaction before it is made; returns what was done, None where it was left."""

    CSS = """
    PreviewScreen > Vertical { width: 96%; max-width: 160; height: 94%; }
    PreviewScreen OptionList { height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    PreviewScreen TextArea { height: 1fr; }
    PreviewScreen Input { margin: 0 0 1 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "confirm", "Confirm"),
        Binding("ctrl+r", "redo", "Draw up anew"),
    ]

    def __init__(self, session: Session, focus: str) -> None:
        super().__init__()
        self._session = session
        self._focus = focus
        self._preview: Preview | None = None  # None while it is drawn up
        self._infos: list[EntryInfo] = []
        self._cut = 0  # the first message that stays
        self._chosen: set[str] = set()  # ticked: to stay word for word
        self._before: set[str] | None = None  # what was pinned before

    def compose(self) -> ComposeResult:
        """Show sizes, focus, messages and summary."""
        with Vertical():
            yield Static("Drawing up …", classes="title", id="sizes")
            hint = "Focus of the summary (Enter draws it up anew)"
            yield Input(self._focus, placeholder=hint, compact=True)
            yield OptionList()
            yield TextArea("", soft_wrap=True)
            with Horizontal():
                yield Button("Confirm (Ctrl-S)", id="confirm", variant="primary", compact=True)
                yield Button("Draw up anew (Ctrl-R)", id="redo", compact=True)
                yield Button("Leave (Esc)", id="leave", compact=True)

    def on_mount(self) -> None:
        """Draw it up beside the screen."""
        self.action_redo()

    def on_input_submitted(self) -> None:
        """Take the focus."""
        self.action_redo()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Do what a button says."""
        actions = {"confirm": self.action_confirm, "redo": self.action_redo}
        actions.get(event.button.id or "", self.action_leave)()

    def action_redo(self) -> None:
        """Draw it up anew, with the focus and the messages that were chosen to stay."""
        self.run_worker(self._draw(), exclusive=True, exit_on_error=False)

    def action_confirm(self) -> None:
        """Commit exactly what is shown, once it is drawn up."""
        if self._preview is not None:
            self.run_worker(self._commit(self._preview), exclusive=True, exit_on_error=False)

    def action_leave(self) -> None:
        """Leave everything as it was."""
        self.run_worker(self._left(), exclusive=True, exit_on_error=False)

    async def _draw(self) -> None:
        title, focus = self.query_one("#sizes", Static), self.query_one(Input).value.strip()
        title.update("Drawing up …")
        self._preview = None
        try:
            await self._pin()
            found = await self._session.preview(focus or None, on_text=self._streamed)
        except FoldlineError as error:
            title.update(Text(clean(f"It cannot be drawn up: {error}")))
            return
        if isinstance(found, Nothing):
            title.update(Text(result_text(found)))
            return
        keys = "Enter marks a message to keep word for word, Ctrl-R drafts again"
        title.update(Text(f"{sizes_text(found.receipt)}. {keys}."))
        self.query_one(TextArea).text = clean(found.summary or "(old tool results would be cleared)")
        await self._list(found)
        self._preview = found

    def _streamed(self, text: str | None) -> None:
        """Show the summary while a model writes it."""
        area = self.query_one(TextArea)
        if text is None:
            area.text = ""
        else:
            area.insert(clean(text), area.document.end)

    async def _list(self, found: Preview) -> None:
        """List the messages of the view in order, with what becomes of each."""
        infos = await self._session.entries()
        self._infos = [info for info in infos if info.how not in HIDDEN or info.pinned]
        self._chosen = {info.entry for info in self._infos if info.pinned}
        self._before = set(self._chosen) if self._before is None else self._before
        boundary = found.boundary
        first = boundary.first_kept if isinstance(boundary, Compacted) else None
        places = [number for number, info in enumerate(self._infos) if info.entry == first]
        self._cut = places[0] if places else len(self._infos)
        listed = self.query_one(OptionList)
        place = listed.highlighted
        listed.clear_options()
        listed.add_options([self._line(number) for number in range(len(self._infos))])
        listed.highlighted = place

    def _line(self, number: int) -> Text:
        info = self._infos[number]
        mark = "[x]" if info.entry in self._chosen else "[ ]"
        folds = number < self._cut and info.how == "kept"
        what = "fold" if folds else "stays" if info.how == "kept" else info.how
        text = f"{mark} {what:<7} {info.role:<9} {info.tokens:>7,}  {ROLE.sub('', info.text)}"
        return Text(clean(text), no_wrap=True, overflow="ellipsis")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Tick a message that shall stay word for word, or take the tick away."""
        self._chosen ^= {self._infos[event.option_index].entry}
        self.query_one(OptionList).replace_option_prompt_at_index(
            event.option_index, self._line(event.option_index)
        )

    async def _pin(self) -> None:
        """Pin what was ticked, and unpin what is ticked no more."""
        if self._before is None:  # nothing was listed yet
            return
        known = {info.entry for info in await self._session.entries() if info.pinned}
        for entry in self._chosen - known:
            await self._session.pin(entry)
        for entry in known - self._chosen:
            await self._session.unpin(entry)

    async def _commit(self, preview: Preview) -> None:
        text = self.query_one(TextArea).text
        changed = preview.summary is not None and text != clean(preview.summary)
        try:
            await self._pin()
            outcome = await self._session.commit(preview, summary=text if changed else None)
        except FoldlineError as error:
            self.query_one("#sizes", Static).update(Text(clean(f"It cannot be committed: {error}")))
            return
        self.dismiss(result_text(outcome))

    async def _left(self) -> None:
        """Pins are again what they were before the screen."""
        if self._before is not None:
            self._chosen = self._before
            await self._pin()
        self.dismiss(None)
