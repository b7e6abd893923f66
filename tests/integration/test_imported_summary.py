"""The summary in another agent's file, which alone tells of what stood before: found and read after later folds."""

from __future__ import annotations

import json
from io import BytesIO

import pytest
from tests.integration.test_session import WINDOW, fill

import foldline
from foldline.core.log.entries import Compacted
from foldline.loading import from_stream, restore, with_notes
from foldline.stores import open_store

SUMMARY = "This session is being continued. The tide table of Vrangö is in tides/vrango.csv, key TIDE-5150."


def claude_code() -> bytes:
    """A session that was compacted, and its file cut off before that."""
    common = {
        "sessionId": "c",
        "cwd": "/harbour",
        "version": "2.1.0",
        "timestamp": "2026-03-04T05:06:07.000Z",
    }
    metadata = {"trigger": "auto", "preTokens": 150_000}
    lines = [
        {"type": "system", "subtype": "compact_boundary", "compactMetadata": metadata},
        {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": SUMMARY}},
        {"type": "user", "message": {"role": "user", "content": "Mend the crane now."}},
    ]
    rows = [
        {**common, **line, "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None}
        for n, line in enumerate(lines)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres"])
async def test_an_imported_summary_is_found_and_read_after_later_folds(request, tmp_path, kind):
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path / 's.db'}"}
    url = urls.get(kind) or request.getfixturevalue("postgres_url")
    loaded = from_stream(BytesIO(claude_code()), "c.jsonl")
    store = open_store(url)
    await restore(store, "s", with_notes(loaded), loaded.entries[-1].id)
    async with foldline.open(store, "s", window=WINDOW) as session:
        for _ in range(2):
            await fill(session, 8)
            await session.compact()
        path = [entry async for entry in store.path("s") if isinstance(entry, Compacted)]
        assert len(path) > 2
        assert [entry.id for entry in path if entry.receipt.reason == "imported"] == [path[0].id]

        (hit,) = await session.recall("TIDE-5150")
        assert (hit.entry, hit.role) == (path[0].id, "summary")
        assert [one.entry for one in await session.recall("tides/vrango.csv")] == [hit.entry]
        passage = await session.read(hit.entry)
        assert (passage.role, passage.text) == ("summary", SUMMARY)
        assert SUMMARY in await session.call_tool("recall_read", {"entry": hit.entry})
        assert hit.entry in await session.call_tool("recall_search", {"query": "vrango"})
        with pytest.raises(foldline.InputError):
            await session.read(path[-1].id)
    await store.close()
