"""Reports of a fold for people: composition, checkpoint, receipt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from foldline.cli.output import escape, row, rule, share, table
from foldline.core.decide.price import dollars
from foldline.core.log.entries import EXCLUDED, Compacted, Receipt, Said
from foldline.core.log.messages import Message, Usage
from foldline.core.view_items import AddedItem, Item
from foldline.folding import Done
from foldline.loading import Loaded
from foldline.terminal import clean

BAR = 24  # characters of a full bar
SHORT = 10  # lines of each section of a checkpoint that is not printed in full
WIDEST = 160  # characters of a line of its conversation
CONVERSATION = "## Conversation"
LISTS = ("<read-files>", "<modified-files>")
_EDITS = {
    "blanked": "old tool results cleared",
    "reduced": "old images made smaller or left out",
    "elided": "long parts shortened",
    "stripped": "signed blocks removed",
    "repaired": "parts repaired",
    EXCLUDED: "parts removed by the user",
}


def print_done(done: Done, console: Console, *, checkpoint: bool = True, full: bool = False) -> None:
    """Print the receipt of a fold, then its checkpoint: in short, or in full."""
    if done.boundary is None:
        console.print(f"Nothing to fold: {done.view_tokens:,} tokens fit{_without_orphans(done)}.")
    summary = done.summary if done.boundary is not None and (full or checkpoint) else None
    rule(console, "receipt")
    print_figures(done.receipt, console, rules=summary is None)
    if summary is None:
        return
    rule(console, "checkpoint" if full else "checkpoint, in short")
    print_summary(summary, console, None if full else SHORT)
    if not full:
        console.print("[dim]--full shows all of the checkpoint.[/]")


def _without_orphans(done: Done) -> str:
    """Return " as they are", or what fits if results without a call were left out."""
    orphans = len(done.receipt.dropped.get("orphans", ()))
    if not orphans:
        return " as they are"
    results = "a result that answers" if orphans == 1 else f"{orphans} results that answer"
    return f", without {results} no call"


def print_summary(summary: str, console: Console, most: int | None = None) -> None:
    """Print a checkpoint's text with bold headings, and at most `most` lines of each section.

    These are the first lines of a section, but the newest ones of the conversation.
    """
    for heading, *lines in _sections(summary):
        cut = most is not None and len(lines) > most + 1
        newest = heading == CONVERSATION
        left_out = f"[dim]… {len(lines) - (most or 0):,} more lines[/]"
        console.print(Text(clean(heading), style="bold" if heading.startswith("#") else ""))
        if cut and newest:
            console.print(left_out)
        for line in lines[-(most or 0) :] if newest else lines[:most] if cut else lines:
            whole = not (cut and newest) or len(line) <= WIDEST
            print_text(line if whole else f"{line[: WIDEST - 1].rstrip()}…", console)
        if cut and not newest:
            console.print(left_out)
        if cut:
            console.print()


def _sections(summary: str) -> list[list[str]]:
    """Split a checkpoint at its headings and lists of files; each section starts with its heading.

    Messages may contain headings: only a heading of the page ends the conversation.
    """
    sections: list[list[str]] = [[]]
    for line in summary.splitlines():
        starts = ("## ", *LISTS) if sections[-1][:1] == [CONVERSATION] else ("#", "<")
        if line.startswith(starts) and not line.startswith("</"):
            sections.append([])
        sections[-1].append(line)
    return [section for section in sections if section]


def print_text(text: str, console: Console) -> None:
    """Print text as it is, wrapped only on a terminal."""
    console.print(Text(clean(text)), soft_wrap=not console.is_terminal)


def print_figures(receipt: Receipt, console: Console, *, rules: bool = True) -> None:
    """Print the figures of a receipt, without a heading."""
    if receipt.reason == "imported":  # the agent folded, and may have recorded its count
        size = f", at {receipt.tokens_before:,} tokens by the agent's count" if receipt.tokens_before else ""
        console.print(f"made by the agent that wrote the session{size}")
        return
    saved = receipt.tokens_before - receipt.tokens_after
    console.print(
        f"[bold]{receipt.tokens_before:,}[/] tokens in {receipt.messages_before:,} messages -> "
        f"[bold green]{receipt.tokens_after:,}[/] in {receipt.messages_after:,} "
        f"({share(saved, receipt.tokens_before)} less)"
    )
    writer = "offline" if receipt.summarizer == "offline" else f"by {escape(receipt.summarizer)}"
    written = f", written {writer}" if receipt.summarizer else ""
    console.print(
        f"policy {escape(receipt.policy)}, reason {receipt.reason}{written}, {receipt.duration_ms:,.0f} ms"
    )
    if receipt.usage is not None:
        console.print(f"the summary took {_usage(receipt.usage)}{_price(receipt.price)}")
    if receipt.by_category:
        rows = table("=what", "#before", "#after", "=of the view")
        for name, (before, after) in sorted(receipt.by_category.items(), key=lambda item: -item[1][0]):
            row(rows, name, f"{before:,}", f"{after:,}", bar(after, receipt.tokens_after))
        console.print(rows)
    for name, value in receipt.dropped.items():
        if name == "edits":
            changes = ", ".join(f"{_EDITS.get(kind, kind)} {count:,}" for kind, count in value.items())
            console.print(f"edits in the messages that stay: {escape(changes)}")
            continue
        console.print(escape(f"dropped {name.replace('_', ' ')}: {_short(value)}"))
    constraints = receipt.constraints
    if constraints is not None and constraints.texts:
        console.print(f"standing constraints kept word for word: {constraints.kept}")
        if rules:
            _print_some(constraints.texts, console)
    if constraints is not None and constraints.excess:
        console.print(f"[yellow]standing constraints left out for lack of room:[/] {len(constraints.excess)}")
        _print_some(constraints.excess, console)
    for note in receipt.notes:
        console.print(f"[dim]note: {escape(note)}[/]")


def _print_some(texts: Sequence[str], console: Console, most: int = 8) -> None:
    for text in texts[:most]:
        console.print(Text(f"  - {clean(text)}"), soft_wrap=not console.is_terminal)
    if len(texts) > most:
        console.print(f"[dim]  … {len(texts) - most} more[/]")


def _usage(usage: Usage) -> str:
    cached = f" ({usage.cache_read:,} of them from the cache)" if usage.cache_read else ""
    return f"{usage.total - usage.output:,} tokens in{cached}, {usage.output:,} out"


def _price(price: float | None) -> str:
    return "" if price is None else f", {dollars(price)}"


def _short(value: Any) -> str:
    if isinstance(value, dict):
        items: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        shown = [f"{key} {number}" for key, number in list(items.items())[:6]]
        return ", ".join(shown) + (f", and {len(items) - 6} more" if len(items) > 6 else "")
    if isinstance(value, list):
        return f"{len(value)}"  # pyright: ignore[reportUnknownArgumentType]
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_preview(done: Done, loaded: Loaded, console: Console, *, full: bool = False) -> None:
    """Print which messages would be folded, kept and edited."""
    if done.boundary is None:
        console.print(f"Nothing would be folded: {done.view_tokens:,} tokens fit{_without_orphans(done)}.")
        return
    console.print("[bold]Preview[/]: nothing was changed.")
    first = done.cut["first_kept"] if done.cut else None
    folded = done.receipt.dropped.get("messages", 0)
    if isinstance(done.boundary, Compacted):
        where = (
            "nothing would be kept word for word"
            if first is None
            else f"messages from {first} on would be kept"
        )
        split = ", in the middle of a turn" if done.cut and done.cut["split"] else ""
        console.print(f"{folded:,} messages would be folded; {where}{split}.")
    elif done.summary is not None:
        console.print(f"{folded:,} messages would be folded; the messages before them would be kept.")
    messages = {entry.id: entry.message for entry in loaded.entries if isinstance(entry, Said)}
    edits = table("#message", "=role", "=edit", "#tokens freed")
    for edit in done.boundary.edits:
        if edit.kind in ("folded", EXCLUDED):
            continue
        place = str(loaded.index.get(edit.entry, "?"))
        row(edits, place, messages[edit.entry].role, edit.kind, f"{edit.saved:,}")
    if edits.row_count:
        console.print(edits)
    print_done(done, console, full=full)


def print_view(items: Sequence[Item], console: Console, most: int = 8) -> None:
    """Print the beginning of a view, one line per message."""
    for item in items[:most]:
        message = item.message
        kind = (
            f"added: {item.kind}" if isinstance(item, AddedItem) else "kept, edited" if item.edits else "kept"
        )
        text = escape(gist(message, 70))
        line = f"[cyan]{message.role:9}[/] [dim]{kind:17} {item.tokens:>7,}[/]  {text}"
        console.print(line, no_wrap=True, overflow="ellipsis")
    if len(items) > most:
        console.print(f"[dim]… {len(items) - most} more[/]")


def gist(message: Message, most: int = 80) -> str:
    """Return one line that describes a message."""
    text = " ".join(message.text.split())
    if not text and message.calls:
        text = "calls " + ", ".join(call.name for call in message.calls)
    elif not text and message.results:
        text = "result: " + " ".join(message.results[0].text.split())
    return text[: most - 1] + "…" if len(text) > most else text


def bar(part: int, whole: int) -> Text:
    """Return a bar for a share of the whole."""
    full = round(BAR * part / whole) if whole else 0
    return Text("█" * full, style="cyan")
