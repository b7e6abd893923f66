"""Rendering of templates: all texts of a session are escaped, and only our own scripts run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, cast
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from starlette.responses import Response

from foldline.core.log.entries import dated
from foldline.service.web import prose
from foldline.service.web.shown import called, marked, start, summary_failure, who
from foldline.terminal import clean

# no inline script or style, nothing from other hosts, no frames
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
    "manual": "requested by hand",
    "threshold": "the window was nearly full",
    "overflow": "a request did not fit",
    "model_switch": "another model took over",
    "agent": "requested by the model",
    "target": "a target size was requested",
    "imported": "made by another agent",
}


def tokens(count: float | None) -> str:
    """Return a count with thousands separators, `-` for None."""
    return "-" if count is None else f"{count:,.0f}"


def short(count: float | None) -> str:
    """Return a short count: 950, 1.2k, 38k, 1.4M."""
    if count is None:
        return "-"
    for limit, letter in ((1e6, "M"), (1e3, "k")):
        if count >= limit:
            return f"{count / limit:.{0 if count >= 10 * limit else 1}f}{letter}"
    return f"{count:.0f}"


def plural(count: int, what: str, many: str = "") -> str:
    """Return a count with its noun: 1 fold, 2 folds."""
    return f"{count:,} {what if count == 1 else many or f'{what}s'}"


def money(dollars: float | None) -> str:
    """Return a price, `-` for None; under a dollar with four digits."""
    if dollars is None:
        return "-"
    return f"${dollars:,.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"


def about(dollars: float) -> str:
    """Return an estimated price with two significant digits."""
    return money(dollars) if dollars >= 1 else f"${float(f'{dollars:.2g}'):.{2 if dollars >= 0.1 else 3}f}"


def seconds(milliseconds: float) -> str:
    """Return a duration in seconds."""
    return f"{milliseconds / 1_000:.{1 if milliseconds >= 100 else 2}f} s"


def usd(dollars: float | None) -> str:
    """Return a price to the cent, `-` for None."""
    if dollars is None:
        return "-"
    sign, amount = ("−" if dollars < 0 else ""), abs(dollars)
    return f"{sign}<$0.01" if 0 < amount < 0.005 else f"{sign}${amount:,.2f}"


def moment(at: float | None) -> str:
    """Return Unix time as UTC to the minute, "" for None."""
    return _in_utc("%Y-%m-%d %H:%M UTC", at)


def ago(at: float | None) -> str:
    """Return the age of a Unix time: 5 s ago, 3 min ago, 2 h ago, 5 days ago; a date after a month."""
    if (at := dated(at)) is None:
        return ""
    seconds = max(0.0, time.time() - at)
    for limit, size, unit in ((60, 1, "s"), (3_600, 60, "min"), (86_400, 3_600, "h")):
        if seconds < limit:
            return f"{seconds // size:.0f} {unit} ago"
    days = int(seconds // 86_400)
    return f"{plural(days, 'day')} ago" if days < 30 else _in_utc("%Y-%m-%d", at)


def instant(at: float) -> str:
    """Return Unix time in ISO 8601."""
    return _in_utc("%Y-%m-%dT%H:%M:%SZ", at)


def _in_utc(form: str, at: float | None) -> str:
    return "" if (at := dated(at)) is None else time.strftime(form, time.gmtime(at))


def segment(text: str) -> str:
    """Encode a text as one segment of a path, which `PageRequest.session` decodes.

    A path is decoded before it is split, and browsers remove dots: such characters are encoded twice.
    """
    encoded = text.replace("%", "%25").replace("/", "%2F")
    return quote(f"%2E{encoded[1:]}" if encoded.startswith(".") else encoded, safe="")


def model_name(name: str) -> str:
    """Return a model's name without provider and address."""
    return name.partition("@")[0].partition(":")[2] or name


def because(reason: str) -> str:
    """Return the reason of a boundary in words."""
    return REASONS.get(reason, reason)


def _cleaned(value: Any) -> Any:
    """Remove control and bidirectional characters from a text before a template shows it."""
    return clean(value) if type(value) is str else value


def _templates() -> Environment:
    """Load the templates, and add their filters."""
    environment = Environment(
        loader=PackageLoader("foldline.service.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_cleaned,
    )
    figures = (tokens, short, money, usd, about, seconds, plural, moment, ago, instant)
    texts = (segment, model_name, because, who, start, called, marked, summary_failure, *prose.FILTERS)
    for function in (*figures, *texts):
        environment.filters[function.__name__] = cast("Any", function)
    return environment


_TEMPLATES: Final = _templates()


def rendered(
    name: str, status: int = 200, headers: Mapping[str, str] | None = None, **context: Any
) -> Response:
    """Render a template as a response."""
    text = _TEMPLATES.get_template(name).render(**context)
    return Response(text, status, media_type="text/html", headers={**HEADERS, **(headers or {})})
