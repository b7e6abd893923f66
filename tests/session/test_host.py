"""What the program around a session asks of it: forks, another policy, its files, figures, two sentences, other threads."""

from __future__ import annotations

import pytest
from tests.support.live import Events, run_turns, session_on
from tests.support.talk import entries, user
from tests.support.talk import tool as result

from foldline.core.cut.notes import without_recall
from foldline.core.log.entries import Compacted
from foldline.errors import InputError, PolicyError


async def test_a_fork_has_the_past_and_a_future_of_its_own(store):
    session = session_on(store)
    await run_turns(session, 4)
    await session.compact(target=2_000)
    leaf, history = session.leaf, await session.history()
    fork = await session.fork("copy")
    await fork.append(user("Only in the copy."))
    await session.append(user("Only in the first."))
    assert await fork.history() == [*history, *(await fork.history())[-1:]]
    assert "Only in the copy." in str(await fork.context())
    assert "Only in the copy." not in str(await session.history())
    assert await store.verify("copy") == []
    assert [(link.how, link.way, link.session, link.entry) for link in await fork.links()] == [
        ("fork", "from", session.id, leaf)
    ]
    assert [link.way for link in await session.links()] == ["to"]


async def test_the_first_fold_of_a_fork_can_be_undone(store):
    session = session_on(store)
    await run_turns(session, 6)
    fork = await session.fork()
    whole = await fork.context()
    await fork.compact(target=2_000)
    assert await fork.undo() is not None
    assert await fork.context() == whole


async def test_a_fork_can_begin_at_an_earlier_entry_and_takes_no_id_twice(store):
    session = session_on(store)
    await run_turns(session, 2)
    first = (await session.entries())[0].entry
    fork = await session.fork(at=first)
    assert len(await fork.history()) == 1
    with pytest.raises(InputError, match="no entry 'nowhere'"):
        await session.fork(at="nowhere")
    with pytest.raises(InputError, match="already"):
        await session.fork(fork.id)
    with pytest.raises(InputError, match="nothing was said"):
        await session_on(store, name="empty").fork()


async def test_the_policy_of_an_open_session_changes_from_the_next_request_on(store):
    session = session_on(store, policy="amp")
    heard = Events(session)
    await run_turns(session, 8)
    await session.context()
    assert "compacted" not in heard.names
    await session.use_policy("coop")
    assert session.policy.name == "coop"
    await session.append(user("And now?"))
    await session.context()
    assert heard.names.count("policy") == 1
    assert "compacted" in heard.names
    with pytest.raises(PolicyError, match="no policy 'nope'"):
        await session.use_policy("nope")
    assert session.policy.name == "coop"


async def test_files_that_a_host_tracked_stand_in_the_checkpoint_and_cite_their_note(store):
    session = session_on(store)
    await session.append(user("Begin."))
    await session.track_files(read=["src/seen.py"], modified=["src/changed.py"])
    note = session.leaf
    await run_turns(session, 6)
    await session.compact(target=2_000)
    text = str(await session.context())
    assert "src/changed.py" in text.partition("<modified-files>")[2].partition("</modified-files>")[0]
    assert "src/seen.py" in text.partition("<read-files>")[2].partition("</read-files>")[0]
    boundary = [entry async for entry in store.path(session.id) if isinstance(entry, Compacted)][-1]
    files = {fact["path"]: fact for fact in boundary.ledger["files"]}
    assert note in files["src/changed.py"]["entries"]
    await run_turns(session, 6, start=20)
    await session.compact(target=2_000)
    assert "src/changed.py" in str(await session.context())


async def test_the_model_is_told_how_full_its_window_is(store):
    session = session_on(store)
    await run_turns(session, 3)
    names = [one["function"]["name"] for one in session.tools(stats=True)]
    assert names[-1] == "context_stats"
    stats = await session.stats()
    answer = await session.call_tool("context_stats")
    assert f"{stats.context_tokens:,} of {stats.usable:,} usable tokens" in answer
    assert f"{stats.window.context:,}" in answer
    assert stats.window == session.setup.window
    assert "takes" in await session.call_tool("context_stats", {"verbose": 1})


async def test_answers_about_the_window_are_no_recall_and_no_fact(store):
    session = session_on(store)
    await run_turns(session, 3)
    session.tools(stats=True, compact=True)
    asked = {"context_stats": {}, "compact_context": {}}
    answers = [await session.call_tool(name, given) for name, given in asked.items()]
    answers += [await session.call_tool(name, {"verbose": 1}) for name in asked]
    assert all(answer.startswith("[Context window] ") for answer in answers)
    assert not any("[Recall]" in answer for answer in answers)
    said = entries(*(result(f"c{i}", answer) for i, answer in enumerate(answers)))
    assert without_recall(said) == []
    assert (await session.call_tool("recall_search", {})).startswith("[Recall] Error: ")


async def test_two_sentences_tell_people_what_a_session_is_about(store):
    session = session_on(store)
    assert (await session.display_summary()).startswith("Nothing was asked yet.")
    await session.append(user("Port the parser to Rust."))
    leaf = session.leaf
    assert (await session.display_summary()).startswith("Port the parser to Rust.")
    assert session.leaf == leaf
