"""`foldline sessions`: list the stored sessions."""

from __future__ import annotations

from datetime import UTC, datetime

import click
import msgspec

from foldline.cli.options import json_option, store_option
from foldline.cli.output import out, print_json, row, table
from foldline.cli.store import with_store
from foldline.core.log.entries import Said
from foldline.core.secrets.redact import redact
from foldline.errors import StoreError
from foldline.stores import SessionInfo, Store

TITLE = 60  # characters of a first request that stand for a title
FIRST = 50  # entries among which it is looked for


@click.command(
    epilog="\b\nExamples:\n  foldline sessions\n  foldline sessions --store sqlite:///team.db --json"
)
@store_option
@json_option
def command(store_url: str | None, as_json: bool) -> None:
    """List the stored sessions, the last updated first."""
    found = with_store(store_url, _sessions)
    if as_json:
        print_json(msgspec.to_builtins(found))
        return
    if not found:
        out().print("No session is stored yet: `foldline import FILE` adds one.")
        return
    rows = table("=id", "title", "#messages", "#tokens", "#compactions", "=updated")
    for info in found:
        when = datetime.fromtimestamp(info.updated, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
        figures = (f"{info.messages:,}", f"{info.tokens:,}", f"{info.compactions:,}")
        row(rows, info.id, info.title, *figures, when)
    out().print(rows)


async def _sessions(store: Store) -> list[SessionInfo]:
    """Return every session; one without a title has the beginning of its first request as one."""
    infos = await store.sessions()
    return [
        msgspec.structs.replace(info, title=redact(info.title).strip() or await _first_request(store, info))
        for info in infos
    ]


async def _first_request(store: Store, info: SessionInfo) -> str:
    looked = 0
    try:
        async for entry in store.path(info.id):
            if isinstance(entry, Said) and entry.message.is_prompt and entry.message.text.strip():
                return cut_to(" ".join(redact(entry.message.text).split()), TITLE)
            looked += 1
            if looked > FIRST:
                break
    except StoreError:
        pass  # `verify` says what is damaged; the list must still be shown
    return ""


def cut_to(text: str, most: int) -> str:
    """Return a text of at most `most` characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
