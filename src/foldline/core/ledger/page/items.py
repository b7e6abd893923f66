"""List items: a fact stands on one line, further lines of it or about it are indented."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

MARK = "- "
BELOW = "  - "
REPORTED = "Reported: "
WENT_WRONG = "Went wrong: "
TO_DO = "To do: "
NOTED = "Noted: "
"""These four stand before a text only where it would be read as something else without."""
FIXED = "Fixed since: "
SAID = "Said: "
UNANSWERED = "A call was never answered: "
LABELS = (REPORTED, WENT_WRONG, TO_DO, NOTED, FIXED, SAID, UNANSWERED)
"""What stands before a text to say what it is."""


def one_line(text: str) -> str:
    """Return a text without line breaks, which would end its item."""
    return " ".join(text.split()) if "\n" in text else text


def word_for_word(text: str) -> str:
    """Write a text as one list item, its further lines indented."""
    return MARK + text.replace("\n", "\n  ")


def unticked(text: str) -> str:
    """Return a text that can stand between backticks."""
    return one_line(text).replace("`", "'")


def told_apart(text: str, label: str, is_other: Callable[[str], bool]) -> str:
    """Write a text as an item, with its label before it if it would be taken for something else without."""
    line = MARK + text
    return f"{MARK}{label}{text}" if is_other(line) or text.startswith(label) else line


def text_of(line: str, label: str = "") -> str:
    """Read an item that `told_apart` wrote, or any other item."""
    return line.removeprefix(MARK).removeprefix(label)


def items(lines: Iterable[str], *, loose: bool = False) -> Iterator[list[str]]:
    """Yield each list item with the items below it; `loose` takes unmarked lines as items of their own."""
    item: list[str] = []
    for line in lines:
        if line.startswith(BELOW) and item:
            item.append(line[len(BELOW) :])
        elif line.startswith(MARK) or (loose and line.strip()):
            if item:
                yield item
            item = [line]
    if item:
        yield item


def whole_items(lines: Iterable[str]) -> Iterator[str]:
    """Yield list items word for word, their further lines included."""
    item: list[str] = []
    for line in lines:
        if line.startswith(MARK):
            if item:
                yield "\n".join(item)
            item = [line.removeprefix(MARK)]
        elif item:
            item.append(line.removeprefix("  "))
    if item:
        yield "\n".join(item)
