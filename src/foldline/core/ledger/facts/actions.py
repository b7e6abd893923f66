"""What a call does, derived from the shape of its arguments.

It changes files, runs a command, asks the user, proposes a plan, looks at something, or does something else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from textwrap import dedent
from typing import Any, Final

import msgspec

from foldline.core.ledger.facts.commands import (
    as_list,
    by_plain_key,
    folder_beside,
    git_verb,
    is_notable,
    middle_out,
    normal,
    plain,
    rows_of,
    strings,
)
from foldline.core.ledger.facts.kinds import CommitFact, Ledger
from foldline.core.ledger.facts.outcomes import FEW, RunEnd, fell, outcome, printed, refusal, says_error
from foldline.core.ledger.facts.touches import (
    NEW,
    OLD,
    WHOLE,
    elsewhere,
    folder_of_work,
    patch_in,
    paths_in,
    relative,
)
from foldline.core.ledger.facts.uses import Action, Use, uses
from foldline.core.ledger.text import names
from foldline.core.ledger.text.sentences import cut, uncoloured, word_set
from foldline.core.log.entries import Said
from foldline.core.log.messages import Media
from foldline.core.log.opaque import opened
from foldline.core.measure.media import media_label

COMMAND = 220  # characters of a command
DESCRIBED = 120  # characters from which a command is shown with its description, and of the description
SUBJECT = 120  # characters of a commit's first line
ARGUMENT = 140  # characters of an argument
RESULT = 160  # characters of a result
MORE = 1_200  # characters of the end of an output
ADDED, REMOVED = 3_000, 400  # characters of the lines that an edit puts in, and of those that it takes out
REPORT = 4_000  # characters of what another agent reports
HITS = 2  # lines of search results that are shown
QUESTION = 400  # characters of a question that is put to the user
ANSWER = 12_000  # characters of an answer or of a plan that is put to the user
NAMES = 5  # names that an edit brings
SCANNED = 20_000  # characters of one text that are read

_COMMITTED = re.compile(
    r"^\[(detached HEAD|[^\s\]]+)(?: \([^)\n]*\))? ([0-9a-f]{7,40})\] ([^\n]*)$", re.MULTILINE
)
_WORD = re.compile(r"\w{2}")
_ASKS = re.compile(
    r"ask.?user|request.?user.?input|elicit|ask.?(?:follow.?up.?)?question$|^question$|clarif", re.IGNORECASE
)
_FRAME = re.compile(
    r"\AUser has answered your questions?: |\. You can now continue with the user's answers in mind\.\s*\Z"
)
_BESIDE_A_QUESTION = word_set(
    "questions question message prompt options choices header multiselect multiple followup suggestions type "
    "default placeholder context reason answers annotations metadata id requestedschema"
)


def action(use: Use, base: str) -> Action | None:
    """Say what a call did; `base` is the folder of the work. None for a list of steps: that is the plan."""
    asked, plan = _question(use), use.args.get("plan")
    changes = use.command is None and any(touch.status != "read" for touch in use.touches)
    if use.result is not None:
        if fell(use.result):
            return None
        shown = asked or changes or isinstance(plan, str) or _LISTS_TASKS.fullmatch(plain(use.call.name))
        words = refusal(use.result, quotes=not shown or use.call.name.startswith("mcp__"))
        if words is not None:
            return _refused(use, words)
    if asked and not (use.result and says_error(use.result)):
        answered = f"{asked}\n[User answered] {middle_out(_answers(use), ANSWER)}"
        return Action("answer", answered if use.output else asked)
    if isinstance(plan, str) and len(plan) > RESULT:
        return Action("proposal", middle_out(plan, ANSWER))
    if steps_of(use) is not None or task_of(use) is not None:
        return None
    patch = patch_in(use.args)
    if patch is not None or changes:
        return _edit(use, patch, base)
    done = (_run(use, use.command, base) if use.command is not None else _look(use, base)) or _called(use)
    seen = " ".join(map(media_label, media_in(use)))
    return msgspec.structs.replace(done, text=f"{done.text} {seen}") if seen else done


def media_in(use: Use) -> list[Media]:
    """Return the images and documents that a call's result holds."""
    content = use.result.content if use.result is not None else ()
    return [part for part in content if isinstance(part, Media)]


# ---- the user


def _question(use: Use) -> str:
    """Return the question that a call puts to the user, with its options; "" where it puts none."""
    args, name = use.args, use.call.name
    if name.startswith("mcp__") or not _ASKS.search(name) or args.keys() - _BESIDE_A_QUESTION:
        return ""
    asked: list[str] = []
    for row in rows_of(args.get("questions"), 50) or [args]:
        text = row.get("question") or row.get("message") or row.get("prompt")
        options = [*map(_label, [*as_list(row.get("options")), *as_list(row.get("choices"))][:8])]
        if isinstance(text, str) and text and "answer" not in row:
            shown = f" ({' / '.join(options)})" if any(options) else ""
            asked.append(f"{cut(' '.join(text.split()), QUESTION)}{shown}")
    return "[Asked] " + " ".join(asked) if asked else ""


def _answers(use: Use) -> str:
    """Return the answers of a result: the strings of JSON, else its text without frame and questions."""
    try:
        found = list(strings(msgspec.json.decode(use.output), depth=6))
    except (msgspec.DecodeError, RecursionError):
        found = []
    text = "; ".join(found) or _FRAME.sub("", use.output)
    for row in rows_of(use.args.get("questions"), 50):
        text = text.replace(f'"{row.get("question")}"=', "")
    return text


def _label(option: Any) -> str:
    label: Any = option
    if isinstance(option, dict):
        row = by_plain_key(option)
        label = next((row[key] for key in ("label", "title", "value", "name") if row.get(key)), "")
    return cut(str(label), 80)


def _refused(use: Use, words: str) -> Action:
    """Return what the user refused, and the reason given."""
    what = use.command or next((touch.path for touch in use.touches), "") or use.call.name
    return Action(
        "refused",
        f"[User refused: {cut(' '.join(what.split()), ARGUMENT)}] {middle_out(words, ANSWER)}".rstrip(),
    )


# ---- plans


_STATE = ("status", "state", "done", "completed", "complete", "checked")
_STEP = ("content", "text", "task", "step", "title", "subject", "name", "description", "todo", "item")


_OF_PLANS = re.compile(r"(?i:todo)|(?:^|[\W_]|(?<=[a-z])(?=[PT]))(?i:plan|task)s?(?![a-z])")
_PLAN_KEYS = re.compile(r"(?:todo|task|plan)(?:s|list|items?)?|steps")


def steps_of(use: Use) -> list[tuple[str, str]] | None:
    """Return the steps of the todo list or plan that a call writes, each with its state; None for others.

    The tool's name or the list's key says that it is one: any other list of things with states is data.
    """
    args, named = use.args, _OF_PLANS.search(use.call.name) is not None
    for key, value in args.items():
        known = _PLAN_KEYS.fullmatch(key) is not None
        if value == [] and known and (named or len(args) == 1):
            return []
        found = [(_step(row), _state(row)) for row in rows_of(value)]
        of_plan = known or (named and len(args) <= 2)  # the list, and a word of why or how
        if of_plan and found and all(text and state is not None for text, state in found):
            return [(cut(" ".join(text.split()), 300), state or "") for text, state in found]
    return None


def _step(row: dict[str, Any]) -> str:
    return next((value for key in _STEP if isinstance(value := row.get(key), str) and value.strip()), "")


def _state(row: dict[str, Any]) -> str | None:
    for key in _STATE:
        value = row.get(key)
        if isinstance(value, bool):
            return "completed" if value else "pending"
        if isinstance(value, str) and len(value) <= 40:
            return value
    return None


_LISTS_TASKS = re.compile(
    r"(?:task|todo)s?(?:list|read|get)|(?:list|read|get)(?:task|todo)s?|(?:enter|exit)planmode"
)
_UPDATES = re.compile(r"(?:task|todo)update|update(?:task|todo)")
_ID = ("taskid", "todoid", "id", "itemid")


def task_of(use: Use) -> tuple[str, str] | None:
    """Return one task that a call creates or updates, "#3 its subject" or "#3" alone, and its state if given.

    ("", "") for a call that only lists tasks; None for one that says neither its subject nor its state.
    """
    args, name = use.args, plain(use.call.name)
    if not _OF_PLANS.search(use.call.name) or use.result is None or use.passed is False:
        return None
    number = next((str(args[key]) for key in _ID if isinstance(args.get(key), str | int)), "")
    subject = next((value for key in ("subject", "title") if isinstance(value := args.get(key), str)), "")
    state = next((value for key in ("status", "state") if isinstance(value := args.get(key), str)), "")
    if not number and subject:
        made = re.search(r"#(\w{1,12})\b", use.result.text[:300])
        number, state = made[1] if made else "", state or "pending"
    if not 0 < len(number) <= 12:
        return ("", "") if not args and _LISTS_TASKS.fullmatch(name) else None
    if not (subject or state or _UPDATES.fullmatch(name)):
        return None
    return cut(f"#{number} {subject}".strip(), 300), state


# ---- changes


def _edit(use: Use, patch: str | None, base: str) -> Action:
    made = [touch for touch in use.touches if touch.status != "read"]
    changed = dict.fromkeys(relative(touch.path, base) for touch in made)
    verbs = {{"created": "write", "deleted": "delete"}.get(touch.status, "edit") for touch in made}
    verb = verbs.pop() if len(verbs) == 1 else "edit"
    paths = ", ".join(list(changed)[:8]) + (f" and {len(changed) - 8} more" if len(changed) > 8 else "")
    failed = " (failed)" if use.passed is False else ""
    told, more = _novelty(use.args, patch)
    return Action("edit", f"{verb} {paths}{failed}{told}", more=more)


def _novelty(args: dict[str, Any], patch: str | None) -> tuple[str, str]:
    """Say what an edit changed: its one line, or the names it defines, and its old and new lines."""
    old, new = _sides(args, patch)
    gone, fresh = _lines_not_in(old, new), _lines_not_in(new, old)
    if len(fresh) == 1 and len(fresh[0].strip()) <= ARGUMENT:
        before = f"`{gone[0].strip()}` → " if len(gone) == 1 and len(gone[0].strip()) <= ARGUMENT else ""
        return f": {before}`{fresh[0].strip()}`", ""
    known = {name.text for name in names.find(old)}
    found = Counter(name.text for line in fresh for name in names.in_line(line) if name.text not in known)
    defined = (name.text for line in _heads(fresh) for name in names.in_line(line) if name.text in found)
    top = list(dict.fromkeys((*defined, *(name for name, _ in found.most_common(NAMES)))))[:NAMES]
    taken, put = outline(gone, REMOVED), outline(fresh, ADDED)
    rows = [*(f"- {line}" for line in taken), *(f"+ {line}" if taken else line for line in put)]
    return f": adds {', '.join(top)}" if top else "", "\n".join(rows)


def _lines_not_in(text: str, other: str) -> list[str]:
    """Return the lines of a text that another one does not have, with their indentation."""
    known = {line.strip() for line in other.split("\n")}
    fresh = [line for line in text.split("\n") if line.strip() and line.strip() not in known]
    return dedent("\n".join(fresh)).split("\n") if fresh else []


def outline(lines: Sequence[str], most: int) -> list[str]:
    """Return lines in about `most` characters: where all are too many, those that are indented least."""
    with_words = [line for line in lines if _WORD.search(line)]
    for depth in sorted({_depth(line) for line in with_words}, reverse=True):
        shallow = [line for line in with_words if _depth(line) <= depth]
        if sum(len(line) + 1 for line in shallow) <= most:
            return shallow
    first = [line for line in with_words if _depth(line) == min(map(_depth, with_words))]
    return middle_out("\n".join(first), most).split("\n") if first else []


def _heads(lines: Sequence[str]) -> list[str]:
    """Return the lines that a more indented one follows, those that are indented least first."""
    found = [line for line, after in pairwise(lines) if _depth(after) > _depth(line)]
    return sorted(found, key=_depth)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _sides(args: dict[str, Any], patch: str | None) -> tuple[str, str]:
    if patch is not None:
        rows = patch[:SCANNED].split("\n")
        taken = "\n".join(row[1:] for row in rows if row.startswith("-") and not row.startswith("---"))
        return taken, "\n".join(row[1:] for row in rows if row.startswith("+") and not row.startswith("+++"))
    given = [args, *(row for value in args.values() for row in rows_of(value, 50))]
    pairs = [(key, text) for row in given for key, text in row.items() if isinstance(text, str)]
    old = "\n".join(text for key, text in pairs if key in OLD)
    new = "\n".join(text for key, text in pairs if key in NEW or key in WHOLE or key == "new")
    return old[:SCANNED], new[:SCANNED]


# ---- runs


def _run(use: Use, command: str, base: str) -> Action:
    short = _shown(command, folder_beside(use.args), base)
    if not is_notable(command):
        return Action("looked", _read(use, base) or f"$ {short}")
    ended = outcome(use.output, is_error=use.passed is False) if use.result else RunEnd(None, "no answer")
    made = list(_COMMITTED.finditer(uncoloured(use.output))) if "commit" in command else []
    if made and not any(elsewhere(step.cwd, base) for step in use.steps if git_verb(step) == "commit"):
        branch, key, subject = made[-1].groups()
        fact = CommitFact(key, branch, cut(subject, SUBJECT), entries=use.cites)
        return Action("commit", f"commit {key} {fact.subject} (on {branch})", short, ended, fact)
    text = f"$ {_described(short, use.args)}"
    refused = refusal(use.result, quotes=False) if use.result is not None else None
    if refused is not None:  # on the word of a tool's output: the user may have said nothing
        return Action("ran", f"{text} -> refused: {middle_out(' '.join(refused.split()), QUESTION)}", short)
    more = "" if ended.passed else printed(use.output, MORE)
    text = f"{text} -> {ended.text}" if ended.text else text
    return Action("ran", text, short, ended, more=more if more.count("\n") >= FEW else "")


def _described(short: str, args: dict[str, Any]) -> str:
    """Return a command; a long one with its caller's description appended."""
    about = args.get("description")
    if len(short) <= DESCRIBED or not isinstance(about, str) or not about.strip():
        return short
    return f"{short}  # {cut(' '.join(about.replace(' -> ', '->').split()), DESCRIBED)}"


def _read(use: Use, base: str) -> str:
    """Tell of a command that does nothing but show files, as of a tool that does; "" for another."""
    if len(use.touches) < len(use.steps) or any(touch.status != "read" for touch in use.touches):
        return ""
    return f"read {', '.join(dict.fromkeys(relative(touch.path, base) for touch in use.touches))}"


def _shown(command: str, beside: str, base: str) -> str:
    """Spell a command so that equal runs look equal: with its folder, unless that of the work."""
    folder, short = normal(command, beside)
    inside = "" if not folder or f"{folder}/" == base else f"(in {relative(folder, base)}) "
    if base:
        short = short.replace(f" -C {base.rstrip('/')} ", " ").replace(base, "")
    return inside + middle_out(short.replace(" -> ", "->"), COMMAND)  # the arrow introduces the outcome


# ---- looks, and all else


_SOUGHT = ("pattern", "query", "regex", "q", "glob", "searchterm")


def _look(use: Use, base: str) -> Action | None:
    given = {key: value for key, value in use.args.items() if isinstance(value, str)}
    sought = next((given[key] for key in _SOUGHT if key in given), "")
    read = [relative(path, base) for path in paths_in(use.args)]
    where = next(iter(read), given.get("url", given.get("uri", "")))
    failed = " (failed)" if use.passed is False else ""
    if sought:
        inside = f" in {cut(where, ARGUMENT)}" if where else ""
        text = f"searched {cut(' '.join(sought.split()), 80)!r}{inside}{failed}"
        return Action("looked", f"{text}{_hits(use.output, base)}" if use.result is not None else text)
    return Action("looked", f"read {cut(where, ARGUMENT)}{failed}") if where else None


def _hits(output: str, base: str) -> str:
    """Say what a search found: its one or two lines, or how many."""
    lines = [line.strip() for line in uncoloured(output[:SCANNED]).split("\n") if line.strip()]
    if len(lines) <= HITS:
        return (
            f" -> {cut(', '.join(lines).replace(base, '').replace('; ', ', '), RESULT)}"
            if lines
            else " -> nothing"
        )
    return f" -> {len(lines)} lines"


def _called(use: Use) -> Action:
    given = use.call.arguments
    pairs = list(given.items()) if isinstance(given, dict) else [("input", given)] if given else []
    arguments = ", ".join(_argument(key, value) for key, value in pairs[:4])
    output = cut(" ".join(use.output[:SCANNED].split()), RESULT)
    most = REPORT if isinstance(use.args.get("prompt"), str) else MORE
    more = middle_out(use.output, most) if len(use.output) > RESULT else ""
    failed = " (failed)" if use.passed is False else ""
    return Action(
        "called", f"{use.call.name}({arguments}){failed}" + (f" -> {output}" if output else ""), more=more
    )


def _argument(key: str, value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"{key}={cut(' '.join(text[:SCANNED].split()), ARGUMENT)}"


# ---- a stretch of entries


NOTHING: Final = Ledger()


class Stretch(msgspec.Struct, frozen=True):
    """Entries in order, their calls, the folder of the work, and what is known of what came before them."""

    entries: Sequence[Said]
    calls: Sequence[Use] = ()
    base: str = ""
    before: Ledger = NOTHING


def stretch(entries: Sequence[Said], before: Ledger = NOTHING) -> Stretch:
    """Read the calls of entries, and what each did."""
    entries = [_opened(entry) for entry in entries]
    calls = uses(entries)
    known = (fact.path for fact in before.files for _ in fact.entries)
    base = folder_of_work(before.base, (*known, *(path for use in calls for path in _places(use))))
    for use in calls:
        use.done = action(use, base)
    return Stretch(entries, calls, base, before)


def _opened(entry: Said) -> Said:
    """Return an entry with what its provider ran as calls and results that can be read."""
    message = opened(entry.message)
    return entry if message is entry.message else msgspec.structs.replace(entry, message=message)


def _places(use: Use) -> Iterator[str]:
    """Yield the paths that a call touches, and the folder in which it ends."""
    yield from (touch.path for touch in use.touches)
    yield from (f"{step.cwd}/" for step in use.steps[-1:] if step.cwd)
