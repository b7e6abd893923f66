"""What all adapters share, without a framework."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foldline.adapters import histories as rooms
from foldline.adapters.forms import FrameworkForm, chat_form, read_chat
from foldline.adapters.histories import FrameworkHistories, RequestSetup
from foldline.core.measure.overflow import overflow
from foldline.errors import InputError, LeafMoved, PolicyError, ProviderError
from foldline.session.session import Session

PLAIN: FrameworkForm[dict[str, Any]] = chat_form(lambda one: [one], lambda payload: payload)
SAID = [{"role": "user", "content": "Hello."}]


@pytest.mark.parametrize(
    ("setup", "options", "told"),
    [
        (
            RequestSetup(served="in-house-7b"),
            {},
            "the window of in-house-7b is not known, 200,000 tokens are assumed",
        ),
        (RequestSetup(), {}, "the window of the agent's model is not known"),
        (RequestSetup(served="in-house-7b", window=32_000), {}, None),
        (RequestSetup(served="in-house-7b"), {"window": 32_000}, None),
        (RequestSetup(served="gpt-5.2"), {}, None),
    ],
)
def test_a_window_that_is_only_assumed_is_told_once(
    caplog: pytest.LogCaptureFixture, setup: RequestSetup, options: Any, told: str | None
) -> None:
    histories = FrameworkHistories("memory://", PLAIN, **options)
    with caplog.at_level(logging.WARNING, "foldline"):
        for name in ("one", "two"):
            assert histories.view(name, SAID, lambda: setup) == SAID
    histories.close()
    found = [record.getMessage() for record in caplog.records]
    assert len(found) == (told is not None)
    assert told is None or told in found[0]


@pytest.mark.parametrize(
    ("store", "options", "error", "told"),
    [
        ("sessions.db", {}, InputError, "sqlite:///FILE"),
        ("memory://", {"window": "16k"}, InputError, "window = '16k'"),
        ("memory://", {"policy": "foldlin"}, PolicyError, "did you mean 'foldline'"),
        ("memory://", {"target": 8_000}, TypeError, "target"),
    ],
)
def test_what_is_given_wrongly_is_refused_at_once(
    store: str, options: Any, error: type[Exception], told: str
) -> None:
    """Every call sent the whole history, with a traceback in the log: nothing was ever folded."""
    with pytest.raises(error, match=told):
        FrameworkHistories(store, PLAIN, **options)


def test_where_the_store_is_away_one_line_says_why_and_tools_answer(caplog: pytest.LogCaptureFixture) -> None:
    histories = FrameworkHistories("sqlite:////dev/null/sessions.db", PLAIN, window=16_000)
    with caplog.at_level(logging.WARNING, "foldline"):
        assert histories.view("talk", SAID) == SAID
        answer = histories.call_tool("talk", "recall_search", {"query": "Hello"})
    histories.close()
    assert answer.startswith("[Recall] Error: ")
    assert [one.exc_info for one in caplog.records] == [None, None]
    assert all("/dev/null/sessions.db" in one.getMessage() for one in caplog.records)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def reply(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def talk(turns: int, name: str = "part", lines: int = 1) -> list[dict[str, Any]]:
    return [
        said
        for n in range(turns)
        for said in (user(f"Look at {name} {n}. " * lines), reply(f"I saw {name} {n}. " * lines))
    ]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/sessions.db"


@pytest.fixture
def histories(url: str) -> Iterator[FrameworkHistories[dict[str, Any]]]:
    made = FrameworkHistories(url, PLAIN, window=16_000)
    yield made
    made.close()


def stored(histories: FrameworkHistories[Any]) -> dict[str, int]:
    """How many messages each session of the store has."""

    async def counted(history: Any) -> dict[str, int]:
        return {one.id: one.messages for one in await history.session.store.sessions()}

    return histories.run("any", counted)


def test_two_workers_that_serve_one_conversation_in_turn_store_and_send_each_message_once(
    url: str, histories: FrameworkHistories[Any], caplog: pytest.LogCaptureFixture
) -> None:
    other = FrameworkHistories(url, PLAIN, window=16_000)
    whole = [user("Begin.")]
    with caplog.at_level(logging.WARNING, "foldline"):
        for turn in range(8):
            worker = (histories, other)[turn % 2]
            assert worker.view("s", list(whole)) == whole
            whole += [reply(f"Reply {turn}."), user(f"Go on, {turn}.")]
        assert histories.view("s", list(whole)) == whole
    other.close()
    assert stored(histories) == {"s": len(whole)}
    assert caplog.records == []


def test_who_says_something_meanwhile_is_followed(
    histories: FrameworkHistories[Any], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = FrameworkHistories(url, PLAIN, window=16_000)
    begun, more = talk(1), [*talk(1), user("And now?")]
    assert histories.view("s", begun) == begun
    append, first = Session.append, threading.Event()

    async def overtaken(self: Session, *messages: Any) -> list[str]:
        if not first.is_set():
            first.set()
            await asyncio.to_thread(other.view, "s", more)
            raise LeafMoved("somebody else was first")
        return await append(self, *messages)

    monkeypatch.setattr(Session, "append", overtaken)
    assert histories.view("s", more) == more
    other.close()
    assert stored(histories) == {"s": 3}


def test_what_was_stored_by_a_call_that_was_cancelled_is_not_stored_again(
    histories: FrameworkHistories[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Session.append

    async def cut(self: Session, *messages: Any) -> list[str]:
        await append(self, *messages)
        raise asyncio.CancelledError

    with monkeypatch.context() as patch:
        patch.setattr(Session, "append", cut)
        with pytest.raises(asyncio.CancelledError):
            histories.view("s", talk(2))
    whole = [*talk(2), user("And now?")]
    assert histories.view("s", whole) == whole
    assert stored(histories) == {"s": 5}


def test_histories_that_alternate_under_one_name_have_a_session_each_and_keep_their_folds(
    histories: FrameworkHistories[Any],
) -> None:
    ours, theirs = talk(1, "our part"), talk(1, "their part")
    for turn in range(20):
        for whole, name in ((ours, "our part"), (theirs, "their part")):
            whole += [user(f"Look at {name} {turn}. " * 60), reply(f"I saw {name} {turn}. " * 60)]
            view = histories.view("s", [*whole, user("Now?")])
            assert ("our part" in str(view)) == (whole is ours)
            whole += [user("Now?"), reply("Yes.")]
    sizes = stored(histories)
    assert [name.split(".")[0] for name in sizes] == ["s", "s"]
    assert set(sizes.values()) == {len(ours) - 1}
    for name in sizes:
        branches = histories.run(name, lambda history: history.session.branches())
        assert len(branches) == 1
        assert histories.run(name, lambda history: history.session.stats()).summaries >= 1


def test_an_edited_history_becomes_a_branch_of_its_session(histories: FrameworkHistories[Any]) -> None:
    whole = talk(3)
    histories.view("s", whole)
    edited = [*whole[:2], user("Something else.")]
    assert histories.view("s", edited) == edited
    assert stored(histories) == {"s": 3}


def test_the_window_is_that_of_the_agents_model_whoever_writes_summaries() -> None:
    histories = FrameworkHistories("memory://", PLAIN, model="anthropic:claude-haiku-4-5")
    histories.view("s", SAID, lambda: RequestSetup(served="in-house", window=32_000))
    setup = histories.run("s", lambda history: asyncio.sleep(0, history.session.setup))
    histories.close()
    assert setup.window.context == 32_000
    assert setup.model == "anthropic:claude-haiku-4-5"


def test_a_session_has_the_window_of_its_own_call_not_of_another_that_was_led_to_it_first(url: str) -> None:
    ours, theirs = [user("Ours."), reply("Yes."), user("Go on.")], [user("Theirs.")]
    first = FrameworkHistories(url, PLAIN)
    first.view("s", ours, lambda: RequestSetup(window=100_000))
    first.close()
    histories = FrameworkHistories(url, PLAIN)
    histories.run("s", lambda history: history.whole())  # as where a framework asks for the history first
    histories.view("s", theirs, lambda: RequestSetup(window=8_000))
    histories.view("s", ours, lambda: RequestSetup(system="Be brief.", window=100_000))
    setup = histories.run("s", lambda history: asyncio.sleep(0, history.session.setup))
    assert (setup.window.context, setup.system) == (100_000, "Be brief.")
    [other] = set(stored(histories)) - {"s"}
    setup = histories.run(other, lambda history: asyncio.sleep(0, history.session.setup))
    histories.close()
    assert setup.window.context == 8_000


def test_a_conversation_that_is_open_does_not_wait_for_another_to_be_opened(
    histories: FrameworkHistories[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    histories.view("open", talk(1))
    enter, asked, go = Session.__aenter__, threading.Event(), threading.Event()

    async def slow(self: Session) -> Session:
        asked.set()
        await asyncio.to_thread(go.wait, 60)
        return await enter(self)

    monkeypatch.setattr(Session, "__aenter__", slow)
    opening = threading.Thread(target=histories.view, args=("slow", talk(1)))
    opening.start()
    assert asked.wait(60)
    whole = [*talk(1), user("And now?")]
    assert histories.view("open", whole) == whole
    go.set()
    opening.join(60)
    assert stored(histories) == {"open": 3, "slow": 2}


def test_histories_that_begin_with_one_system_message_have_a_session_each(
    histories: FrameworkHistories[Any],
) -> None:
    system = {"role": "system", "content": "You look at parts."}
    wholes = {name: [system, *talk(1, name)] for name in ("hulls", "masts", "sails")}
    for turn in range(10):
        for name, whole in wholes.items():
            whole += [user(f"Look at {name} {turn}. " * 60), reply(f"I saw {name} {turn}. " * 60)]
            assert name in str(histories.view("s", list(whole)))
    sizes = stored(histories)
    assert set(sizes.values()) == {23}
    assert len(sizes) == 3
    for name in sizes:
        assert len(histories.run(name, lambda history: history.session.branches())) == 1


def kept(histories: FrameworkHistories[Any]) -> list[str]:
    whole = histories.run("s", lambda history: history.whole())
    return [one["content"] for one in whole]


def test_what_a_call_was_sent_is_kept_once_though_another_worker_kept_something_before(url: str) -> None:
    ours, theirs = (FrameworkHistories(url, PLAIN, record=True, window=16_000) for _ in range(2))
    ours.run("s", lambda history: history.add([user("One."), reply("Yes.")]))
    ours.view("s", [user("One."), reply("Yes."), user("Two.")])
    theirs.run("s", lambda history: history.whole())
    theirs.run("s", lambda history: history.add([user("Theirs.")]))
    ours.run("s", lambda history: history.add([user("Two."), reply("Done.")]))
    assert kept(ours) == ["One.", "Yes.", "Two.", "Theirs.", "Done."]
    ours.close()
    theirs.close()


def test_a_record_that_was_begun_anew_elsewhere_is_not_put_back_by_a_call(url: str) -> None:
    ours, theirs = (FrameworkHistories(url, PLAIN, record=True, window=16_000) for _ in range(2))
    ours.run("s", lambda history: history.add([user("One."), reply("Yes.")]))
    theirs.run("s", lambda history: history.clear())
    theirs.run("s", lambda history: history.add([user("Anew.")]))
    whole = [user("One."), reply("Yes."), user("Two.")]
    assert ours.view("s", whole) == whole
    assert kept(theirs) == ["Anew."]
    ours.close()
    theirs.close()


def test_what_is_said_while_a_conversation_is_opened_is_followed(
    histories: FrameworkHistories[Any], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = FrameworkHistories(url, PLAIN, window=16_000)
    more = [*talk(1), user("And now?")]
    other.view("s", talk(1))
    opened, first = FrameworkHistories._open_session, threading.Event()

    async def overtaken(self: Any, session: str, setup: Any) -> Session:
        if self is histories and setup is not None and not first.is_set():
            first.set()
            await asyncio.to_thread(other.view, "s", more)
        return await opened(self, session, setup)

    monkeypatch.setattr(FrameworkHistories, "_open_session", overtaken)
    assert histories.view("s", more) == more
    other.close()
    assert stored(histories) == {"s": 3}


def call(arguments: str) -> list[dict[str, Any]]:
    asked = {"id": "call_1", "type": "function", "function": {"name": "run", "arguments": arguments}}
    return [{"role": "assistant", "content": None, "tool_calls": [asked]}]


def test_calls_whose_ids_come_again_are_told_apart_by_their_arguments(
    histories: FrameworkHistories[Any],
) -> None:
    for code in ("a", "b"):
        result = {"role": "tool", "tool_call_id": "call_1", "content": f"output of {code}"}
        for whole in ([user("Do it.")], [user("Do it."), *call(f'{{"code": "{code}"}}'), result]):
            histories.view("s", whole)
    assert sorted(stored(histories).values()) == [3, 3]


def test_a_record_counts_the_results_that_the_session_put_for_calls_that_were_cut_short(url: str) -> None:
    histories = FrameworkHistories(url, PLAIN, record=True, window=16_000)
    histories.run("s", lambda history: history.add([user("One."), *call("{}")]))
    histories.run("s", lambda history: history.whole())
    histories.run("s", lambda history: history.add([user("Two.")]))
    histories.view("s", [user("One."), user("Two.")])  # the framework leaves the open call out
    histories.run("s", lambda history: history.add([reply("Done.")]))
    whole = histories.run("s", lambda history: history.whole())
    histories.run("s", lambda history: history.add([user("Three.")]))
    shown = histories.view("s", [*whole, user("Three.")])
    assert [one["content"] for one in shown][-3:] == ["Two.", "Done.", "Three."]
    sizes = stored(histories)
    assert sizes["s"] == len(whole) + 1
    assert sum(sizes.values()) == sizes["s"] + 2
    histories.close()


def test_a_record_that_is_read_between_a_call_and_its_keeping_holds_each_message_once(url: str) -> None:
    ours, theirs = (FrameworkHistories(url, PLAIN, record=True, window=16_000) for _ in range(2))
    ours.view("s", [user("One.")])
    ours.run("s", lambda history: history.whole())
    ours.run("s", lambda history: history.add([user("One.")]))
    assert kept(ours) == ["One."]
    ours.view("s", [user("One."), user("Two.")])
    theirs.run("s", lambda history: history.whole())
    theirs.run("s", lambda history: history.add([user("Theirs.")]))
    ours.run("s", lambda history: history.clear())
    ours.run("s", lambda history: history.add([user("Two.")]))
    assert kept(ours) == ["Two."]
    ours.close()
    theirs.close()


def test_closing_waits_for_what_is_under_way(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    histories = FrameworkHistories(url, PLAIN, window=16_000)
    enter, asked, go = Session.__aenter__, threading.Event(), threading.Event()
    shown = list[Any]()

    async def slow(self: Session) -> Session:
        asked.set()
        await asyncio.to_thread(go.wait, 60)
        return await enter(self)

    monkeypatch.setattr(Session, "__aenter__", slow)
    viewing = threading.Thread(target=lambda: shown.extend(histories.view("s", talk(1))))
    viewing.start()
    assert asked.wait(60)
    closing = threading.Thread(target=histories.close)
    closing.start()
    go.set()
    for thread in (viewing, closing):
        thread.join(60)
        assert not thread.is_alive()
    assert shown == talk(1)


class Odd(dict[str, Any]):
    """A message with an array in it, which is neither equal nor not."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth value of an array is ambiguous")

    __hash__ = None


def test_messages_that_cannot_be_compared_are_read_again(url: str, caplog: pytest.LogCaptureFixture) -> None:
    histories = FrameworkHistories(url, chat_form(lambda one: [dict(one)], Odd), window=16_000)
    with caplog.at_level(logging.WARNING, "foldline"):
        for count in (1, 2, 3):
            assert len(histories.view("s", [Odd(one) for one in talk(count)])) == 2 * count
    assert caplog.records == []
    assert stored(histories) == {"s": 6}
    histories.close()


def test_the_thread_of_histories_that_nobody_holds_ends() -> None:
    before = set(threading.enumerate())
    histories = FrameworkHistories("memory://", PLAIN, window=16_000)
    histories.view("s", talk(1))
    [thread] = [one for one in set(threading.enumerate()) - before if one.name == "foldline"]
    del histories
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()


def test_a_history_that_is_led_aside_is_not_read_again_at_each_call(url: str) -> None:
    read = list[int]()

    def decode(messages: Any) -> Any:
        read.append(len(messages))
        return read_chat([[one] for one in messages])

    histories = FrameworkHistories(url, FrameworkForm("openai-chat", decode, list), window=64_000)
    histories.view("s", talk(1))
    whole = [user("Another task.")]
    for turn in range(30):
        histories.view("s", whole)
        whole = [*whole, reply(f"Reply {turn}."), user(f"Go on, {turn}.")]
        if turn > 1:
            assert max(read) <= rooms.FIRST
        read.clear()
    histories.close()


TOO_LONG = (
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or "
    "`max_tokens` and try again"
)


def test_where_a_shorter_reply_would_fit_the_view_is_folded_since_a_framework_cannot_ask_for_one(
    url: str,
) -> None:
    histories = FrameworkHistories(url, PLAIN, window=200_000)
    whole = [*talk(40, lines=80), user("And now?")]
    assert histories.view("s", whole) == whole
    error = ProviderError(TOO_LONG, kind="overflow", overflow=overflow(TOO_LONG, 400))
    assert len(histories.overflowed("s", whole, error)) < len(whole)
    histories.close()


def test_a_model_looks_back_into_its_own_conversation_alone(histories: FrameworkHistories[Any]) -> None:
    histories.view("ours", [user("The order is XK-42."), reply("Noted.")])
    histories.view("theirs", [user("The order is ZZ-99."), reply("Noted.")])
    assert all("session" not in tool["input_schema"]["properties"] for tool in histories.tools())
    assert "XK-42" in histories.call_tool("ours", "recall_search", {"query": "order"})
    answer = histories.call_tool("ours", "recall_search", {"query": "ZZ-99", "session": "theirs"})
    assert "takes query, limit, not session" in answer
    assert "The order is ZZ-99" not in answer


def test_a_conversation_is_opened_once_and_the_one_used_longest_ago_is_closed(
    histories: FrameworkHistories[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, closed = list[str](), list[str]()
    enter, close = Session.__aenter__, Session.close

    async def entered(self: Session) -> Session:
        opened.append(self.id)
        await asyncio.sleep(0.02)
        return await enter(self)

    async def left(self: Session) -> None:
        closed.append(self.id)
        await close(self)

    monkeypatch.setattr(Session, "__aenter__", entered)
    monkeypatch.setattr(Session, "close", left)
    monkeypatch.setattr(rooms, "OPEN", 2)

    async def together() -> None:
        await asyncio.gather(*(histories.aview("a", talk(1)) for _ in range(4)))

    asyncio.run(together())
    assert opened == ["a", "a"]  # to look into it, then with what the call sends
    histories.view("b", talk(1))
    histories.view("c", talk(1))
    assert opened == ["a", "a", "b", "b", "c", "c"]
    histories.run("c", lambda _: asyncio.sleep(0.1))
    assert closed == ["a", "b", "c", "a"]


def test_parts_that_lead_stay_with_the_message_behind_them(url: str) -> None:
    def decode(messages: Any) -> Any:
        """Read a thought as a part of the message behind it."""
        return read_chat([[] if one["role"] == "thought" else [one] for one in messages])

    histories = FrameworkHistories(url, FrameworkForm("openai-chat", decode, list, leads=True), window=16_000)
    whole: list[dict[str, Any]] = []
    for turn in range(40):
        whole += [user(f"Look at {turn}. " * 60), {"role": "thought", "content": f"thought {turn}"}]
        whole += [reply(f"I saw {turn}. " * 60)]
        view = histories.view("s", list(whole))
        for thought, said in pairwise(view):
            if thought["role"] == "thought":
                number = thought["content"].split()[1]
                assert said["content"].startswith(f"I saw {number}. ")
        kept = [one for one in view if one["role"] == "assistant" and one["content"].startswith("I saw")]
        assert len(kept) == sum(one["role"] == "thought" for one in view)
    assert len(view) < len(whole)
    histories.close()
