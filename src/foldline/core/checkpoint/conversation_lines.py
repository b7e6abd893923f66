"""The conversation of a checkpoint as lines, in the order of events: written from items, and read back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from foldline.core.ledger.facts.items import gap_of
from foldline.core.ledger.facts.kinds import DONE, LEVELS, Item
from foldline.core.ledger.text.sentences import one_line

GAP = 12  # what is left out, calls and four times the messages, from which on a line says so
MORE = "    "  # begins a further line of an item
MARKS = {
    "user": "[User] ",
    "said": "[Assistant] ",
    "aside": "[Assistant] ",
    "proposal": "[Assistant's plan] ",
    "summary": "[Earlier summary] ",
}


def line_of(item: Item, text: str) -> str:
    """Write one item as a line of the page."""
    mark = MARKS.get(item.kind)
    if mark is not None:
        by = f" {one_line(item.by).replace(']', ')')}" if item.by else ""
        return mark.replace("]", f"{by}]", 1) + _escaped(text)
    if item.kind in ("answer", "refused"):
        return _escaped(text, answer=item.kind == "answer")
    times = f" (x{item.calls})" if item.calls > 1 and item.kind != "looked" else ""
    first, _, more = text.partition(f"\n{MORE}")
    if more and item.kind in _TOLD_BELOW:
        first = first.partition(_TOLD_BELOW[item.kind])[0]
    return f"- {one_line(first)}{times}" + (f"\n{MORE}{more}" if more else "")


_TOLD_BELOW = {
    "called": " -> ",
    "edit": ": ",
}  # what follows it on the line is repeated in the lines below


_STARTS = (
    "- ",
    "... ",
    "[User",
    "[Assistant",
    "[Earlier summary]",
    "[Asked]",
    "## ",
    "Names met",
    "<user-rules>",
    "</user-rules>",
    "<read-files>",
    "<modified-files>",
)


def _escaped(text: str, *, answer: bool = False) -> str:
    """Indent the lines, but the first, that could be taken for the beginning of an item or for an answer."""
    first, *rows = text.split("\n")
    stays = "[User answered]" if answer else "\n"
    return "\n".join(
        [first, *(f" {row}" if _could_begin(row) and not row.startswith(stays) else row for row in rows)]
    )


def _could_begin(row: str) -> bool:
    return row.lstrip(" ").startswith(_STARTS)


def write(items: Sequence[Item], shown: Mapping[int, str]) -> list[str]:
    """Write the conversation: the items that are shown, and counts of what is left out between them.

    A gap too small for its own line is added to the next one.
    """
    lines: list[str] = []
    looks: list[str] = []
    gap = gap_of(())

    def close_looks() -> None:
        if looks:
            lines.append(f"- {'; '.join(_grouped(looks))}")
            looks.clear()

    for index, item in enumerate(items):
        if index not in shown:
            gap = gap_of((gap, item))
            continue
        if 4 * gap.messages + gap.calls >= GAP:
            close_looks()
            lines += gap_line(gap)
            gap = gap_of(())
        if item.kind == "looked":
            looks.append(one_line(shown[index]))
        else:
            close_looks()
            lines += [""] if item.kind == "user" and lines else []
            lines.append(line_of(item, shown[index]))
    close_looks()
    return [*lines, *gap_line(gap)]


def gap_line(gap: Item) -> list[str]:
    """Write a gap, `... 12 messages, 31 calls`; no line for an empty one."""
    counts = ((gap.messages, "message"), (gap.calls, "call"))
    text = ", ".join(f"{number:,} {what}{'s' * (number != 1)}" for number, what in counts if number)
    return [f"... {text}"] if text else []


def _grouped(looks: Sequence[str]) -> list[str]:
    """Join what was read into one list: `read a.py, b.py`."""
    found: list[str] = []
    for look in looks:
        if found and look.startswith("read ") and found[-1].startswith("read "):
            found[-1] += f", {look.removeprefix('read ')}"
        else:
            found.append(look)
    return found


_BEGINS = re.compile(
    r"(?P<refused>\[User refused)|(?P<answer>\[Asked\] )|"
    r"(?P<user>\[User(?: (?!answered\])(?P<by>[^\]]+))?\] )|(?P<said>\[Assistant\] )|"
    r"(?P<proposal>\[Assistant's plan\] )|(?P<summary>\[Earlier summary\] )|(?P<gap>\.\.\. )|(?P<done>- )"
)
_GAP = re.compile(r"\.\.\. (?:([\d,]+) messages?)?(?:, )?(?:([\d,]+) calls?)?")
_TIMES = re.compile(r" \(x(\d+)\)\Z")
_KINDS = (
    ("commit ", "commit"),
    ("edit ", "edit"),
    ("write ", "edit"),
    ("delete ", "edit"),
    ("read ", "looked"),
    ("searched ", "looked"),
)


def read(text: str) -> list[Item]:
    """Read a conversation back as items; a line that begins no item belongs to the one before."""
    found: list[tuple[Item, list[str]]] = []
    for row in text.split("\n") if text else ():
        begins = _BEGINS.match(row)
        if begins is not None and (begins["gap"] is None or _GAP.fullmatch(row)):
            found.append((_item(row, begins), []))
        elif found:
            found[-1][1].append(row)
    return [_with_rows(item, rows) for item, rows in found]


def _with_rows(item: Item, rows: Sequence[str]) -> Item:
    """Return an item with its further lines."""
    is_action = LEVELS.get(item.kind) == DONE
    more = [row.removeprefix(MORE) for row in rows if is_action and row.startswith(MORE)]
    text = [
        row[1:] if row.startswith(" ") and _could_begin(row) else row
        for row in rows
        if not (is_action and row.startswith(MORE))
    ]
    whole = "\n".join((item.text, *text)).rstrip("\n")
    return msgspec.structs.replace(item, text=whole, more="\n".join(more))


def _item(row: str, begins: re.Match[str]) -> Item:
    if begins["gap"]:
        counts = _GAP.fullmatch(row)
        numbers = [int((one or "0").replace(",", "")) for one in counts.groups()] if counts else [0, 0]
        return Item("gap", messages=numbers[0], calls=numbers[1])
    if begins["done"]:
        text = row[2:]
        times = _TIMES.search(text)
        text = text[: times.start()] if times else text
        kind = next(
            (kind for begin, kind in _KINDS if text.startswith(begin)),
            "ran" if text.startswith("$ ") else "called",
        )
        if kind == "ran" and " -> " not in text:
            kind = "looked"
        return Item(kind, text, calls=int(times[1]) if times else _looks_in(text))
    kind = next(kind for kind in MARKS | {"refused": "", "answer": ""} if begins.groupdict().get(kind))
    return Item(kind, row if kind in ("refused", "answer") else row[begins.end() :], by=begins["by"] or "")


def _looks_in(text: str) -> int:
    """Count the calls in a line of looks: `read a.py, b.py; searched "x"`."""
    parts = text.split("; ")
    return sum(1 + part.count(", ") if part.startswith("read ") else 1 for part in parts)


def earlier(text: str) -> Item:
    """Return a text that another system wrote as an earlier summary."""
    return Item("summary", text.strip())
