"""A session file is read while its agent writes it, and imported again and again."""

from __future__ import annotations

import io
from secrets import token_hex

import pytest
from tests.transcripts import test_codex as codex
from tests.transcripts import test_copilot as copilot
from tests.transcripts import test_gemini as gemini
from tests.transcripts import test_moldable as fixture
from tests.transcripts import test_opencode as opencode
from tests.transcripts.reading import lines, messages_in
from tests.transcripts.test_claude_code import File

from foldline.core.log.entries import Said
from foldline.errors import SessionDiverged, StoreError
from foldline.loading import from_stream, restore, with_notes
from foldline.stores import MemoryStore, SqliteStore
from foldline.transcripts import read


def claude_code():
    """Two calls, whose results come one after the other; then a reply that begins with an empty line."""
    file = File()
    file.user("Read both.")
    first = file.reply("r1", {"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "a"}})
    second = file.reply("r1", {"type": "tool_use", "id": "c2", "name": "Read", "input": {"path": "b"}})
    for caller, call in ((first, "c1"), (second, "c2")):
        file.user([{"type": "tool_result", "tool_use_id": call, "content": "ok"}], parent=caller)
    file.reply("r2", {"type": "text", "text": "\n\n"})
    file.reply("r2", {"type": "thinking", "thinking": "Hm.", "signature": "s"})
    file.reply("r2", {"type": "text", "text": "Done."})
    return [lines(*file.rows[:count]) for count in range(1, len(file.rows) + 1)]


def gemini_cli():
    """A second call is written into a reply whose first call is answered already."""
    asked = gemini.user("m1", [{"text": "Read both."}])
    answered = [gemini.call("c1", "A"), gemini.call("c2", "B")]
    return [
        gemini.document(asked, gemini.gemini("m2", "Reading.", toolCalls=answered[:count]))
        for count in (1, 2)
    ]


def open_code():
    """A thought, then more of it, then a call that has no arguments yet, and its result."""
    asked = opencode.user("msg_1", opencode.text("Read it."))
    thoughts = [{"type": "reasoning", "id": f"p{n}", "text": text} for n, text in enumerate(("Hm.", "So."))]
    pending = opencode.tool("c1", "pending", input={})
    parts = [
        thoughts[:1],
        thoughts,
        [*thoughts, pending],
        [*thoughts, opencode.tool("c1", output="A")],
        [*thoughts, opencode.tool("c1", output="A"), opencode.tool("c2", output="B")],
    ]
    return [opencode.document(asked, opencode.reply("msg_2", opencode.STEP, *some)) for some in parts]


def langchain():
    """Each reply loses a signature, which Chat Completions cannot carry."""
    blocks = [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, {"type": "text", "text": "Done."}]
    asked, replied = {"content": "Read it."}, {"content": blocks, "tool_calls": []}
    turn = [{"type": "human", "data": asked}, {"type": "ai", "data": replied}]
    return [lines(*turn), lines(*turn, *turn)]


def moldable():
    """The file has only the newest compaction; the next one takes its place."""

    def at(hour, role, text):
        return fixture.message(role, text, createdAt=f"2026-01-14T{hour}:00:00Z")

    said = [at(10, "user", "a"), at(10, "assistant", "b"), at(12, "user", "c"), at(12, "assistant", "d")]
    second = fixture.state(2, version=3, compactedAt="2026-01-14T13:00:00Z")
    return [
        fixture.conversation(*said[:2]),
        fixture.conversation(*said[:2], compaction=fixture.state(0)),
        fixture.conversation(*said, compaction=fixture.state(0)),
        fixture.conversation(*said, compaction=second),
        fixture.conversation(*said, at(14, "user", "e"), compaction=second),
    ]


def aider():
    """A chat that is cut in the middle of a line, and of a character."""
    chat = "# aider chat started at 2026-01-02 03:04:05\n\n#### Lies die Datei  \n\nDas Café öffnet bald.\n".encode()
    ends = [chat.index(word) for word in (b"Datei", "é".encode(), "ö".encode())]
    return [chat[: ends[0]], *(chat[: end + 1] for end in ends[1:]), chat]


async def put(store, raw):
    loaded = from_stream(io.BytesIO(raw), "session")
    log = with_notes(loaded)
    await restore(store, "s", log, log[-1].id)
    assert [entry.id async for entry in store.path("s")] == [entry.id for entry in log]
    return log


@pytest.mark.parametrize("states", [claude_code, gemini_cli, open_code, langchain, moldable, aider])
async def test_each_state_of_a_growing_file_is_imported_after_the_one_before(states):
    store = MemoryStore()
    for raw in states():
        await put(store, raw)


@pytest.mark.parametrize("states", [claude_code, gemini_cli, open_code, langchain, moldable, aider])
async def test_the_last_state_of_a_growing_file_is_imported_after_any_other(states):
    *earlier, last = states()
    for raw in earlier:
        store = MemoryStore()
        await put(store, raw)
        await put(store, last)


async def test_a_session_that_went_on_in_the_store_is_refused():
    *_, before, last = claude_code()
    store = MemoryStore()
    log = await put(store, before)
    changed = from_stream(io.BytesIO(before.replace(b"Hm.", b"No.")), "session")
    with pytest.raises(SessionDiverged):
        await restore(store, "s", with_notes(changed), changed.entries[-1].id)
    said = [entry for entry in log if isinstance(entry, Said)]
    assert await store.leaf("s") == log[-1].id
    assert said[-1].message.role == "assistant"
    with pytest.raises(SessionDiverged):  # an older copy of the file
        await put(store, claude_code()[1])
    await put(store, last)


@pytest.mark.parametrize("states", [claude_code, gemini_cli, open_code, langchain])
def test_the_first_message_is_the_same_in_each_state(states):
    """The id that an import makes for a session is from it."""
    assert len({from_stream(io.BytesIO(raw), "session").entries[0].id for raw in states()}) == 1


class WrittenMeanwhile(io.BytesIO):
    """A file to which its agent appends once it was read to its end."""

    def __init__(self, raw: bytes, more: bytes) -> None:
        super().__init__(raw)
        self._more = more

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if not line and self._more:
            at = self.tell()
            self.write(self._more)
            self._more = b""
            self.seek(at)
        return line


UNDONE = {
    "codex": (
        lines(codex.META, codex.user("a"), codex.answer("b"), codex.user("c"), codex.answer("d")),
        lines(codex.line("event_msg", type="thread_rolled_back", num_turns=1), codex.user("e")),
    ),
    "copilot": (
        lines(copilot.START, copilot.user("a", "u1"), copilot.reply("b", "a1"), copilot.user("c", "u2")),
        lines(copilot.event("session.snapshot_rewind", "x", upToEventId="u2"), copilot.user("d", "u3")),
    ),
}


@pytest.mark.parametrize("agent", UNDONE)
def test_what_is_written_between_the_two_passes_waits_for_the_next_reading(agent):
    """Else a turn that the user takes back meanwhile would stand beside the one that replaces it."""
    before, more = UNDONE[agent]

    def said(stream: io.BytesIO) -> list[str]:
        return [record.message.text for record in messages_in(list(read(stream, name="session")))]

    assert said(WrittenMeanwhile(before, more)) == said(io.BytesIO(before))
    assert said(io.BytesIO(before + more)) != said(io.BytesIO(before))


async def test_an_import_that_fails_leaves_the_session_as_it_was(tmp_path):
    """Before new messages are appended the leaf goes back to where the file has grown."""
    head, asked = {"title": "Reading", "dialect": "openai-chat"}, {"role": "user", "content": "Read it."}
    store = SqliteStore(tmp_path / "s.db")
    log = await put(store, lines(head, asked))
    await store.ask(lambda database: database.connection.execute("PRAGMA max_page_count = 1").fetchall())
    replied = {"role": "assistant", "content": token_hex(50_000)}
    with pytest.raises(StoreError, match="disk is full"):
        await put(store, lines(head, asked, replied))
    assert await store.leaf("s") == log[-1].id
    await store.close()
