"""The screen of `/preview`: which messages would be folded or kept, and the summary to edit."""

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

ROLE: Final = re.compile(r"\A\[[A-Z][A-Za-z ]*\]: ")  # before the text of an entry


class PreviewScreen(Dialog[str]):
    """Shows a compaction before it is made; returns its result, None if it was cancelled."""

    CSS = """
    PreviewScreen > Vertical { width: 96%; max-width: 160; height: 94%; }
    PreviewScreen OptionList { height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    PreviewScreen TextArea { height: 1fr; }
    PreviewScreen Input { margin: 0 0 1 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "confirm", "Confirm"),
        Binding("ctrl+r", "redo", "Draft again"),
    ]

    def __init__(self, session: Session, focus: str) -> None:
        super().__init__()
        self._session = session
        self._focus = focus
        self._preview: Preview | None = None  # None while it is drafted
        self._infos: list[EntryInfo] = []
        self._cut = 0  # the first message that stays
        self._pinned: set[str] = set()  # marked to be kept word for word
        self._pinned_before: set[str] | None = None

    def compose(self) -> ComposeResult:
        """Show sizes, focus, messages and summary."""
        with Vertical():
            yield Static("Drafting …", classes="title", id="sizes")
            hint = "Focus of the summary (Enter drafts again)"
            yield Input(self._focus, placeholder=hint, compact=True)
            yield OptionList()
            yield TextArea("", soft_wrap=True)
            with Horizontal():
                yield Button("Confirm (Ctrl-S)", id="confirm", variant="primary", compact=True)
                yield Button("Draft again (Ctrl-R)", id="redo", compact=True)
                yield Button("Leave (Esc)", id="leave", compact=True)

    def on_mount(self) -> None:
        """Draft in the background."""
        self.action_redo()

    def on_input_submitted(self) -> None:
        """Draft again with the focus."""
        self.action_redo()

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Run the action of a button."""
        actions = {"confirm": self.action_confirm, "redo": self.action_redo}
        actions.get(event.button.id or "", self.action_leave)()

    def action_redo(self) -> None:
        """Draft again, with the focus and the marked messages."""
        self.run_worker(self._draft(), exclusive=True, exit_on_error=False)

    def action_confirm(self) -> None:
        """Commit exactly what is shown, unless it is being drafted or committed."""
        preview, self._preview = self._preview, None
        if preview is not None:
            self.run_worker(self._commit(preview), exclusive=True, exit_on_error=False)

    def action_leave(self) -> None:
        """Close the screen and change nothing."""
        self.run_worker(self._cancel(), exclusive=True, exit_on_error=False)

    async def _draft(self) -> None:
        title, focus = self.query_one("#sizes", Static), self.query_one(Input).value.strip()
        title.update("Drafting …")
        self._preview = None
        try:
            await self._pin()
            preview = await self._session.preview(focus or None, on_text=self._stream)
        except FoldlineError as error:
            title.update(Text(clean(f"The draft failed: {error}")))
            return
        if isinstance(preview, Nothing):
            title.update(Text(result_text(preview)))
            return
        keys = "Enter marks a message to keep word for word, Ctrl-R drafts again"
        title.update(Text(f"{sizes_text(preview.receipt)}. {keys}."))
        self.query_one(TextArea).text = clean(preview.summary or "(old tool results would be cleared)")
        await self._list(preview)
        self._preview = preview

    def _stream(self, text: str | None) -> None:
        """Show the summary while a model writes it."""
        area = self.query_one(TextArea)
        if text is None:
            area.text = ""
        else:
            area.insert(clean(text), area.document.end)

    async def _list(self, preview: Preview) -> None:
        """List the messages of the view, and whether each is folded or kept."""
        infos = await self._session.entries()
        self._infos = [info for info in infos if info.how not in HIDDEN or info.pinned]
        self._pinned = {info.entry for info in self._infos if info.pinned}
        if self._pinned_before is None:
            self._pinned_before = set(self._pinned)
        boundary = preview.boundary
        first = boundary.first_kept if isinstance(boundary, Compacted) else None
        count = len(self._infos)
        self._cut = next((n for n, info in enumerate(self._infos) if info.entry == first), count)
        options = self.query_one(OptionList)
        highlighted = options.highlighted
        options.clear_options()
        options.add_options([self._line(number) for number in range(count)])
        options.highlighted = highlighted

    def _line(self, number: int) -> Text:
        info = self._infos[number]
        mark = "[x]" if info.entry in self._pinned else "[ ]"
        folds = number < self._cut and info.how == "kept"
        what = "fold" if folds else "stays" if info.how == "kept" else info.how
        text = f"{mark} {what:<7} {info.role:<9} {info.tokens:>7,}  {ROLE.sub('', info.text)}"
        return Text(clean(text), no_wrap=True, overflow="ellipsis")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Mark a message to be kept word for word, or remove the mark."""
        self._pinned ^= {self._infos[event.option_index].entry}
        self.query_one(OptionList).replace_option_prompt_at_index(
            event.option_index, self._line(event.option_index)
        )

    async def _pin(self) -> None:
        """Pin the marked messages, and unpin the others."""
        if self._pinned_before is None:  # nothing was listed yet
            return
        current = {info.entry for info in await self._session.entries() if info.pinned}
        for entry in self._pinned - current:
            await self._session.pin(entry)
        for entry in current - self._pinned:
            await self._session.unpin(entry)

    async def _commit(self, preview: Preview) -> None:
        text = self.query_one(TextArea).text
        changed = preview.summary is not None and text != clean(preview.summary)
        try:
            await self._pin()
            outcome = await self._session.commit(preview, summary=text if changed else None)
        except FoldlineError as error:
            self.query_one("#sizes", Static).update(Text(clean(f"The compaction failed: {error}")))
            self._preview = preview
            return
        self.dismiss(result_text(outcome))

    async def _cancel(self) -> None:
        """Restore the pins from before the screen."""
        if self._pinned_before is not None:
            self._pinned = self._pinned_before
            await self._pin()
        self.dismiss(None)
