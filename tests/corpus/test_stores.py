"""Every recorded session from SQLite to PostgreSQL and back."""

from __future__ import annotations

from io import BytesIO

import pytest
from tests.support import corpus

from foldline.exports import ExportRequest, export_stored
from foldline.loading import restore, with_notes
from foldline.stores import SqliteStore, Store, open_store
from foldline.stores.transfer import differences, transfer
from foldline.transcripts import dump

pytest.importorskip("psycopg", reason="needs the extra foldline[postgres]")
pytestmark = [pytest.mark.corpus, pytest.mark.slow]


async def exported(store: Store, session: str) -> list[bytes]:
    """A session in our own lossless form, and as another tool has it."""
    own, chat = BytesIO(), BytesIO()
    dump([entry async for entry in store.all(session)], own, session=session, leaf=await store.leaf(session))
    await export_stored(store, session, ExportRequest(form="openai-chat", cwd="/"), chat.write)
    return [own.getvalue(), chat.getvalue()]


async def test_every_recorded_session_goes_to_postgres_and_back(recorded, postgres_url, tmp_path):
    one, two, three = SqliteStore(tmp_path / "1.db"), open_store(postgres_url), SqliteStore(tmp_path / "3.db")
    files = [*corpus.sessions(recorded), *sorted((recorded / "native").glob("*.jsonl"))]
    for number, file in enumerate(files):
        loaded = corpus.with_boundaries(file)
        log = with_notes(loaded)
        if log:
            await restore(one, f"{file.stem} {number}", log, (loaded.entries or log)[-1].id)
    assert await one.count() > 200
    for source, target in ((one, two), (two, three)):
        assert [found.problem async for found in transfer(source, target) if found.problem] == []
        assert [line async for line in differences(source, target)] == []
    for store in (one, two, three):
        assert await store.verify() == []
        assert await store.sessions() == await one.sessions()
    for info in await one.sessions():
        exports = [await exported(store, info.id) for store in (one, two, three)]
        assert exports[0] == exports[1] == exports[2]
    for store in (one, two, three):
        await store.close()
