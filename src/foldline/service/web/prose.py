"""What was said as HTML: Markdown, code in colours, diffs, and what a tool is given as rows.

Safe by how it is made: HTML in a text is shown as text, only links to the web and to mail are links,
no image is loaded, and colours are classes. A text is cleaned first of what turns the characters around it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from html import escape
from itertools import islice
from typing import Any, Final, cast

import msgspec
from markdown_it import MarkdownIt
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import (
    get_lexer_by_name,  # pyright: ignore[reportUnknownVariableType]
    get_lexer_for_filename,  # pyright: ignore[reportUnknownVariableType]
)
from pygments.util import ClassNotFound

from foldline.core.log.codec import encode_utf8, pretty
from foldline.dialects.payload import DEEPEST, is_deep
from foldline.service.api.history import ShownPart
from foldline.terminal import clean

KEPT: Final = 512  # texts that are remembered as HTML: a page is asked for again and again
LARGEST: Final = 20_000  # characters of code that are coloured, and of texts that are compared
ROWS: Final = 40  # values of an object or a list that are shown as rows of their own
LEVELS: Final = 3  # of rows within rows
ON_A_LINE: Final = 80  # characters of an object or a list that is no rows
_SCHEMES: Final = ("http://", "https://", "mailto:")
_PATHS: Final = ("file_path", "path", "filename", "file", "notebook_path")
_BEFORE: Final = ("old_string", "old_text", "old_str", "old")
_AFTER: Final = ("new_string", "new_text", "new_str", "new")
_SHELL: Final = ("command", "cmd", "script")
_NUMBERED: Final = re.compile(r"^( *\d+)(→|\t|: |\| )(.*)$")  # a line as tools print files
_DIFF: Final = re.compile(r"^(diff --git |--- \S.*\n\+\+\+ |@@ -\d)", re.MULTILINE)
_AS_IT_IS: Final = {"stripnl": False, "ensurenl": False}  # options of a lexer: every line stays
_FORMATTER: Final = HtmlFormatter[str](nowrap=True, classprefix="hl-")
Whole = dict[str, Any] | list[Any]  # an object or a list of JSON


def _markdown(*without: str) -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True, "highlight": _fenced})
    made.enable("table").disable(["html_block", "html_inline", "image", "code", *without])
    made.validateLink = lambda url: url.lower().startswith(_SCHEMES)
    made.add_render_rule("link_open", _link)
    for cell in ("th_open", "td_open"):
        made.add_render_rule(cell, _cell)
    return made


def _link(renderer: Any, tokens: Any, place: int, options: Any, _env: Any) -> str:
    """Write the start of a link: it leads away from the session, and tells nothing of it."""
    tokens[place].attrSet("rel", "noopener noreferrer nofollow")
    tokens[place].attrSet("target", "_blank")
    return renderer.renderToken(tokens, place, options, {})


def _cell(renderer: Any, tokens: Any, place: int, options: Any, _env: Any) -> str:
    """Write the start of a cell: it is set by a class, since the page allows no style in its markup."""
    if "right" in str(tokens[place].attrs.pop("style", "")):
        tokens[place].attrSet("class", "n")
    return renderer.renderToken(tokens, place, options, {})


def _fenced(text: str, name: str, _given: str) -> str:
    return _coloured(text, _lexer_named(name))


_OURS: Final = _markdown()
# of a user Markdown is not expected: what pastes or names such as __init__ are is left as it is
_USERS: Final = _markdown("heading", "lheading", "hr", "emphasis", "escape", "entity", "reference")


@lru_cache(KEPT)
def prose(text: str, who: str = "assistant") -> Markup:
    """Return words as HTML; of a user only lists, code, tables and links are read as Markdown."""
    return _safe((_USERS if who == "user" else _OURS).render(clean(text)))


def unkept(text: str) -> Markup:
    """Return a whole session as HTML, and remember nothing of it."""
    return prose.__wrapped__(text)


def begins(text: str, most: int = 4_000) -> int:
    """Return where a long text is cut, as the rest waits behind a click: at a line break, if it can be."""
    if len(text) <= most:
        return len(text)
    return text.rfind("\n", most // 2, most) + 1 or most


def _safe(html: str) -> Markup:
    """Return HTML that was made here, every text in it escaped."""
    return Markup(html)  # noqa: S704


# ---- code


@lru_cache(KEPT)
def _lexer_named(name: str) -> Lexer | None:
    try:
        return get_lexer_by_name(name, **_AS_IT_IS) if name else None
    except ClassNotFound:
        return None


@lru_cache(KEPT)
def _lexer_of(path: str) -> Lexer | None:
    try:
        return get_lexer_for_filename(path, None, **_AS_IT_IS) if path else None
    except ClassNotFound:
        return None


def _coloured(text: str, lexer: Lexer | None) -> str:
    if lexer is None or len(text) > LARGEST:
        return escape(text)
    return highlight(text, lexer, _FORMATTER)


@lru_cache(KEPT)
def code(text: str, path: str = "", name: str = "") -> Markup:
    """Return a text as code: coloured by its file's name or its language; line numbers stay beside it."""
    cleaned = clean(text)
    if _DIFF.search(cleaned[:2_000]):
        return _changes(cleaned.split("\n"))
    lexer = _lexer_of(path) or _lexer_named(name)
    lines = cleaned.split("\n")
    parts = [_NUMBERED.match(line) for line in lines]
    if lexer is None or not lines or parts[0] is None:
        return _safe(_coloured(cleaned, lexer))
    numbers = [found[1] if found else "" for found in parts]
    plain = "\n".join(found[3] if found else line for found, line in zip(parts, lines, strict=True))
    inner = _coloured(plain, lexer).split("\n")
    pairs = zip(numbers, [*inner, *[""] * (len(numbers) - len(inner))], strict=False)
    return _safe("\n".join(f'<span class="no">{number}</span> {line}' for number, line in pairs))


def diff(before: str, after: str) -> Markup:
    """Return a change of a text as a coloured diff."""
    lines = difflib.unified_diff(clean(before).split("\n"), clean(after).split("\n"), lineterm="", n=2)
    return _changes(list(lines)[2:])


def _changes(lines: list[str]) -> Markup:
    """Return the lines of a diff, each in the colour of what it does."""
    kinds = {"+": "gi", "-": "gd", "@": "gu"}
    drawn = [f'<span class="hl-{kinds.get(one[:1], "x")}">{escape(one)}</span>' for one in lines]
    return _safe("\n".join(drawn))


# ---- JSON: what calls are given, and what they answered


class JsonRow(msgspec.Struct, frozen=True):
    """A value of a JSON object or list: its name, and its text, drawn; `long` where it takes a block.

    What is `inside` an object or a list stands as rows again.
    """

    name: str
    text: str
    drawn: Markup
    long: bool = False
    inside: Sequence[JsonRow] = ()


def _json(text: str) -> Whole | None:
    """Return the object or list that a text is in JSON; None for something else, or nested too deep."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        found = msgspec.json.decode(text, type=Whole)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return None if is_deep(found, DEEPEST) else found


def fields_of(text: str) -> dict[str, Any] | None:
    """Return the object that a text is in JSON; None where it is something else, or nested too deep."""
    found = _json(text)
    return found if isinstance(found, dict) else None


def rows(text: str) -> list[JsonRow] | None:
    """Return JSON as rows, an edit in it as a diff; None where it is no object, and no list with one."""
    found = _json(text)
    if found is None or (isinstance(found, list) and not any(isinstance(one, dict) for one in found)):
        return None
    return _inside(found, LEVELS if len(text) <= LARGEST else 0)


def _inside(whole: Whole, levels: int) -> list[JsonRow]:
    """Return the values of an object or a list as rows; of many, the last as one."""
    fields = whole if isinstance(whole, dict) else {str(n): one for n, one in enumerate(whole)}
    path = _first(fields, _PATHS)
    old, new = (next((name for name in names if name in fields), "") for names in (_BEFORE, _AFTER))
    edits = all(isinstance(fields.get(one), str) and len(fields[one]) <= LARGEST for one in (old, new))
    found: list[JsonRow] = []
    for name in islice(fields, ROWS):
        if edits and name == new:
            continue
        if edits and name == old:
            found.append(JsonRow("change", "", diff(fields[old], fields[new]), long=True))
        else:
            found.append(_row(name, fields[name], path, levels))
    if rest := list(islice(fields, ROWS, None)):
        more = {name: fields[name] for name in rest} if whole is fields else [fields[name] for name in rest]
        found.append(_row(f"{len(rest)} more", more, path, 0))
    return found


def _row(name: str, value: Any, path: str, levels: int) -> JsonRow:
    words = value if isinstance(value, str) else encode_utf8(value).decode()
    long = "\n" in words or len(words) > 200
    if isinstance(value, dict | list) and len(words) > ON_A_LINE:
        if levels:
            return JsonRow(name, words, Markup(), long=True, inside=_inside(cast("Whole", value), levels - 1))
        words, long = pretty(value).decode(), True
    if isinstance(value, str):
        drawn = code(words, name="bash") if name in _SHELL else code(words, path if long else "")
    else:
        drawn = code(words, name="json")
    return JsonRow(name, words, drawn, long)


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), "")


def path_in(call: ShownPart | None) -> str:
    """Return the file that a call is about; "" for none."""
    fields = fields_of(call.text) if call is not None else None
    return _first(fields, _PATHS) if fields else ""


FILTERS: Final[tuple[Callable[..., Any], ...]] = (prose, begins, code, rows, path_in)
