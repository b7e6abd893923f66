"""Pages from templates: everything that a session holds is escaped, and no script of anybody else's runs."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.responses import Response

from foldline.core.log.entries import dated
from foldline.service.web import prose
from foldline.service.web.shown import called, marked, start, summary_failure, who
from foldline.terminal import clean

# no inline script or style, nothing from elsewhere, no frame around the page
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
}
REASONS: Final = {
    "manual": "asked for by hand",
    "threshold": "the window was nearly full",
    "overflow": "a request did not fit",
    "model_switch": "another model took over",
    "agent": "the model asked for it",
    "target": "a size was asked for",
    "imported": "made by another agent",
}


def tokens(count: float | None) -> str:
    """Return a count with thousands set apart; `-` for none."""
    return "-" if count is None else f"{count:,.0f}"


def short(count: float | None) -> str:
    """Return a count in three letters or so: 950, 1.2k, 38k, 1.4M."""
    if count is None:
        return "-"
    for limit, letter in ((1e6, "M"), (1e3, "k")):
        if count >= limit:
            return f"{count / limit:.{0 if count >= 10 * limit else 1}f}{letter}"
    return f"{count:.0f}"


def plural(count: int, what: str, many: str = "") -> str:
    """Return a count with what is counted: 1 fold, 2 folds."""
    return f"{count:,} {what if count == 1 else many or f'{what}s'}"


def money(dollars: float | None) -> str:
    """Return a price."""
    if dollars is None:
        return "-"
    return f"${dollars:,.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"


def about(dollars: float) -> str:
    """Return a price that is only an estimate: two digits of it."""
    return money(dollars) if dollars >= 1 else f"${float(f'{dollars:.2g}'):.{2 if dollars >= 0.1 else 3}f}"


def seconds(milliseconds: float) -> str:
    """Return how long something took, in seconds."""
    return f"{milliseconds / 1_000:.{1 if milliseconds >= 100 else 2}f} s"


def usd(dollars: float | None) -> str:
    """Return a price as a list shows it: to the cent; `-` for one that is not known."""
    if dollars is None:
        return "-"
    sign, amount = ("−" if dollars < 0 else ""), abs(dollars)
    return f"{sign}<$0.01" if 0 < amount < 0.005 else f"{sign}${amount:,.2f}"


def moment(at: float | None) -> str:
    """Return Unix time as UTC, to the minute; empty for none."""
    return _in_utc("%Y-%m-%d %H:%M UTC", at)


def ago(at: float | None) -> str:
    """Return how long ago Unix time is: 5 s ago, 3 min ago, 2 h ago, 5 days ago; older: a date."""
    if (at := dated(at)) is None:
        return ""
    seconds = max(0.0, time.time() - at)
    for limit, size, unit in ((60, 1, "s"), (3_600, 60, "min"), (86_400, 3_600, "h")):
        if seconds < limit:
            return f"{seconds // size:.0f} {unit} ago"
    days = int(seconds // 86_400)
    return f"{plural(days, 'day')} ago" if days < 30 else _in_utc("%Y-%m-%d", at)


def instant(at: float) -> str:
    """Return Unix time as a machine reads it."""
    return _in_utc("%Y-%m-%dT%H:%M:%SZ", at)


def _in_utc(form: str, at: float | None) -> str:
    return "" if (at := dated(at)) is None else time.strftime(form, time.gmtime(at))


def segment(text: str) -> str:
    """Return a text as one part of a path, from which `PageRequest.session` reads it.

    A path is decoded before it is parted, and a browser leaves dots out: such characters are encoded twice.
    """
    once = text.replace("%", "%25").replace("/", "%2F")
    return quote(f"%2E{once[1:]}" if once.startswith(".") else once, safe="")


def model_name(name: str) -> str:
    """Return a model without who provides it, and where."""
    return name.partition("@")[0].partition(":")[2] or name


def because(reason: str) -> str:
    """Return why a boundary was made, in words."""
    return REASONS.get(reason, reason)


def _shown(value: Any) -> Any:
    """Return what a template shows of a value: of a text, nothing that turns what stands around it."""
    return clean(value) if type(value) is str else value


def _templates() -> Environment:
    """Return the templates, with what they call of Python."""
    found = Environment(
        loader=PackageLoader("foldline.service.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    words = (tokens, short, money, usd, moment, ago, instant, segment, model_name, because, plural)
    filters: dict[str, Any] = found.filters
    for one in (*words, seconds, about, who, start, called, marked, summary_failure, *prose.FILTERS):
        filters[one.__name__] = one
    return found


_TEMPLATES: Final = _templates()


def rendered(
    name: str, status: int = 200, headers: Mapping[str, str] | None = None, **given: Any
) -> Response:
    """Return a template filled in, as an answer."""
    text = _TEMPLATES.get_template(name).render(**given)
    return Response(text, status, media_type="text/html", headers={**HEADERS, **(headers or {})})
