"""What a blanked result held, in one line: how its run ended, or the names that it showed first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from foldline.core.ledger.facts.actions import stretch
from foldline.core.ledger.text import names
from foldline.core.log.entries import Said
from foldline.core.log.messages import ToolResult

Place = tuple[str, int]  # (entry id, index of the part)
SCANNED = 12_000  # characters of a result that are read
BESIDE = 5  # tokens of the words before each line


def held(
    entries: Sequence[Said], blanked: AbstractSet[Place], budget: int, count: Callable[[str], int]
) -> dict[Place, str]:
    """Return a line for each blanked result that has something to tell, within `budget` tokens in all."""
    found: dict[Place, str] = {}
    most = budget // max(1, len(blanked)) - BESIDE
    ran = {
        (use.answered_in, use.call.id): done.run.text for use, done in stretch(entries).actions() if done.run
    }
    for entry in entries:
        for index, part in enumerate(entry.message.parts):
            if isinstance(part, ToolResult) and (entry.id, index) in blanked:
                line = ran.get((entry.id, part.call_id)) or _names(part.text[:SCANNED], most, count)
                if line and count(line) <= most:
                    found[entry.id, index] = line
    return found


def _names(text: str, most: int, count: Callable[[str], int]) -> str:
    """List the names of a text, in its order, in `most` tokens."""
    told: list[str] = []
    for name in dict.fromkeys(name.text for name in names.find(text)):
        most -= count(name) + 1
        if most < 0:
            break
        told.append(name)
    return ", ".join(told)
