"""Recall: what it finds, reads and lists of the folded past, and that it leaves itself out."""

import pytest
from tests.support.live import session_on
from tests.support.logs import add, ask_for, compact_log, view_of
from tests.support.talk import assistant, call, calls, image, log_of, tool, user

from foldline.core.cut.notes import CLEARED, MARK, is_recall
from foldline.core.decide.policy import Policy
from foldline.core.log.entries import Compacted, Pruned, Said
from foldline.core.measure.window import Amount
from foldline.errors import InputError
from foldline.session.recall import PASSAGE, as_text
from foldline.stores.tree import SERVED

PRUNES = Policy(
    name="prunes",
    enable_compaction=False,
    prune_minimum=Amount(tokens=500),
    prune_protect=Amount(tokens=300),
)


async def stored(store, log, session: str = "s") -> None:
    await store.append(session, log.path(), seen=None)


def read_files(count: int = 6, lines: int = 60):
    log = log_of(user("Read the sources."))
    for n in range(count):
        add(log, calls(f"c{n}"))
        add(
            log,
            tool(f"c{n}", "\n".join(f"line {i} of source {n} binds port {8000 + n}" for i in range(lines))),
        )
    add(log, assistant("I have read them."))
    add(log, user("Now write the report."))
    return log


async def test_a_search_leaves_out_recalls_own_calls_and_answers(store):
    log = log_of(user("The port is 8123."), assistant("Noted: port 8123."))
    add(log, assistant("", call("r1", "recall_search", query="port 8123")))
    add(log, tool("r1", f"{MARK}2 messages match 'port 8123'\n- e1 user: The port is 8123."))
    add(log, assistant("Let me look for port 8123.", call("r2", "recall_search", query="port 8123")))
    add(log, tool("r2", f"{MARK}Nothing"))
    await stored(store, log)

    hits = await session_on(store).recall("port 8123", 10)

    path = log.path()
    assert {hit.entry for hit in hits} == {path[0].id, path[1].id, path[4].id}
    assert len(await session_on(store).recall("port 8123", 2)) == 2
    assert await session_on(store).recall("port 8123", 0) == []


async def test_what_recall_quotes_again_and_again_stays_found(store):
    log = log_of(user(f"The port is 8123. {'It was agreed on with the harbour master. ' * 20}"))
    for n in range(30):
        add(log, assistant("", call(f"r{n}", "recall_search", query="port 8123")))
        add(log, tool(f"r{n}", f"{MARK}1 message matches 'port 8123'\n- e1 user: The port is 8123."))
    await stored(store, log)
    for limit in (1, 5):
        assert [hit.seq for hit in await session_on(store).recall("port 8123", limit)] == [1]
    assert [hit.seq for hit in await session_on(store).recall("ort 8123", 1)] == [1]


async def test_what_the_user_took_out_does_not_stand_before_what_the_model_may_find(store):
    session = session_on(store)
    ids = await session.append(*[{"role": "user", "content": f"port 8123, {n}"} for n in range(6)])
    for at in ids[1:]:
        await session.exclude(at)
    assert [hit.entry for hit in await session.recall("port 8123", 1, for_model=True)] == ids[:1]


async def test_sessions_are_searched_in_the_order_given(store):
    await stored(store, log_of(user("The port is 8123.")), "old")
    await stored(store, log_of(user("Which port? 8123, I think.")), "new")
    newer = session_on(store, name="new")

    assert [hit.session for hit in await newer.recall("port 8123", 10, sessions=["new", "old"])] == [
        "new",
        "old",
    ]
    assert [hit.session for hit in await newer.recall("port 8123", 1, sessions=["new", "old"])] == ["new"]


def test_a_message_with_words_of_its_own_is_no_recall():
    assert is_recall(assistant("", call("r1", "recall_list")))
    assert not is_recall(assistant("I look.", call("r1", "recall_list")))
    assert not is_recall(assistant("", call("r1", "recall_list"), call("c1")))
    assert not is_recall(user(f"{MARK}is what it begins with"))


async def test_an_entry_is_read_in_pieces_that_make_up_the_whole(store):
    log = read_files(1, lines=1_000)
    await stored(store, log)
    entry = log.path()[2]
    assert isinstance(entry, Said)
    whole = as_text(entry)
    pieces, offset = [], 0
    while offset is not None:
        piece = await session_on(store).read(entry.id, offset)
        assert len(piece.text) <= PASSAGE
        pieces.append(piece.text)
        offset = piece.next_offset

    assert len(pieces) > 2
    assert "".join(pieces) == whole
    assert "line 999 of source 0 binds port 8000" in whole
    assert (piece.session, piece.entry, piece.role, piece.total) == ("s", entry.id, "tool", len(whole))


async def test_what_is_read_is_as_it_was_said_calls_with_arguments_and_media_named(store):
    log = log_of(
        image("Look at this"), assistant("I write it.", call("c1", "write", path="a.py", content="x = 1"))
    )
    await stored(store, log)
    first, second = log.path()

    assert "[image]" in (await session_on(store).read(first.id)).text
    assert 'write(path="a.py", content="x = 1")' in (await session_on(store).read(second.id)).text


async def test_an_entry_of_another_session_is_read_from_there(store):
    old = log_of(user("The port is 8123."))
    await stored(store, old, "old")
    await stored(store, log_of(user("Go on.")), "new")

    newer = session_on(store, name="new")
    assert (await newer.read(old.path()[0].id, session="old")).session == "old"
    with pytest.raises(InputError, match="take the id from a search or a list"):
        await newer.read(old.path()[0].id)


async def test_the_model_of_a_session_that_has_not_begun_looks_into_no_users_sessions(store):
    await stored(store, log_of(user("The port is 8123.")), "theirs")
    await session_on(store, name="theirs").note(SERVED, user="bob")
    session = session_on(store, name="new")
    assert "no session 'theirs'" in await session.call_tool(
        "recall_search", {"query": "port", "session": "theirs"}
    )
    assert len(await session.recall("port", sessions=["theirs"])) == 1


async def test_nothing_to_search_for_or_to_merge_is_refused_in_words(store):
    session = session_on(store)
    with pytest.raises(InputError, match="query = None: give a text"):
        await session.recall(None)
    with pytest.raises(InputError, match="other = None: give a text"):
        await session.merge(None)


async def test_a_model_looks_into_sessions_of_its_own_user_alone(store):
    for name, whose in (("hers", "alice"), ("hers too", "alice"), ("his", "bob")):
        await stored(store, log_of(user(f"The port of {name} is 8123.")), name)
        await session_on(store, name=name).note(SERVED, user=whose)
    asked = session_on(store, name="hers")
    other = (await store.tail("his", 9))[0].id

    found = await asked.call_tool("recall_search", {"query": "port", "session": "hers too"})
    assert "The port of hers too is 8123." in found
    for name, given in (("recall_search", {"query": "port"}), ("recall_read", {"entry": other})):
        answer = await asked.call_tool(name, {**given, "session": "his"})
        assert "no session 'his' in this store" in answer
    assert await asked.recall("port", sessions=["his"]), "who holds the session may look anywhere"


async def test_offsets_beyond_the_ends_are_brought_inside(store):
    log = log_of(user("short"))
    await stored(store, log)
    entry = log.path()[0].id

    assert (await session_on(store).read(entry, -5)).text == "[User]: short"
    assert (await session_on(store).read(entry, 999)).text == ""
    assert len((await session_on(store).read(entry, 0, 0)).text) == 1


async def test_what_was_folded_is_listed_page_by_page_backwards(store):
    log = read_files()
    assert isinstance(compact_log(log, ask_for("claude-code")), Compacted)
    await stored(store, log)
    fold = view_of(log)
    gone = [e.id for e in log.path() if isinstance(e, Said) and e not in fold.kept]
    assert len(gone) > 8

    newest = await session_on(store).folded(5)
    before = await session_on(store).folded(5, newest[0].entry)

    assert [one.entry for one in (*before, *newest)] == gone[-10:]
    assert {one.how for one in newest} == {"folded"}
    assert newest[0].text.startswith("[")
    assert all(len(one.text) <= 160 for one in newest)
    with pytest.raises(InputError, match="'x' is not on the path"):
        await session_on(store).folded(50, "x")


async def test_results_that_are_blanked_in_the_view_are_listed_and_can_be_read(store):
    log = read_files(lines=120)
    assert isinstance(compact_log(log, ask_for(PRUNES, context=60_000)), Pruned)
    await stored(store, log)
    blanked = [one for one in await session_on(store).folded() if one.how == "blanked"]

    assert blanked
    text = (await session_on(store).read(blanked[0].entry)).text
    assert "line 0 of source 0 binds port 8000" in text
    assert CLEARED not in text


async def test_nothing_folded_is_an_empty_list(store):
    log = read_files(2)
    await stored(store, log)
    assert await session_on(store).folded() == []
    assert await session_on(store, name="none").folded() == []
