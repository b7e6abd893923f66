"""Choose the old tool results that a boundary blanks, by position and size."""

from __future__ import annotations

import re
from collections import Counter as Counts
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

import msgspec

from foldline.core.cut.notes import CLEARED, is_cleared
from foldline.core.cut.pairing import calls_answered, parts_seen
from foldline.core.decide.policy import Policy
from foldline.core.log.codec import encode
from foldline.core.log.entries import Edit, Said
from foldline.core.log.messages import Part, Text, ToolCall, ToolResult
from foldline.core.measure.tokens import CALL_OVERHEAD, MESSAGE_OVERHEAD, Counter, part_tokens
from foldline.core.measure.window import Window
from foldline.core.secrets.named import is_secret_field
from foldline.core.secrets.plain import MARK
from foldline.core.secrets.redact import redact

LABEL_CAP = 80  # characters of a call in its placeholder
ERROR_CAP = 200  # characters of an error in its placeholder
MAIN_ARGUMENTS = ("command", "cmd", "query", "pattern", "url", "path", "file_path", "name", "id")

_ERROR_LINE = re.compile(
    r"error|exception|fatal|failed|failure|denied|not found|no such|cannot|timed? ?out", re.IGNORECASE
)

Clean = Callable[[str], str]


class Pruning(msgspec.Struct, frozen=True):
    """Results to blank and the tokens this frees; `superseded` counts files that were read again later."""

    edits: tuple[Edit, ...] = ()
    freed: int = 0
    superseded: int = 0


class _Result(msgspec.Struct, frozen=True):
    """A tool result in the view: its entry and part, its call (None for an orphan), its size in tokens."""

    entry: str
    part: int
    result: ToolResult
    call: ToolCall | None
    tokens: int
    answered: bool


def prune(
    kept: Sequence[Said],
    policy: Policy,
    window: Window,
    usable: int,
    counter: Counter,
    *,
    already: AbstractSet[tuple[str, int]] = frozenset(),
    date: str,
) -> Pruning:
    """Choose the old tool results of a view to blank.

    `kept` are the view's entries in order, `already` the (entry id, part) that are blanked or taken out.
    `date` (YYYY-MM-DD) is written into the placeholders. Reads that were repeated later always go. Other
    results go if they lie outside the newest `prune_protect` tokens of results (one that begins inside stays
    whole) and `prune_minimum` tokens can be freed in all. Results that no reply has seen yet and those of
    `prune_exempt` tools stay. Nothing is chosen if the policy does not prune.
    """
    if not policy.enable_pruning:
        return Pruning()
    results = [r for r in _results(kept, counter) if (r.entry, r.part) not in already]
    again = _read_again(results)
    exempt = frozenset(policy.prune_exempt)
    minimum = policy.prune_minimum.resolve(window, usable)
    old = _old(results, again, policy.prune_protect.resolve(window, usable))
    # a result no longer than the beginning of a placeholder frees nothing
    least = CALL_OVERHEAD + counter.count(_opening(date))
    wanted = {
        index: result
        for index in (*sorted(again), *sorted(old))
        if (result := results[index]).tokens > least
        and result.answered
        and not (result.call is not None and result.call.name in exempt)
        and not is_cleared(result.result.text)
    }
    calls = (result.call for result in wanted.values() if result.call is not None)
    arguments = "\n\n".join(_main_argument(call)[1].strip() for call in calls)
    clean = str if redact(arguments) == arguments else redact  # whether any label holds a secret
    blanked = {index: _blanked(result, counter, date, clean) for index, result in wanted.items()}
    chosen = {index: edit for index, edit in blanked.items() if edit.saved > 0}
    freed = sum(edit.saved for edit in chosen.values())
    if freed < minimum:
        chosen = {index: edit for index, edit in chosen.items() if index in again}
        freed = sum(edit.saved for edit in chosen.values())
    return Pruning(tuple(chosen.values()), freed, sum(index in again for index in chosen))


def _results(kept: Sequence[Said], counter: Counter) -> list[_Result]:
    """Return the tool results of the view, oldest first, each with the newest call of its id before it."""
    messages = [entry.message for entry in kept]
    calls = calls_answered(messages)
    results: list[_Result] = []
    for index, (entry, seen) in enumerate(zip(kept, parts_seen(messages), strict=True)):
        sizes: list[int] | None = None
        for part_index, part in enumerate(entry.message.parts):
            if isinstance(part, ToolResult):
                sizes = sizes if sizes is not None else _sizes(entry, counter)
                call_place = calls.get((index, part_index))
                call = kept[call_place[0]].message.parts[call_place[1]] if call_place else None
                call = call if isinstance(call, ToolCall) else None
                results.append(
                    _Result(entry.id, part_index, part, call, sizes[part_index], part_index < seen)
                )
    return results


def _sizes(entry: Said, counter: Counter) -> list[int]:
    """Return the tokens of each part of an entry; the longest gets the rest of the entry's count."""
    parts = entry.message.parts
    if entry.tokens and len(parts) == 1:
        return [entry.tokens - MESSAGE_OVERHEAD]
    longest = max(range(len(parts)), key=lambda i: _length(parts[i])) if entry.tokens else -1
    sizes = [0 if i == longest else part_tokens(part, counter) for i, part in enumerate(parts)]
    if longest >= 0:
        sizes[longest] = max(0, entry.tokens - MESSAGE_OVERHEAD - sum(sizes))
    return sizes


def _length(part: Part) -> int:
    """Return the characters of a text or a result; 0 for other parts, which are quick to count."""
    if isinstance(part, Text):
        return len(part.text)
    if isinstance(part, ToolResult):
        return sum(len(inner.text) for inner in part.content if isinstance(inner, Text))
    return 0


def _read_again(results: Sequence[_Result]) -> set[int]:
    """Return the indices of reads that a later successful read covers."""
    reads: dict[int, tuple[Read, int]] = {}
    for index, result in enumerate(results):
        read = read_of(result.call) if result.call is not None and not result.result.is_error else None
        if read is not None:
            reads[index] = (read, result.tokens)
    return superseded(reads)


def _old(results: Sequence[_Result], again: set[int], protect: int) -> set[int]:
    """Return the indices of results outside the newest `protect` tokens, not counting those read `again`."""
    newest, old = 0, set[int]()
    for index in range(len(results) - 1, -1, -1):
        if index in again:
            continue
        if newest >= protect:
            old.add(index)
        newest += results[index].tokens
    return old


def _blanked(result: _Result, counter: Counter, date: str, clean: Clean) -> Edit:
    text = placeholder(result.result, result.call, date, clean)
    cleared = ToolResult(result.result.call_id, (Text(text),), is_error=result.result.is_error)
    saved = result.tokens - CALL_OVERHEAD - counter.count(text)
    return Edit(result.entry, result.part, "blanked", cleared, saved=saved)


def placeholder(result: ToolResult, call: ToolCall | None, date: str, clean: Clean = redact) -> str:
    """Return the placeholder of a blanked result: date, call, size, and the main line of an error."""
    text = result.text
    details = [label(call, clean)] if call is not None else []
    if text:
        details.append(_lines(text))
    if others := [part.kind for part in result.content if not isinstance(part, Text)]:
        details += [f"{count} {kind}{'s' if count > 1 else ''}" for kind, count in Counts(others).items()]
    error = f"; {_error_line(text)}" if result.is_error and text.strip() else ""
    return f"{_opening(date)}{', '.join(details) or 'empty'}{error}]"


def _opening(date: str) -> str:
    """Return the beginning of every placeholder of a day."""
    return f"{CLEARED}{date}: "


def _lines(text: str) -> str:
    count = text.count("\n") + (not text.endswith("\n"))
    return "1 line" if count == 1 else f"{count:,} lines"


def label(call: ToolCall, clean: Clean = redact) -> str:
    """Return the tool and its main argument on one line; of a long path, the end."""
    key, value = _main_argument(call)
    if not value:
        return one_line(call.name, LABEL_CAP)
    label_text = f"{MARK}secret]" if is_secret_field(key, value) else clean(value.strip())
    if len(label_text) > LABEL_CAP and len(label_text.split(maxsplit=1)) == 1:
        label_text = f"…{label_text[-LABEL_CAP:]}"
    return one_line(f"{call.name} {label_text}", LABEL_CAP + len(call.name) + 2)


def _main_argument(call: ToolCall) -> tuple[str, str]:
    """Return the key and text of the most informative argument of a call; two empty strings if none."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    for key in (*MAIN_ARGUMENTS, *arguments):
        value = arguments.get(key)
        if isinstance(value, str) and value.strip():
            return key, value
    return "", ""


def _error_line(text: str) -> str:
    lines = [line for line in redact(text).splitlines() if line.strip()]
    return one_line(next((line for line in lines if _ERROR_LINE.search(line)), lines[0]), ERROR_CAP)


def one_line(text: str, cap: int) -> str:
    """Return the beginning of a text on one line of at most `cap` characters."""
    joined = " ".join(text[: cap * 4].split())
    return joined if len(joined) <= cap else f"{joined[: cap - 1]}…"


# ---- reads of files that a later read of the same file replaces


_PATH_KEYS = """
path file_path filepath filename file_name file target_file absolute_path relative_path notebook_path uri
"""
# an argument or a tool name with one of these words changes the file instead of reading it
_CHANGING = """
append content contents copy create data delete diff edit edits exec execute insert mkdir move new old patch
remove rename replace replacement run save text touch update upload write
"""
PATH_KEYS = frozenset(_PATH_KEYS.split())
CHANGING = frozenset(_CHANGING.split())
READING_COMMANDS = frozenset(("view", "read", "open", "cat", "show"))


class Read(msgspec.Struct, frozen=True):
    """A call that reads a path: the tool, the path, the other arguments as sorted JSON ("" for none)."""

    tool: str
    path: str
    rest: str


def read_of(call: ToolCall) -> Read | None:
    """Return what a call reads, or None if it does not read exactly one path.

    Decided by the arguments, so that it works for any tool name: one path, and no word in the arguments or
    the name that means a change.
    """
    arguments = call.arguments
    if not isinstance(arguments, dict) or _changes(call.name):
        return None
    paths = [key for key in arguments if key.lower() in PATH_KEYS]
    if len(paths) != 1 or not isinstance(path := arguments[paths[0]], str):
        return None
    if len(arguments) == 1:
        return Read(call.name, _normal_path(path), "")
    rest = {
        key: arguments[key] for key in sorted(arguments) if key != paths[0] and arguments[key] is not None
    }
    command = rest.get("command", "read")
    if any(map(_changes, rest)) or not isinstance(command, str) or command.lower() not in READING_COMMANDS:
        return None
    return Read(call.name, _normal_path(path), encode(rest).decode() if rest else "")


def _normal_path(path: str) -> str:
    return path.strip().removeprefix("file://").removeprefix("./")


@lru_cache(maxsize=1_024)  # few names of tools and arguments, checked at every call
def _changes(name: str) -> bool:
    """Whether one of the words in a name such as `old_string`, `newText` or `str-replace` means a change."""
    spaced = "".join(f" {c}" if c.isupper() else c if c.isalnum() else " " for c in name)
    words = (*spaced.lower().split(), *name.lower().replace("-", "_").split("_"))
    return not CHANGING.isdisjoint(words)


def superseded(reads: Mapping[int, tuple[Read, int]]) -> set[int]:
    """Return the indices of reads that a later read covers.

    `reads` maps an index (higher is later) to a read and the size of its result. A later read covers one with
    the same arguments, and if it reads the whole file (path only), any of the same tool and path. Its result
    must be at least half as large: an error or a note such as "unchanged since the last read" covers nothing.
    """
    covered: set[int] = set()
    largest: dict[Read, int] = {}  # by read, and by whole file (tool and path, no rest)
    for index in sorted(reads, reverse=True):
        read, size = reads[index]
        whole_file = Read(read.tool, read.path, "")
        if 2 * max(largest.get(read, -1), largest.get(whole_file, -1)) >= max(size, 1):
            covered.add(index)
        largest[read] = max(size, largest.get(read, -1))
    return covered
