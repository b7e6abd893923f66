"""Messages as HTML: Markdown, coloured code, diffs, and JSON arguments as rows.

Safe by construction: HTML in a text is escaped, only web and mail addresses become links, no image is
loaded, and colours are classes. Control and bidirectional characters are removed first.
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

KEPT: Final = 512  # rendered texts in the cache: pages are reloaded often
LARGEST: Final = 20_000  # characters of code that are coloured, and of texts that are compared
ROWS: Final = 40  # values of an object or a list with a row each
LEVELS: Final = 3  # of nested rows
ON_A_LINE: Final = 80  # characters of JSON that stay on one line
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
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True, "highlight": _fenced})
    parser.enable("table").disable(["html_block", "html_inline", "image", "code", *without])
    parser.validateLink = lambda url: url.lower().startswith(_SCHEMES)
    parser.add_render_rule("link_open", _link)
    for cell in ("th_open", "td_open"):
        parser.add_render_rule(cell, _cell)
    return parser


def _link(renderer: Any, tokens: Any, place: int, options: Any, _env: Any) -> str:
    """Open a link in a new tab, without a referrer."""
    tokens[place].attrSet("rel", "noopener noreferrer nofollow")
    tokens[place].attrSet("target", "_blank")
    return renderer.renderToken(tokens, place, options, {})


def _cell(renderer: Any, tokens: Any, place: int, options: Any, _env: Any) -> str:
    """Align a cell by a class, because the page's policy forbids inline styles."""
    if "right" in str(tokens[place].attrs.pop("style", "")):
        tokens[place].attrSet("class", "n")
    return renderer.renderToken(tokens, place, options, {})


def _fenced(text: str, name: str, _attributes: str) -> str:
    return _coloured(text, _lexer_named(name))


_OURS: Final = _markdown()
# users rarely write Markdown: pasted text and names such as __init__ stay as they are
_USERS: Final = _markdown("heading", "lheading", "hr", "emphasis", "escape", "entity", "reference")


@lru_cache(KEPT)
def prose(text: str, who: str = "assistant") -> Markup:
    """Render a text as HTML; in a user's text only lists, code, tables and links are Markdown."""
    return _safe((_USERS if who == "user" else _OURS).render(clean(text)))


def unkept(text: str) -> Markup:
    """Render a whole session as HTML, without the cache."""
    return prose.__wrapped__(text)


def begins(text: str, most: int = 4_000) -> int:
    """Return where to cut a long text, whose rest is shown on a click: at a line break if possible."""
    if len(text) <= most:
        return len(text)
    return text.rfind("\n", most // 2, most) + 1 or most


def _safe(html: str) -> Markup:
    """Mark HTML as safe: every text in it is escaped."""
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
    """Render a text as code, coloured by its file's name or its language, with its line numbers."""
    cleaned = clean(text)
    if _DIFF.search(cleaned[:2_000]):
        return _diff_lines(cleaned.split("\n"))
    lexer = _lexer_of(path) or _lexer_named(name)
    lines = cleaned.split("\n")
    parts = [_NUMBERED.match(line) for line in lines]
    if lexer is None or not lines or parts[0] is None:
        return _safe(_coloured(cleaned, lexer))
    numbers = [part[1] if part else "" for part in parts]
    plain = "\n".join(part[3] if part else line for part, line in zip(parts, lines, strict=True))
    inner = _coloured(plain, lexer).split("\n")
    pairs = zip(numbers, [*inner, *[""] * (len(numbers) - len(inner))], strict=False)
    return _safe("\n".join(f'<span class="no">{number}</span> {line}' for number, line in pairs))


def diff(before: str, after: str) -> Markup:
    """Render the change of a text as a coloured diff."""
    lines = difflib.unified_diff(clean(before).split("\n"), clean(after).split("\n"), lineterm="", n=2)
    return _diff_lines(list(lines)[2:])


def _diff_lines(lines: list[str]) -> Markup:
    """Colour the lines of a diff."""
    kinds = {"+": "gi", "-": "gd", "@": "gu"}
    spans = [f'<span class="hl-{kinds.get(line[:1], "x")}">{escape(line)}</span>' for line in lines]
    return _safe("\n".join(spans))


# ---- JSON: arguments and results of calls


class JsonRow(msgspec.Struct, frozen=True):
    """A value of a JSON object or list: its name, its text, and its HTML; `long` if it needs a block.

    `inside` are the rows of a nested object or list.
    """

    name: str
    text: str
    html: Markup
    long: bool = False
    inside: Sequence[JsonRow] = ()


def _json(text: str) -> Whole | None:
    """Parse a JSON object or list; None for anything else, or if it is nested too deeply."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = msgspec.json.decode(text, type=Whole)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return None if is_deep(value, DEEPEST) else value


def fields_of(text: str) -> dict[str, Any] | None:
    """Parse a JSON object; None for anything else, or if it is nested too deeply."""
    value = _json(text)
    return value if isinstance(value, dict) else None


def rows(text: str) -> list[JsonRow] | None:
    """Return JSON as rows, an edit as a diff; None unless it is an object or a list with objects."""
    value = _json(text)
    if value is None or (isinstance(value, list) and not any(isinstance(item, dict) for item in value)):
        return None
    return _inside(value, LEVELS if len(text) <= LARGEST else 0)


def _inside(whole: Whole, levels: int) -> list[JsonRow]:
    """Return the values of an object or a list as rows; values past `ROWS` share the last row."""
    fields = whole if isinstance(whole, dict) else {str(n): item for n, item in enumerate(whole)}
    path = _first(fields, _PATHS)
    old, new = (next((name for name in names if name in fields), "") for names in (_BEFORE, _AFTER))
    is_edit = all(isinstance(fields.get(name), str) and len(fields[name]) <= LARGEST for name in (old, new))
    result: list[JsonRow] = []
    for name in islice(fields, ROWS):
        if is_edit and name == new:
            continue
        if is_edit and name == old:
            result.append(JsonRow("change", "", diff(fields[old], fields[new]), long=True))
        else:
            result.append(_row(name, fields[name], path, levels))
    if rest := list(islice(fields, ROWS, None)):
        more = {name: fields[name] for name in rest} if whole is fields else [fields[name] for name in rest]
        result.append(_row(f"{len(rest)} more", more, path, 0))
    return result


def _row(name: str, value: Any, path: str, levels: int) -> JsonRow:
    text = value if isinstance(value, str) else encode_utf8(value).decode()
    long = "\n" in text or len(text) > 200
    if isinstance(value, dict | list) and len(text) > ON_A_LINE:
        if levels:
            return JsonRow(name, text, Markup(), long=True, inside=_inside(cast("Whole", value), levels - 1))
        text, long = pretty(value).decode(), True
    if isinstance(value, str):
        html = code(text, name="bash") if name in _SHELL else code(text, path if long else "")
    else:
        html = code(text, name="json")
    return JsonRow(name, text, html, long)


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), "")


def path_in(call: ShownPart | None) -> str:
    """Return the path in a call's arguments, "" for none."""
    fields = fields_of(call.text) if call is not None else None
    return _first(fields, _PATHS) if fields else ""


FILTERS: Final[tuple[Callable[..., Any], ...]] = (prose, begins, code, rows, path_in)
