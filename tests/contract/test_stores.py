"""What every store must do. A new store needs one line in STORES."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

import pytest
from tests.stores.build import compact, imported, lift, say, talk, title

from foldline.core.log.entries import Entry, Pinned, Said
from foldline.core.log.log import chained, said
from foldline.core.log.messages import Media, Message, Native, Opaque, Text, Thinking, ToolCall, ToolResult
from foldline.errors import InputError, LeafMoved, SessionNotFound, StoreError
from foldline.stores import MemoryStore, SqliteStore, Store, open_store

STORES: dict[str, Callable[[pytest.FixtureRequest], Store]] = {
    "memory": lambda request: MemoryStore(),
    "sqlite": lambda request: SqliteStore(request.getfixturevalue("tmp_path") / "sessions.db"),
    "postgres": lambda request: open_store(request.getfixturevalue("postgres_url")),
}


@pytest.fixture(params=STORES)
def make(request: pytest.FixtureRequest) -> Callable[[], Store]:
    return lambda: STORES[request.param](request)


@pytest.fixture
async def store(make: Callable[[], Store]) -> AsyncIterator[Store]:
    opened = make()
    yield opened
    await opened.close()


async def path_of(store: Store, session: str = "s", leaf: str | None = None) -> list[Entry]:
    return [entry async for entry in store.path(session, leaf)]


async def test_a_session_begins_at_its_first_append(store: Store) -> None:
    assert await store.sessions() == []
    assert await store.leaf("s") is None
    assert await store.active("s") == []
    assert await path_of(store) == []
    assert await store.entry("s", "x") is None
    log = talk(None, "one", "two")
    await store.append("s", log, seen=None)
    assert await store.leaf("s") == log[-1].id
    assert await path_of(store) == log
    assert await store.active("s") == log
    assert await store.entry("s", log[0].id) == log[0]


async def test_an_append_of_nothing_makes_no_session(store: Store) -> None:
    await store.append("s", [], seen=None)
    assert await store.sessions() == []


async def test_an_append_needs_the_current_leaf(store: Store) -> None:
    log = talk(None, "one", "two")
    await store.append("s", log, seen=None)
    with pytest.raises(LeafMoved) as moved:
        await store.append("s", talk(log[0], "other"), seen=log[0].id)
    assert moved.value.leaf == log[1].id
    with pytest.raises(LeafMoved) as moved:
        await store.append("s", talk(None, "other"), seen=None)
    assert moved.value.leaf == log[1].id
    with pytest.raises(LeafMoved) as moved:
        await store.append("new", talk(log[0], "other"), seen=log[0].id)
    assert moved.value.leaf is None
    assert await path_of(store) == log
    assert [info.id for info in await store.sessions()] == ["s"]


async def test_an_append_can_be_retried(store: Store) -> None:
    log = talk(None, "one", "two", "three")
    await store.append("s", log[:1], seen=None)
    await store.append("s", log[:1], seen=None)
    await store.append("s", log[1:], seen=log[0].id)
    await store.append("s", log[1:], seen=log[0].id)
    after = talk(log[-1], "four")
    await store.append("s", after, seen=log[-1].id)
    await store.append("s", log[1:], seen=log[0].id)  # on the path, no longer the leaf
    await store.append("s", log[:1], seen=None)
    assert await path_of(store) == [*log, *after]
    assert (await store.sessions())[0].entries == 4
    assert await store.leaf("s") == after[0].id


async def test_a_batch_of_which_only_a_part_stands_is_not_a_retry(store: Store) -> None:
    log = talk(None, "one", "two")
    await store.append("s", log[:1], seen=None)
    with pytest.raises(LeafMoved):
        await store.append("s", log, seen=None)
    assert await path_of(store) == log[:1]


async def test_two_writers_who_say_the_same_get_one_acknowledgement(store: Store) -> None:
    log = talk(None, "one")
    await store.append("s", log, seen=None)
    mine = say(log[0], "yes", at=10.0)
    theirs = say(log[0], "yes", at=10.5)
    assert mine.id == theirs.id
    await store.append("s", [mine], seen=log[0].id)
    with pytest.raises(LeafMoved) as moved:
        await store.append("s", [theirs], seen=log[0].id)
    assert moved.value.leaf == mine.id
    await store.append("s", [mine], seen=log[0].id)  # the first writer's retry
    after = say(mine, "go on", at=11.0)
    await store.append("s", [after], seen=mine.id)
    await store.append("s", [mine], seen=log[0].id)  # its retry when others went on
    with pytest.raises(LeafMoved):
        await store.append("s", [theirs], seen=log[0].id)
    again = say(after, "yes", at=10.5)
    await store.append("s", [again], seen=after.id)  # what it does next: it says so behind the new leaf
    assert await path_of(store) == [log[0], mine, after, again]
    assert await store.verify() == []


async def test_a_batch_of_two_writers_is_whole_or_refused(store: Store) -> None:
    mine = [first := say(None, "yes", at=1.0), say(first, "go", at=2.0)]
    theirs = [first := say(None, "yes", at=1.0), say(first, "go", at=3.0)]
    await store.append("s", mine, seen=None)
    with pytest.raises(LeafMoved):
        await store.append("s", theirs, seen=None)
    await store.append("s", mine, seen=None)
    assert await path_of(store) == mine


async def test_entries_must_chain_from_what_was_seen(store: Store) -> None:
    log = talk(None, "one", "two", "three")
    for entries, seen in (([log[0], log[2]], None), (log[1:], None), ([log[1], log[0]], log[0].id)):
        with pytest.raises(StoreError, match="nothing was written"):
            await store.append("s", entries, seen=seen)
    looped = Said(id="a", parent="a", message=Message("user"), said_key="")
    with pytest.raises(StoreError, match="same id"):
        await store.append("s", [looped], seen="a")
    with pytest.raises(StoreError, match="empty"):
        await store.append("", log, seen=None)
    assert await store.sessions() == []


async def test_a_batch_that_fails_half_way_leaves_nothing(store: Store) -> None:
    log = talk(None, "one")
    await store.append("s", log, seen=None)
    good = say(log[0], "good")
    bad = compact(good, "no such entry")
    with pytest.raises(StoreError, match="not on its path"):
        await store.append("s", [good, bad], seen=log[0].id)
    assert await path_of(store) == log
    assert await store.entry("s", good.id) is None
    await store.append("s", [good], seen=log[0].id)
    assert await path_of(store) == [*log, good]
    assert await store.verify() == []


async def test_sessions_do_not_touch_each_other(store: Store) -> None:
    log = talk(None, "one", "two")
    for session in ("a", "b", "ü 日 ' \" %"):
        await store.append(session, log, seen=None)
    other = talk(log[1], "three")
    await store.append("b", other, seen=log[1].id)
    assert await path_of(store, "a") == log
    assert await path_of(store, "b") == [*log, *other]
    assert await path_of(store, "ü 日 ' \" %") == log
    assert await store.entry("a", other[0].id) is None


async def test_move_makes_branches(store: Store) -> None:
    log = talk(None, "one", "two", "three")
    await store.append("s", log, seen=None)
    await store.move("s", log[0].id, seen=log[2].id)
    assert await path_of(store) == log[:1]
    branch = talk(log[0], "else", "more")
    await store.append("s", branch, seen=log[0].id)
    assert await path_of(store) == [log[0], *branch]
    assert await path_of(store, leaf=log[2].id) == log
    assert await store.active("s", log[1].id) == log[:2]
    await store.move("s", log[2].id, seen=branch[1].id)
    late = talk(log[2], "late")
    await store.append("s", late, seen=log[2].id)
    assert await path_of(store) == [*log, *late]
    info = (await store.sessions())[0]
    assert (info.messages, info.entries) == (4, 6)
    assert info.tokens == sum(entry.tokens for entry in [*log, *late])
    assert await store.verify() == []


async def test_all_branches_come_in_the_order_of_appending(store: Store) -> None:
    assert [entry async for entry in store.all("s")] == []
    log = talk(None, *[f"message {n}" for n in range(300)])
    await store.append("s", log, seen=None)
    await store.move("s", log[0].id, seen=log[-1].id)
    branch = talk(log[0], "else", "more")
    await store.append("s", branch, seen=log[0].id)
    await store.append("t", talk(None, "other"), seen=None)
    assert [entry async for entry in store.all("s")] == [*log, *branch]
    await store.move("s", None, seen=branch[-1].id)
    assert [entry async for entry in store.all("s")] == [*log, *branch]


async def test_what_was_appended_since_comes_alone(store: Store) -> None:
    first = talk(None, *"abc")
    await store.append("s", first, seen=None)
    await store.move("s", first[0].id, seen=first[2].id)
    second = talk(first[0], *"de")
    await store.append("s", second, seen=first[0].id)
    every = [*first, *second]
    for after in range(7):
        assert [entry async for entry in store.all("s", after=after)] == every[after:]


async def test_move_needs_the_leaf_that_was_seen(store: Store) -> None:
    log = talk(None, "one", "two")
    await store.append("s", log, seen=None)
    with pytest.raises(LeafMoved) as moved:
        await store.move("s", log[0].id, seen=log[0].id + "x")
    assert moved.value.leaf == log[1].id
    with pytest.raises(StoreError, match="no entry"):
        await store.move("s", "nowhere", seen=log[1].id)
    with pytest.raises(SessionNotFound):
        await store.move("none", log[0].id, seen=None)
    await store.move("s", log[0].id, seen=log[1].id)
    await store.move("s", log[0].id, seen=log[1].id)  # again: it is there already
    assert await store.leaf("s") == log[0].id


async def test_a_session_can_be_rewound_to_before_its_first_entry(store: Store) -> None:
    log = talk(None, "one")
    await store.append("s", log, seen=None)
    await store.move("s", None, seen=log[0].id)
    assert await store.leaf("s") is None
    assert await store.active("s") == await path_of(store) == []
    assert (await store.sessions())[0].messages == 0
    anew = talk(None, "other")
    await store.append("s", anew, seen=None)
    assert await path_of(store) == anew
    assert await path_of(store, leaf=log[0].id) == log
    assert await store.verify() == []


async def test_saying_again_what_a_branch_holds_goes_there(store: Store) -> None:
    log = talk(None, "one", "two", "three")
    await store.append("s", log, seen=None)
    await store.move("s", log[0].id, seen=log[2].id)
    await store.append("s", [log[1]], seen=log[0].id)
    assert await store.leaf("s") == log[1].id
    new = talk(log[2], "four")
    await store.append("s", [log[2], *new], seen=log[1].id)
    assert await path_of(store) == [*log, *new]
    assert (await store.sessions())[0].entries == 4
    assert await store.verify() == []


async def test_an_id_cannot_name_two_entries(store: Store) -> None:
    log = talk(None, "one", "two", "three")
    await store.append("s", log, seen=None)
    await store.move("s", log[1].id, seen=log[2].id)
    forged = Said(id=log[0].id, parent=log[1].id, message=log[0].message, said_key="")
    twin = Said(id=log[2].id, parent="new", message=log[2].message, said_key="")
    new = Said(id="new", parent=log[1].id, message=log[2].message, said_key="")
    for batch in ([forged], [new, twin]):
        with pytest.raises(StoreError):
            await store.append("s", batch, seen=log[1].id)
    assert await path_of(store) == log[:2]
    assert (await store.sessions())[0].entries == 3


async def test_active_is_what_the_boundary_keeps(store: Store) -> None:
    log = talk(None, *[f"m{n}" for n in range(10)])
    boundary = compact(log[-1], log[7].id, leading=(log[0].id,), quoted=(log[3].id, log[5].id))
    after = say(boundary, "after")
    await store.append("s", [*log, boundary, after], seen=None)
    kept = [log[0], log[3], log[5], *log[7:], boundary, after]
    assert await store.active("s") == kept
    assert await store.active("s", log[-1].id) == log
    assert await store.active("s", boundary.id) == kept[:-1]
    assert await path_of(store) == [*log, boundary, after]


async def test_what_is_kept_twice_comes_once(store: Store) -> None:
    log = talk(None, "one", "two", "three")
    boundary = compact(log[-1], log[1].id, leading=(log[0].id,), quoted=(log[0].id, log[1].id, log[2].id))
    await store.append("s", [*log, boundary], seen=None)
    assert await store.active("s") == [*log, boundary]


async def test_restoring_an_older_boundary_leaves_the_newest_in_force(store: Store) -> None:
    log = talk(None, "one", "two", "three")
    first = compact(log[-1], log[1].id)
    second = compact(first, log[2].id)
    off = lift(second, first.id)
    back = lift(off, first.id, lifted=False)
    await store.append("s", [*log, first, second, off, back], seen=None)
    assert await store.active("s") == [log[2], first, second, off, back]


async def test_a_boundary_may_keep_nothing(store: Store) -> None:
    log = talk(None, "one", "two")
    boundary = compact(log[-1], None, quoted=(log[0].id,))
    after = say(boundary, "after")
    await store.append("s", [*log, boundary, after], seen=None)
    assert await store.active("s") == [log[0], boundary, after]


async def test_a_boundary_is_lifted_and_restored(store: Store) -> None:
    log = talk(None, *[f"m{n}" for n in range(4)])
    first = compact(log[-1], log[2].id)
    more = say(first, "more", key=log[-1].said_key)
    second = compact(more, more.id)
    await store.append("s", [*log, first, more, second], seen=None)
    assert await store.active("s") == [more, second]
    off = lift(second, second.id)
    await store.append("s", [off], seen=second.id)
    assert await store.active("s") == [*log[2:], first, more, second, off]
    both = lift(off, first.id)
    await store.append("s", [both], seen=off.id)
    everything = [*log, first, more, second, off, both]
    assert await store.active("s") == everything
    back = lift(both, second.id, lifted=False)
    await store.append("s", [back, lift(back, "of another branch")], seen=both.id)
    assert (await store.active("s"))[:2] == [more, second]
    assert await store.active("s", both.id) == everything
    assert await store.verify() == []
    assert (await store.sessions())[0].compactions == 2


async def test_boundaries_count_only_on_their_branch(store: Store) -> None:
    log = talk(None, "one", "two", "three")
    boundary = compact(log[-1], log[2].id)
    await store.append("s", [*log, boundary], seen=None)
    await store.move("s", log[1].id, seen=boundary.id)
    branch = talk(log[1], "else")
    await store.append("s", branch, seen=log[1].id)
    assert await store.active("s") == [*log[:2], *branch]
    with pytest.raises(StoreError, match="not on its path"):
        await store.append("s", [compact(branch[0], log[2].id)], seen=branch[0].id)
    assert await store.active("s", boundary.id) == [log[2], boundary]


async def test_entries_come_in_the_order_asked(store: Store) -> None:
    log = talk(None, "one", "two", "three")
    await store.append("s", log, seen=None)
    assert await store.entries("s", [log[2].id, log[0].id, log[2].id]) == [log[2], log[0], log[2]]
    assert await store.entries("s", []) == []
    with pytest.raises(StoreError, match="nowhere"):
        await store.entries("s", [log[0].id, "nowhere"])
    for leaf in ("nowhere", ""):
        with pytest.raises(StoreError, match="no entry"):
            await store.active("s", leaf)
    with pytest.raises(StoreError, match="no entry"):
        await path_of(store, leaf="nowhere")


async def test_long_paths_come_whole(store: Store) -> None:
    log = talk(None, *[f"message {n}" for n in range(700)])
    await store.append("s", log[:600], seen=None)
    await store.move("s", log[299].id, seen=log[599].id)
    branch = talk(log[299], *[f"branch {n}" for n in range(300)])
    await store.append("s", branch, seen=log[299].id)
    assert await path_of(store) == [*log[:300], *branch]
    assert await path_of(store, leaf=log[599].id) == log[:600]


async def test_sessions_tell_about_themselves(store: Store) -> None:
    log = [say(None, "one", at=100.0)]
    log.append(say(log[0], "two", at=160.5))
    named = title(log[1], "First name")
    renamed = title(named, "Second name")
    await store.append("old", [*log, named, renamed], seen=None)
    before = time.time()
    await store.append("new", talk(None, "hello"), seen=None)
    new, old = await store.sessions()
    assert (old.id, old.title, old.created, old.updated) == ("old", "Second name", 100.0, 160.5)
    assert (old.messages, old.entries, old.compactions, old.tokens, old.leaf) == (2, 4, 0, 6, renamed.id)
    assert (new.id, new.title) == ("new", "")
    assert before - 1 <= new.created == new.updated <= time.time() + 1


HARD_TEXTS = (
    "",
    "half an emoji: \ud83d",
    "\udc00 the other half",
    "nul \0 and \x1b[31m controls \u2028",
    "日本語 한국어 العربية 🏳️‍🌈",
    "x" * 3_000_000,
)


async def test_every_text_survives(store: Store) -> None:
    log = talk(None, *HARD_TEXTS)
    await store.append("s", log, seen=None)
    assert await path_of(store) == log
    assert await store.verify() == []


async def test_native_bytes_and_all_parts_survive(store: Store) -> None:
    parts = (
        Thinking("hm \ud83d", signature="c2ln"),
        Text("look"),
        ToolCall("c1", "read", {"path": "a.py", "n": 2**70, "deep": [{"x": None}, 1.5, True]}),
        ToolCall("c2", "bad", "{not json"),
        ToolResult("c1", (Text("out"), Media("image", "image/png", data="aGk="), Opaque("d", "k", {"z": 1}))),
        Opaque("anthropic", "redacted_thinking", {"data": "xyz"}),
    )
    for raw in (b'{"a": 1}', b'{"a":  "\xc3\xbc", "b":null}', b'{"bad": "\\ud83d"}'):
        entry = said(Message("assistant", parts, native=Native("anthropic", raw)), parent=None)
        session = raw.decode()
        await store.append(session, [entry], seen=None)
        assert (await path_of(store, session))[0] == entry
    plain = said(Message("assistant", (Text("ok"),), native=Native("x", b'{"\xff": 0}')), parent=None)
    await store.append("plain", [plain], seen=None)
    assert await path_of(store, "plain") == [plain]


async def test_what_cannot_be_read_back_is_not_taken(store: Store) -> None:
    nested: dict[str, object] = {}
    for _ in range(50_000):
        nested = {"a": nested}
    bad = [
        Message("user", (Text(None),)),
        Message("wizard", ()),
        Message("assistant", (ToolCall("c", "n", {"x": object()}),)),
        Message("assistant", (ToolCall("c", "n", nested),)),
    ]
    for broken in bad:
        entry = Said(id="x", parent=None, message=broken, said_key="")
        with pytest.raises(StoreError, match="cannot be stored"):
            await store.append("s", [entry], seen=None)
    assert await store.sessions() == []


async def test_what_is_stored_is_a_copy(store: Store) -> None:
    arguments: dict[str, object] = {"path": "a.py"}
    entry = said(Message("assistant", (ToolCall("c", "read", arguments),)), parent=None)
    await store.append("s", [entry], seen=None)
    arguments["path"] = "changed"
    assert (await path_of(store))[0].message.calls[0].arguments == {"path": "a.py"}


async def test_search_finds_words_in_texts_arguments_and_results(store: Store) -> None:
    log = [
        *talk(
            None,
            "Please fix the LeafMoved error in src/foldline/store.py",
            "Ärger mit Größe 12.5%",
            "nothing",
        )
    ]
    call = Message("assistant", (ToolCall("c1", "bash", {"command": "pytest -k 'a OR b'", "lines": [17]}),))
    log.append(said(call, parent=log[-1].id, said_key=log[-1].said_key, at=5.0))
    result = Message("tool", (ToolResult("c1", (Text("FAILED tests/test_x.py::test_y"),)),))
    log.append(said(result, parent=log[-1].id, said_key=log[-1].said_key))
    await store.append("s", log, seen=None)
    await store.append("other", talk(None, "the error of others"), seen=None)

    async def found(query: str, session: str | None = "s") -> list[int]:
        return sorted(hit.seq for hit in await store.search(query, session))

    assert await found("error") == [1]
    assert await found("ERROR leafm") == [1]
    assert await found("src/foldline") == [1]
    assert await found("größe") == [2]
    assert await found("pytest") == [4]
    assert await found("17") == [4]
    assert await found("test_x.py") == [5]
    assert await found("afmov") == [1]  # no word begins so: looked for anywhere
    assert await found("12.5%") == [2]
    assert await found("absent") == []
    assert await found("error", "none") == []
    assert await found("error", None) == [1, 1]
    (hit,) = await store.search("pytest", "s")
    assert (hit.session, hit.entry, hit.role, hit.at) == ("s", log[3].id, "assistant", 5.0)
    assert "pytest -k" in hit.snippet


async def test_search_reads_scripts_without_spaces(store: Store) -> None:
    log = talk(None, "会話の圧縮を実装する", "压缩会话历史", "세션 압축")
    await store.append("s", log, seen=None)
    assert [hit.seq for hit in await store.search("圧縮", "s")] == [1]
    assert [hit.seq for hit in await store.search("会话", "s")] == [2]
    assert [hit.seq for hit in await store.search("압축", "s")] == [3]


QUERIES = (
    '"', "'", "*", "a*", "NOT", "AND OR", "(", ")", "a AND", "col:val", "-x", "^x", "{a b}:c", "NEAR(a b, 2)", "%",
    "_", "\\", "\0", "\ud83d", "a\nb", ";--", "[", "🏳️‍🌈", "..", '"unclosed', "a" * 10_000, "x " * 500,
)  # fmt: skip


async def test_no_query_is_a_mistake(store: Store) -> None:
    text = 'say "hello" (a AND b) col:val -x ^x 100% _y \\z; 🏳️‍🌈 [k] ..'
    await store.append("s", talk(None, text, "plain"), seen=None)
    for query in QUERIES:
        await store.search(query)
        await store.search(query, "s", on_path=True)
    for query in ('"hello"', "col:val", "-x", "100%", "(a AND b)", "🏳️‍🌈", "..", "[k]", "\\z;"):
        assert [hit.seq for hit in await store.search(query)] == [1], query
    assert await store.search("") == await store.search("  \n") == []


async def test_search_keeps_up_and_keeps_to_its_limits(store: Store) -> None:
    log = talk(None, *[f"common word{n}" for n in range(30)])
    await store.append("s", log[:20], seen=None)
    assert len(await store.search("common")) == 20
    assert len(await store.search("common", limit=5)) == 5
    assert await store.search("common", limit=0) == []
    await store.append("s", log[20:], seen=log[19].id)
    assert len(await store.search("common", limit=100)) == 30
    assert [hit.entry for hit in await store.search("word29")] == [log[29].id]
    await store.move("s", log[9].id, seen=log[29].id)
    assert len(await store.search("common", limit=100)) == 30
    assert {hit.seq for hit in await store.search("common", "s", limit=100, on_path=True)} == set(
        range(1, 11)
    )
    assert len(await store.search("common", limit=100, on_path=True)) == 10
    assert await store.search("ommon word29", "s", on_path=True) == []


async def test_exact_words_and_ids_come_first_then_words_that_begin_so(store: Store) -> None:
    texts = [f"order O-{n} was shipped" for n in (170, 17, 179, 1)] + ["O-179 and order O-17 again"]
    await store.append("s", talk(None, *texts, *[f"order O-17{n}" for n in range(9)]), seen=None)
    hits = [hit.seq for hit in await store.search("order O-17")]
    assert set(hits[:2]) == {2, 5}
    assert set(hits[2:]) == {1, 3, *range(6, 15)}
    assert {hit.seq for hit in await store.search("order O-17", limit=2)} == {2, 5}
    assert not any(hit.partial for hit in await store.search("order O-17"))


async def test_a_question_in_plain_words_finds_what_answers_it(store: Store) -> None:
    orders = [f"Order {n} has tracking code TRK{n:05d}." for n in range(40)]
    await store.append("s", talk(None, "Good morning.", *orders, "Thanks, bye."), seen=None)
    question = "what was the tracking code of order 7"
    hits = await store.search(question, "s")
    assert hits[0].seq == 9
    assert len(hits) == 20
    assert all(hit.partial for hit in hits)
    assert [hit.seq for hit in await store.search(question, limit=1, on_path=True)] == [9]
    await store.append("t", talk(None, "what was the tracking code of order 7?"), seen=None)
    told = await store.search(question)
    assert [(hit.session, hit.partial) for hit in told[:2]] == [("t", False), ("s", True)]
    assert told[1].seq == 9
    assert await store.search("nobody heard anything") == []


async def test_a_snippet_shows_where_the_words_stand_together(store: Store) -> None:
    text = (
        "The order of the day. "
        + "Nothing to tell of it. " * 40
        + "Order 7 has tracking code TRK7. "
        + "Bye. " * 90
    )
    await store.append("s", talk(None, text), seen=None)
    (hit,) = await store.search("tracking code of order 7", limit=1)
    assert "tracking code TRK7" in hit.snippet
    assert len(hit.snippet) < 200


async def test_media_are_not_searched(store: Store) -> None:
    picture = Message("user", (Media("image", "image/png", data="QUJDsecretpixels"), Text("a picture")))
    await store.append("s", [said(picture, parent=None)], seen=None)
    assert await store.search("secretpixels") == []
    assert len(await store.search("picture")) == 1


async def test_the_text_of_tools_that_the_provider_ran_is_searched(store: Store) -> None:
    asked = Opaque("anthropic", "mcp_tool_use", {"id": "m", "name": "berths", "input": {"berth": "B-77"}})
    answer = {"tool_use_id": "m", "content": [{"type": "text", "text": "free from Kelpday"}]}
    ran = Message("assistant", (asked, Opaque("anthropic", "mcp_tool_result", answer)))
    sealed = Message(
        "assistant", (Opaque("openai-responses", "reasoning", {"encrypted_content": "kelpsecret"}),)
    )
    told = Message("assistant", (Opaque("anthropic", "compaction", {"content": "The pier was mended."}),))
    log = [said(ran, parent=None)]
    for message in (sealed, told):
        log.append(said(message, parent=log[-1].id, said_key=log[-1].said_key))
    await store.append("s", log, seen=None)
    for query in ("Kelpday", "B-77", "berths"):
        assert [hit.seq for hit in await store.search(query)] == [1], query
    assert await store.search("kelpsecret") == []
    assert [hit.seq for hit in await store.search("pier mended")] == [3]


async def test_the_summary_of_another_agent_is_searched_and_our_own_is_not(store: Store) -> None:
    begun = talk(None, "go on with the berths")
    theirs = imported(begun[-1], "The customer Osterlund moors at pier nineteen, code OST-4471.")
    more = say(theirs, "thank you", key=begun[-1].said_key)
    ours = compact(more, None)  # its summary: "done"
    log = [*begun, theirs, more, ours, say(ours, "and now the lamps", key=more.said_key)]
    await store.append("s", log, seen=None)
    for query in ("osterlund", "OST-4471", "Osterl pier", "sterlun", "moors nowhere", "Osterlund nowhere"):
        for session, on_path in ((None, False), ("s", True)):
            (hit,) = await store.search(query, session, on_path=on_path)
            assert (hit.entry, hit.seq, hit.role, hit.partial) == (
                theirs.id,
                2,
                "summary",
                "nowhere" in query,
            )
            assert "moors at pier" in hit.snippet
    assert await store.search("done") == await store.search("Before") == []
    await store.move("s", begun[-1].id, seen=log[-1].id)
    assert await store.search("Osterlund", on_path=True) == []
    assert await store.verify() == []
    await store.purge("s")
    assert await store.search("Osterlund") == await store.verify() == []


@pytest.mark.parametrize("read", ["path", "all"])
async def test_who_reads_a_session_that_is_purged_is_told_so(store: Store, read: str) -> None:
    """Its entries are missing then, but nothing is damaged."""
    await store.append("s", talk(None, *map(str, range(600))), seen=None)
    entries = getattr(store, read)("s")
    await anext(entries)
    await store.purge("s")
    with pytest.raises(SessionNotFound):
        [entry async for entry in entries]


async def test_purge_takes_one_session_only(store: Store) -> None:
    log = talk(None, "shared words", "more words")
    for session in ("a", "b"):
        await store.append(session, log, seen=None)
    assert len(await store.search("words")) == 4
    await store.purge("a")
    assert [info.id for info in await store.sessions()] == ["b"]
    assert await store.leaf("a") is None
    assert {hit.session for hit in await store.search("words")} == {"b"}
    assert await store.verify() == []
    with pytest.raises(SessionNotFound):
        await store.purge("a")
    await store.append("a", log[:1], seen=None)
    assert [hit.session for hit in await store.search("shared", "a")] == ["a"]
    assert (await path_of(store, "b")) == log


async def test_verify_names_what_does_not_hash(store: Store) -> None:
    good = talk(None, "one", "two")
    await store.append("good", good, seen=None)
    assert await store.verify() == await store.verify("good") == []
    forged = Said(id="f" * 32, parent=None, message=good[0].message, said_key=good[0].said_key)
    await store.append("bad", [forged], seen=None)
    problems = await store.verify()
    assert len(problems) == 1
    assert "session bad" in problems[0]
    assert "f" * 32 in problems[0]
    assert await store.verify("good") == []
    with pytest.raises(SessionNotFound):
        await store.verify("none")


async def test_other_kinds_of_entries_are_kept(store: Store) -> None:
    first = say(None, "one")
    pin = chained(Pinned(id="", parent=None, target=first.id, on=True, text="one"), first.id)
    await store.append("s", [first, pin], seen=None)
    assert await path_of(store) == [first, pin]
    assert (await store.sessions())[0].messages == 1


async def test_many_writers_of_one_store_lose_nothing(store: Store) -> None:
    async def write(name: int) -> None:
        for turn in range(10):
            while True:
                leaf = await store.leaf("s")
                before = await store.entry("s", leaf) if leaf else None
                try:
                    await store.append("s", talk(before, f"{name}-{turn} a", f"{name}-{turn} b"), seen=leaf)
                    break
                except LeafMoved:
                    await asyncio.sleep(0)

    await asyncio.gather(*(write(name) for name in range(4)))
    said_texts = [entry.message.text for entry in await path_of(store)]
    assert sorted(said_texts) == sorted(f"{n}-{t} {x}" for n in range(4) for t in range(10) for x in "ab")
    assert await store.verify() == []


async def test_a_cancelled_append_is_whole_or_absent(store: Store) -> None:
    leaf: Entry | None = None
    for turn in range(40):
        batch = talk(leaf, *[f"turn {turn} part {n}" for n in range(5)])
        task = asyncio.create_task(store.append("s", batch, seen=leaf.id if leaf else None))
        for _ in range(turn % 4):
            await asyncio.sleep(0.0002)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            pass
        there = await store.leaf("s")
        assert there in {leaf.id if leaf else None, batch[-1].id}
        await store.append("s", batch, seen=leaf.id if leaf else None)  # the retry
        leaf = batch[-1]
    assert len(await path_of(store)) == 200
    assert await store.verify() == []


async def test_a_path_can_be_left_half_way(store: Store) -> None:
    log = talk(None, *[f"m{n}" for n in range(600)])
    await store.append("s", log, seen=None)
    path = store.path("s")
    assert await anext(path) == log[0]
    await path.aclose()
    assert await store.leaf("s") == log[-1].id


async def test_a_closed_store_says_so(store: Store) -> None:
    await store.append("s", talk(None, "one"), seen=None)
    await store.close()
    await store.close()
    with pytest.raises(StoreError, match="closed"):
        await store.leaf("s")
    with pytest.raises(StoreError, match="closed"):
        await store.append("s", talk(None, "one"), seen=None)
    with pytest.raises(StoreError, match="closed"):
        await store.search("one")


IN_MEMORY = {"memory"}  # stores that hold nothing once they are closed


async def test_a_store_that_is_opened_again_holds_what_was_appended(
    make: Callable[[], Store], store: Store, request: pytest.FixtureRequest
) -> None:
    if request.node.callspec.params["make"] in IN_MEMORY:
        return
    log = talk(None, "one", "two", "three")
    first = make()
    await first.append("s", log, seen=None)
    await first.move("s", log[1].id, seen=log[-1].id)
    await first.close()
    assert await store.leaf("s") == log[1].id
    assert await path_of(store) == log[:2]
    assert [entry async for entry in store.all("s")] == log
    assert await store.verify() == []


async def test_a_tail_is_the_end_of_the_path(store: Store) -> None:
    assert await store.tail("s", 5) == []
    first = talk(None, *"abcd")
    await store.append("s", first, seen=None)
    await store.move("s", first[1].id, seen=first[3].id)
    second = talk(first[1], *"efg")
    await store.append("s", second, seen=first[1].id)
    whole = [*first[:2], *second]
    for limit in range(8):
        assert await store.tail("s", limit) == (whole[-limit:] if limit else [])
        assert await store.tail("s", limit, leaf=first[3].id) == (first[-limit:] if limit else [])
        for at, entry in enumerate(whole):
            earlier = whole[max(0, at - limit) : at]
            assert await store.tail("s", limit, before=entry.id) == earlier
    with pytest.raises(InputError, match="not on the path"):
        await store.tail("s", 1, before=first[3].id)
    with pytest.raises(InputError, match="not on the path"):
        await store.tail("s", 1, before="nowhere")
    await store.move("s", None, seen=second[-1].id)
    assert await store.tail("s", 3) == []


async def test_marks_are_all_that_is_no_message(store: Store) -> None:
    assert await store.marks("s") == []
    one, two = talk(None, "one", "two")
    fold = compact(two, two.id)
    named = title(fold, "a name")
    back = lift(named, fold.id)
    await store.append("s", [one, two, fold, named, back], seen=None)
    assert await store.marks("s") == [fold, named, back]
    assert await store.marks("s", kinds=("lifted", "compacted")) == [fold, back]
    assert await store.marks("s", kinds=()) == []
    assert await store.marks("s", two.id) == []
    await store.move("s", two.id, seen=back.id)
    other = title(two, "another")
    await store.append("s", [other], seen=two.id)
    assert await store.marks("s") == [other]
    assert await store.marks("s", named.id) == [fold, named]


async def test_sessions_are_counted_and_paged(store: Store) -> None:
    assert await store.info("s0") is None
    assert await store.count() == 0
    for number in range(7):
        await store.append(f"s{number}", [say(None, "x", at=float(number // 2))], seen=None)
    every = await store.sessions()
    assert [info.id for info in every] == [f"s{number}" for number in reversed(range(7))]
    assert await store.count() == 7
    assert await store.sessions(limit=3) == every[:3]
    place = (every[3].updated, every[3].id)
    assert await store.sessions(limit=2, after=place) == every[4:6]
    assert await store.sessions(limit=0) == []
    await store.append("new", [say(None, "x", at=9.0)], seen=None)
    await store.purge("s3")
    assert await store.sessions(after=place) == every[4:], "whatever came or went meanwhile"
    await store.purge("new")
    every = await store.sessions()
    for info in every:
        assert await store.info(info.id) == info


async def test_ids_are_found_by_their_beginning(store: Store) -> None:
    for name in ("ab", "abc", "b", "ab.2", "a", "ab\U0001f600"):
        await store.append(name, talk(None, name), seen=None)
    assert await store.ids("ab", 10) == ["ab\U0001f600", "ab.2", "abc", "ab"]
    assert await store.ids("ab", 2) == ["ab\U0001f600", "ab.2"]
    assert await store.ids("ab.", 10) == ["ab.2"]
    assert await store.ids("c", 10) == []
    await store.purge("abc")
    assert await store.ids("ab", 2) == ["ab\U0001f600", "ab.2"]
    assert "abc" not in await store.ids("", 10)
