"""Live state: rendered by callbacks, carried by the log, never a reason for a compaction to fail."""

import asyncio
import logging

import msgspec
import pytest
from tests.support.logs import add, add_entry, ask_for, compact_log, view_of
from tests.support.talk import assistant, calls, log_of, reminder, repeat, tool, user

from foldline.core.compact.fold_request import continuation_of
from foldline.core.decide.continuation import Continuation
from foldline.core.log.entries import Compacted, Live, Noted
from foldline.errors import InputError
from foldline.session import hooks
from foldline.session.hooks import NOTE, LiveState, known_live


def talked(turns: int = 6):
    log = log_of(user("Mend the login page."))
    for n in range(turns):
        add(log, assistant(repeat(f"I looked at part {n}", 40)))
        add(log, user(repeat(f"Go on with part {n}", 40)))
    return log


def noted(log, **data) -> None:
    add_entry(log, Noted("", None, NOTE, data))


def folded(log, *live: Live, policy="foldline") -> Compacted:
    made = compact_log(log, msgspec.structs.replace(ask_for(policy), live=live))
    assert isinstance(made, Compacted)
    return made


async def test_callbacks_render_at_the_time_they_are_asked():
    todos, kept = ["a"], LiveState()
    kept.attach("todos", lambda: "\n".join(todos))

    async def files() -> str:
        await asyncio.sleep(0)
        return "src/login.py"

    kept.attach("open files", files)
    fold = view_of(talked())
    assert await kept.now(fold) == (Live("todos", "a"), Live("open files", "src/login.py"))
    todos.append("b")
    assert (await kept.now(fold))[0].text == "a\nb"


async def test_nothing_rendered_is_nothing_held_and_off_takes_a_callback_away():
    kept = LiveState()
    off = kept.attach("todos", lambda: None)
    kept.attach("plan", lambda: "  ")
    assert await kept.now(view_of(talked())) == ()
    newer = kept.attach("todos", lambda: "new")
    off()
    assert await kept.now(view_of(talked())) == (Live("todos", "new"),)
    newer()
    assert await kept.now(view_of(talked())) == ()


@pytest.mark.parametrize("name", ["", "a\nb", '"><x', "x" * 65, " a"])
def test_a_name_that_could_break_the_checkpoint_is_refused(name):
    with pytest.raises(InputError, match="cannot name live state"):
        LiveState().attach(name, str)


async def test_a_callback_that_raises_or_hangs_leaves_what_was_known(caplog, monkeypatch):
    monkeypatch.setattr(hooks, "PATIENCE", 0.01)
    log = talked()
    noted(log, todos="- [ ] tests", plan="the plan")
    kept = LiveState()
    kept.attach("todos", lambda: 1 / 0)

    async def hangs() -> str:
        await asyncio.sleep(60)
        return "never"

    kept.attach("plan", hangs)
    with caplog.at_level(logging.WARNING, logger="foldline"):
        assert await kept.now(view_of(log)) == (Live("todos", "- [ ] tests"), Live("plan", "the plan"))
    assert "division by zero" in caplog.text
    assert "TimeoutError" in caplog.text


def test_the_log_knows_what_the_checkpoint_holds_and_what_was_noted_since():
    log = talked()
    noted(log, todos="old")
    folded(log, Live("todos", "frozen"), Live("plan", "first"))
    assert known_live(view_of(log)) == {"todos": "frozen", "plan": "first"}
    noted(log, todos="newer", files="a.py")
    assert known_live(view_of(log)) == {"todos": "newer", "plan": "first", "files": "a.py"}


async def test_a_callback_that_returns_a_list_stops_no_compaction(caplog):
    kept, log = LiveState(), talked()
    kept.attach("todos", lambda: ["a", "b"])
    noted(log, todos="known")
    assert await kept.now(view_of(log)) == (Live("todos", "known"),)
    assert "it returned a list, not a text" in caplog.text


async def test_live_state_that_nothing_renders_any_more_is_carried_from_checkpoint_to_checkpoint():
    log = talked()
    folded(log, Live("todos", "frozen"))
    for n in range(8):
        add(log, assistant(repeat(f"I mended part {n}", 60)))
        add(log, user(repeat(f"Go on with part {n}", 60)))

    ask = await LiveState().complete(ask_for("foldline"), view_of(log))
    made = compact_log(log, ask)

    assert isinstance(made, Compacted)
    assert made.checkpoint.live == (Live("todos", "frozen"),)


def test_where_a_session_stands_is_read_from_its_newest_messages():
    assert continuation_of(view_of(log_of(user()))) == Continuation("mid_tool", "prompt")
    assert continuation_of(view_of(log_of(user(), calls("c1")))).because == "calls"
    assert continuation_of(view_of(log_of(user(), assistant("Shall I go on?")))).state == "waiting"
    assert continuation_of(view_of(log_of(user(), assistant("It is done.")))) == Continuation("done")
    assert continuation_of(view_of(log_of())) == Continuation("done")


async def test_a_question_that_was_folded_away_is_not_forgotten():
    log = log_of(
        user(repeat("Look at it", 300)), assistant(repeat("I did so", 300) + ". Shall I drop the table?")
    )
    made = compact_log(log, await LiveState().complete(ask_for("claude-code"), view_of(log)))
    assert isinstance(made, Compacted)
    assert made.first_kept is None
    assert "> Shall I drop the table?" in made.checkpoint.text

    fold = view_of(log)
    assert continuation_of(fold).state == "waiting"
    add(log, reminder())
    assert continuation_of(view_of(log)).question.endswith("Shall I drop the table?")
    add(log, user("No."))
    assert continuation_of(view_of(log)) == Continuation("mid_tool", "prompt")


async def test_results_that_no_reply_has_seen_are_no_folded_question():
    log = log_of(user(), calls("c1"), tool("c1"))
    assert continuation_of(view_of(log)) == Continuation("mid_tool", "results")
