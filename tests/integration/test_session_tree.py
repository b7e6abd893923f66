"""The tree of a stored session from outside: branch, rewind, hand-off and sub-agents, on both stores."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.test_session import WINDOW, fill, turn

import foldline
from foldline.agent.spending import spent
from foldline.core.checkpoint.request import SummaryReply
from foldline.core.log.entries import Compacted, Noted, Said
from foldline.core.log.messages import Message, Text, Usage
from foldline.dialects import get
from foldline.session.links import Link, handed_from
from foldline.summarizers import ModelSummarizer
from foldline.summarizers.offline import OfflineSummarizer
from foldline.testing import Scripted

RULE = "Never touch anything under migrations/ without asking me first."


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'sessions.db'}"


def texts(messages) -> list[str]:
    return [message["content"] for message in messages]


async def ask(session, *words: str) -> list[str]:
    ids = []
    for n, text in enumerate(words):
        ids += await session.append({"role": "assistant" if n % 2 else "user", "content": text})
    return ids


# ---- branch


async def test_a_branch_is_a_new_leaf_in_the_same_session_and_the_old_one_stays(url):
    async with foldline.open(url, "s") as session:
        first, answer, *_ = await ask(session, "Mend the page.", "Sessions or tokens?", "Sessions.", "Done.")
        left = session.leaf
        seen = []
        session.on("branched", seen.append)

        assert await session.branch(answer) == answer
        await ask(session, "Tokens.")

        assert texts(await session.context()) == ["Mend the page.", "Sessions or tokens?", "Tokens."]
        here, there = await session.branches()
        assert (here.current, here.text, there.leaf, there.text) == (True, "Tokens.", left, "Sessions.")
        assert here.fork == there.fork == answer
        assert await session.branch(left) == left
        assert texts(await session.history())[-1] == "Done."
        assert [event.leaf for event in seen] == [answer, left]
        assert await session.verify() == []
        assert first in {entry.id async for entry in session.store.path("s")}


async def test_a_branch_behind_a_fold_has_its_messages_back_and_one_before_it_too(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        await fill(session, 1)
        early = session.leaf
        await fill(session, 8, start=1)
        await session.context()
        folded = session.leaf
        assert (await session.stats()).summaries >= 1

        await session.branch(early)
        assert await session.context() == await session.history()
        assert (await session.stats()).summaries == 0
        await session.branch(folded)
        assert session.view_tokens < 6_000


async def test_a_branch_that_is_too_large_for_the_window_is_compacted_before_it_is_sent(tmp_path):
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    wide = foldline.Window(context=60_000, output=1_000)
    async with foldline.open(url, "s", window=wide) as session:
        await fill(session, 8)
        large, rest = session.leaf, session.view_tokens
        assert rest > 6_000
        await session.branch((await session.append({"role": "user", "content": "Small."}))[0])
    async with foldline.open(url, "s", window=WINDOW) as session:
        await session.branch(large)
        await session.append({"role": "user", "content": "Go on."})
        await session.context()
        assert session.view_tokens <= 6_000


async def test_a_branch_between_a_call_and_its_result_waits_for_it_and_the_user_may_cut_it_short(url):
    async with foldline.open(url, "s") as session:
        ids = [(await session.append(message))[0] for message in turn(0)]
        await session.branch(ids[1])
        with pytest.raises(foldline.CallsOpen):
            await session.context()
        await session.append({"role": "user", "content": "Leave it."})
        messages = await session.context()
        assert get("openai-chat").validate(messages) == []
        assert messages[-1]["content"] == "Leave it."


class Spoken(OfflineSummarizer):
    """A model that writes the summary of a branch."""

    name = "model:test"

    def __init__(self) -> None:
        super().__init__()
        self.asked = []

    async def summarize(self, request):
        self.asked.append(request)
        spent = Usage(input=900, output=80)
        return SummaryReply(self.write(request).text, self.name, usage=spent, price=0.01)


async def test_what_was_done_on_a_left_branch_can_be_told_to_the_next_as_data(url):
    words = Spoken()
    async with foldline.open(url, "s", summarizer=words) as session:
        await ask(session, f"Mend src/login.py. {RULE}", "Sessions or tokens?", "Use sessions.")
        answer = [entry.id async for entry in session.store.path("s")][1]
        await ask(session, "Use sessions.", "I wrote src/session.py; the tests fail with ECONNRESET." * 3)

        leaf = await session.branch(answer, summarize=True, instructions="the error")

        assert leaf == session.leaf != answer
        wanted = words.asked[0]
        assert (wanted.kind, wanted.instructions) == ("branch", "the error")
        assert wanted.folded[0].message.text == "Use sessions."
        entry = await session.store.entry("s", leaf)
        assert isinstance(entry, Said)
        assert entry.message.injected
        note = await session.store.entry("s", entry.parent)
        assert note.data["usage"]["input"] == 900 * len(words.asked)
        assert note.data["price"] == pytest.approx(0.01 * len(words.asked))
        messages = await session.context()
        assert get("openai-chat").validate(messages) == []
        assert "src/session.py" in messages[-1]["content"]
        await session.append({"role": "user", "content": "Use tokens."})
        assert get("openai-chat").validate(await session.context()) == []


async def test_what_is_said_while_a_branch_is_summed_up_is_not_left_behind_unseen(url):
    class Slow(OfflineSummarizer):
        async def summarize(self, request):
            begun.set()
            await go.wait()
            return self.write(request)

    begun, go = asyncio.Event(), asyncio.Event()
    async with foldline.open(url, "s", summarizer=Slow()) as session:
        first, *_ = await ask(session, "Mend the page.", "Done. " * 100, "Now the tests.")
        moving = asyncio.create_task(session.branch(first, summarize=True))
        await begun.wait()
        await ask(session, "And the footer.")  # nobody waits for the summary
        go.set()
        with pytest.raises(foldline.LeafMoved, match="appended to session s meanwhile"):
            await moving
        assert texts(await session.context())[-1] == "And the footer."


async def test_a_fold_that_comes_while_a_branch_is_summed_up_does_not_stop_it(url):
    class Slow(OfflineSummarizer):
        async def summarize(self, request):
            if request.kind == "branch":
                begun.set()
                await go.wait()
            return self.write(request)

    begun, go = asyncio.Event(), asyncio.Event()
    async with foldline.open(url, "s", summarizer=Slow()) as session:
        first, *_ = await ask(session, "Mend the page.", "Done. " * 300, "Now the tests.", "Passed. " * 300)
        moving = asyncio.create_task(session.branch(first, summarize=True))
        await begun.wait()
        assert isinstance(await session.compact(target=500), foldline.Receipt)
        go.set()
        assert await moving == session.leaf
        assert texts(await session.context())[0] == "Mend the page."
        assert "Now the tests." in texts(await session.context())[-1]


async def test_nothing_left_behind_tells_nothing(url):
    async with foldline.open(url, "s") as session:
        (first,) = await ask(session, "Hello.")
        assert await session.branch(first, summarize=True) == first
        assert len(await session.history()) == 1


async def test_two_writers_cannot_both_move_the_leaf(tmp_path):
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    async with foldline.open(url, "s") as one, foldline.open(url, "s") as two:
        first, second = await ask(one, "Hello.", "Hi.")
        assert texts(await two.context()) == ["Hello.", "Hi."]
        async with foldline.open(url, "s") as three:
            await one.append({"role": "user", "content": "More."})
            with pytest.raises(foldline.LeafMoved):
                await three.branch(first)
            assert await three.branch(second) == second
        with pytest.raises(foldline.LeafMoved):
            await one.append({"role": "user", "content": "On the old leaf."})
        assert texts(await one.context()) == ["Hello.", "Hi."]


@pytest.mark.parametrize("steps", range(0, 24, 2))
async def test_a_branch_that_is_cancelled_at_any_point_leaves_the_session_usable(tmp_path, steps):
    async with foldline.open(f"sqlite:///{tmp_path / 's.db'}", "s") as session:
        ids = await ask(session, "One.", "Two.", "Three.", "Four.")
        task = asyncio.create_task(session.branch(ids[1], summarize=True))
        for _ in range(steps):
            await asyncio.sleep(0 if steps % 4 else 0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        await session.append({"role": "user", "content": "After."})
        said = texts(await session.context())
        assert said[:2] == ["One.", "Two."]
        assert said[-1] == "After."
        assert await session.verify() == []


# ---- rewind


async def test_a_rewind_hands_the_users_text_back_and_the_way_forward_too(url):
    async with foldline.open(url, "s") as session:
        await ask(session, "Mend the page.", "Done.", "Now teh tests.", "Done too.")

        back = await session.rewind()

        assert (back.text, back.message.role) == ("Now teh tests.", "user")
        assert texts(await session.context()) == ["Mend the page.", "Done."]
        await session.append({"role": "user", "content": back.text.replace("teh", "the")})
        assert texts(await session.history()) == ["Mend the page.", "Done.", "Now the tests."]
        await session.branch(back.left)
        assert texts(await session.history())[-1] == "Done too."


async def test_a_rewind_to_the_first_message_empties_the_path_and_not_the_session(url):
    async with foldline.open(url, "s") as session:
        first, *_ = await ask(session, "Mend the page.", "Done.")

        back = await session.rewind(first)

        assert (await session.context(), session.leaf) == ([], None)
        await session.append({"role": "user", "content": "Another."})
        assert texts(await session.context()) == ["Another."]
        assert len(await session.branches()) == 2
        await session.branch(back.left)
        assert texts(await session.context()) == ["Mend the page.", "Done."]


async def test_a_rewind_behind_a_compaction_takes_it_away_with_what_followed(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        await fill(session, 2)
        (asked,) = await session.append({"role": "user", "content": "Compact after this."})
        await session.compact(target=2_000)
        await session.append({"role": "assistant", "content": "I did."})

        back = await session.rewind(asked)

        assert back.text == "Compact after this."
        assert (await session.stats()).summaries == 0
        assert (await session.stats()).total_messages == 8


async def test_images_go_back_with_the_message(url):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    async with foldline.open(url, "s") as session:
        content = [{"type": "text", "text": "What is this?"}, picture]
        await session.append({"role": "user", "content": content})
        back = await session.rewind()
        assert back.text == "What is this?"
        await session.append(back.message)
        assert (await session.context())[0]["content"] == content


# ---- hand-off


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "openai-responses", "ui-message"])
async def test_a_hand_off_begins_a_new_session_with_what_serves_its_goal(url, dialect):
    async with foldline.open(url, "s", window=WINDOW, dialect=dialect) as session:
        await session.append(Message("system", (Text("You mend code."),)))
        await session.append({"role": "user", "content": f"Mend src/login.py. {RULE}"})
        await session.append({"role": "assistant", "content": "I mended login() in src/login.py. " * 400})
        before, said = session.view_tokens, await session.history()

        async with await session.handoff("Write the tests for src/login.py", to="tests") as fresh:
            messages = await fresh.context()
            assert get(dialect).validate(messages, fresh.system) == []
            text = str(messages)
            assert RULE in text
            assert "src/login.py" in text
            assert fresh.view_tokens < before
            await fresh.append({"role": "user", "content": "Begin."})
            assert get(dialect).validate(await fresh.context(), fresh.system) == []
            assert await fresh.verify() == []
            (link,) = await fresh.links()
            assert (link.session, link.how, link.way) == ("s", "handoff", "from")
            assert link.goal == "Write the tests for src/login.py"
        assert await session.history() == said
        assert session.view_tokens == before
        assert await session.links() == [Link("tests", "handoff", "to", link.entry, link.goal)]


async def test_a_handed_off_session_is_opened_again_by_its_id(tmp_path):
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    async with foldline.open(url, "s") as session:
        await ask(session, f"Mend src/login.py. {RULE}", "I mended it. " * 40)
        fresh = await session.handoff("Write the tests")
        await fresh.close()  # the store is the first session's
        name = fresh.id
        assert name.startswith("s-")
        assert await session.verify() == []
    async with foldline.open(url, name) as again:
        assert RULE in (await again.context())[0]["content"]


async def test_the_checkpoint_can_be_edited_before_it_goes_over(url):
    async with foldline.open(url, "s") as session:
        await ask(session, f"Mend src/login.py. {RULE}", "I mended it. " * 40)
        leaf = session.leaf

        draft = await session.preview_handoff("Write the tests")
        assert RULE in draft
        assert session.leaf == leaf

        async with await session.handoff("Write the tests", text=draft + "\n- Use pytest.") as fresh:
            (message,) = await fresh.context()
            assert "- Use pytest." in message["content"]
            path = [entry async for entry in fresh.store.path(fresh.id)]
            assert isinstance(path[-1], Compacted)
            assert path[-1].receipt.summarizer == "by hand"


async def test_the_start_of_a_handed_off_session_is_not_undone(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        await fill(session, 2)
        async with await session.handoff("Go on with module 2") as fresh:
            assert await fresh.undo() is None
            assert len(await fresh.context()) == 1
            await fill(fresh, 3, start=2)
            receipt = await fresh.compact(target=3_000)
            assert isinstance(receipt, foldline.Receipt)
            assert await fresh.undo() is not None
            assert await fresh.undo() is None


async def test_constraints_survive_hand_offs_and_their_compactions_word_for_word(url):
    async with foldline.open(url, "s0", window=WINDOW) as session:
        await session.append({"role": "user", "content": f"Mend src/login.py. {RULE}"})
        current = session
        for n in range(4):
            await fill(current, 2, start=2 * n)
            await current.compact()
            current = await current.handoff("Go on with the next module", to=f"s{n + 1}")
            assert RULE in str(await current.context())
        assert [link.session for link in await current.links()] == ["s3"]


async def test_recall_reaches_into_the_session_that_was_handed_off(url):
    async with foldline.open(url, "s") as session:
        (secret, *_) = await ask(
            session, "The gate opens with zebra-7781.", "Noted. " * 200, "Thanks.", "Yes."
        )
        async with await session.handoff("Paint the fence") as fresh:
            await ask(fresh, "How does the gate open?")
            (hit,) = [hit for hit in await fresh.recall("zebra")]
            assert (hit.session, hit.entry) == ("s", secret)
            assert "zebra-7781" in (await fresh.read(secret)).text
            assert "zebra-7781" in await fresh.call_tool("recall_read", {"entry": secret})


async def test_a_taken_id_and_an_empty_session_are_refused(url):
    async with foldline.open(url, "s") as session:
        with pytest.raises(foldline.InputError, match="nothing to hand off"):
            await session.handoff("Anything")
        await ask(session, "Hello.", "Hi.")
        with pytest.raises(foldline.InputError, match="a session 's' exists already"):
            await session.handoff("Anything", to="s")
        assert await session.links() == []


async def test_messages_may_be_said_while_a_hand_off_is_written(url):
    class Slow(OfflineSummarizer):
        async def summarize(self, request):
            begun.set()
            await go.wait()
            return self.write(request)

    begun, go = asyncio.Event(), asyncio.Event()
    async with foldline.open(url, "s", summarizer=Slow()) as session:
        await ask(session, "Mend the page.", "Done. " * 100)
        making = asyncio.create_task(session.handoff("Write the tests", to="new"))
        await begun.wait()
        await ask(session, "And the footer.")
        go.set()
        fresh = await making
        assert "footer" not in str(await fresh.context())
        assert texts(await session.history())[-1] == "And the footer."


# ---- sub-agents


async def test_a_sub_agent_has_a_session_of_its_own_that_no_threshold_folds(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        await ask(session, "Find the port.")
        async with await session.subagent("Search the docs\nfor the port") as child:
            await fill(child, 5)
            await child.context()
            assert (await child.stats()).summaries == 0
            assert child.view_tokens > 6_000
            (link,) = await child.links()
            assert (link.session, link.how, link.way) == ("s", "subagent", "from")
            assert (await session.live())["sub-agents"] == f"- {child.id}: Search the docs for the port"
            name = child.id
        assert [link.session for link in await session.links()] == [name]
        await session.finished(name)
        assert await session.live() == {}
        assert len(await session.history()) == 1


async def test_running_sub_agents_stand_in_the_checkpoint_and_are_not_forgotten(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        await fill(session, 2)
        one = await session.subagent("Search the docs", to="one")
        await session.subagent("Run the tests", to="two")
        await session.compact()
        text = str(await session.context())
        assert "- one: Search the docs" in text
        assert "- two: Run the tests" in text
        await session.finished("one")
        assert "- one: Search the docs" in str(await session.context())  # frozen until the next boundary
        await fill(session, 2, start=2)
        await session.compact()
        text = str(await session.context())
        assert "- one:" not in text
        assert "- two: Run the tests" in text
        assert (await one.links())[0].session == "s"


async def test_links_and_live_state_are_notes_and_no_messages(url):
    async with foldline.open(url, "s") as session:
        await ask(session, "Hello.")
        await session.subagent("Look", to="child")
        kinds = [entry.kind async for entry in session.store.path("s") if isinstance(entry, Noted)]
        assert kinds == ["link", "live_state"]
        assert texts(await session.context()) == ["Hello."]


async def test_a_session_that_comes_from_another_asks_its_model_in_its_own_words(url):
    summary = "## Goal\nLook.\n"
    provider = Scripted(lambda asked: summary)
    name = provider.name
    written = ModelSummarizer(provider, window=WINDOW)
    async with foldline.open(url, "s", model=name, window=WINDOW, summarizer=written) as session:
        await ask(session, "Mend the page.", "Done. " * 100)
        child = await session.subagent("Look", to="child")
        assert isinstance(child.summarizer, ModelSummarizer)
        assert child.summarizer is not written
        assert session.summarizer is written
        await ask(child, "Read the child's page.", "I have read it. " * 400, "And now?")
        await child.compact(target=600)
        sent = str([request.messages for request in provider.requests])
        assert "Read the child's page." in sent
        assert "Mend the page." not in sent


@pytest.mark.parametrize("steps", range(0, 30, 3))
async def test_a_hand_off_that_is_cancelled_at_any_point_leaves_both_sessions_whole(tmp_path, steps):
    async with foldline.open(f"sqlite:///{tmp_path / 's.db'}", "s") as session:
        await ask(session, f"Mend src/login.py. {RULE}", "I mended it. " * 100)
        task = asyncio.create_task(session.handoff("Write the tests", to="new"))
        for _ in range(steps):
            await asyncio.sleep(0 if steps % 2 else 0.002)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

        await ask(session, "After.")
        assert texts(await session.context())[-1] == "After."
        assert await session.verify() == []
        names = {info.id for info in await session.store.sessions()}
        if "new" in names:  # begun: then it is whole, and says where it came from
            assert await session.store.verify("new") == []
            assert await handed_from(session.store, "new") == ["new", "s"]


async def test_rewinds_and_appends_of_several_tasks_leave_one_path_that_is_whole(url):
    async with foldline.open(url, "s") as session:
        await ask(session, "One.", "Two.", "Three.", "Four.")

        async def back() -> None:
            await session.rewind()

        async def on(n: int) -> None:
            await session.append({"role": "user", "content": f"Task {n}."})

        await asyncio.gather(*(on(n) if n % 3 else back() for n in range(12)))

        said = texts(await session.history())
        assert texts(await session.context()) == said
        assert said[:2] == ["One.", "Two."]
        assert await session.verify() == []
        everything = {
            e.message.text
            async for e in session.store.all("s")
            if isinstance(e, Said) and e.message.is_prompt
        }
        assert {f"Task {n}." for n in range(12) if n % 3} <= everything


async def test_there_is_no_way_back_where_nobody_spoke(url):
    async with foldline.open(url, "s") as session:
        with pytest.raises(foldline.InputError, match="no user message to rewind to"):
            await session.rewind()


# ---- merge


async def test_what_was_done_on_another_branch_is_noted_and_the_branch_stays(url):
    words = Spoken()
    async with foldline.open(url, "s", summarizer=words) as session:
        _, answer = await ask(session, f"Mend src/login.py. {RULE}", "Sessions or tokens?")
        await ask(session, "Use sessions.", "I wrote src/session.py; the tests fail with ECONNRESET." * 3)
        other = session.leaf
        await session.branch(answer)
        await ask(session, "Use tokens.", "I wrote src/token.py.")
        before, seen = await session.context(), []
        session.on("message", seen.append)

        note = await session.merge(other, instructions="the error")

        wanted = words.asked[0]
        assert (wanted.kind, wanted.instructions, wanted.prefix) == ("merge", "the error", None)
        assert [entry.message.text[:12] for entry in wanted.folded] == ["Use sessions", "I wrote src/"]
        assert [event.entries for event in seen] == [(note,)]
        messages = await session.context()
        assert messages[:-1] == before
        assert "src/session.py" in messages[-1]["content"]
        assert get("openai-chat").validate(messages) == []
        entry = await session.store.entry("s", note)
        assert entry.message.injected
        assert (await session.store.entry("s", entry.parent)).data["usage"]["input"] == 900 * len(words.asked)
        money = await spent(session)
        assert (money.summaries, money.summaries_unpriced) == (1, 0)
        assert money.summaries_usd == pytest.approx(0.01 * len(words.asked))
        await session.branch(other)
        assert "src/token.py" not in str(await session.context())
        assert await session.verify() == []


@pytest.mark.parametrize("policy", ["foldline", "claude-code"])  # nothing is kept of the fork
async def test_a_fork_that_was_folded_is_merged_back(url, policy):
    async with foldline.open(url, "s", policy=policy) as session:
        await ask(session, "Mend src/login.py.", "Sessions or tokens?")
        async with await session.fork("f") as fork:
            for turn_ in range(6):
                asked, _ = await ask(fork, f"Write src/part_{turn_}.py.", f"I wrote part {turn_}. " * 80)
            up_to = None if policy == "claude-code" else asked
            assert isinstance(await fork.compact(up_to=up_to), foldline.Receipt)
            whole = await fork.history()
        await session.merge("f")
        told = (await session.context())[-1]["content"]
        assert "src/part_0.py" in told
        assert "src/part_5.py" in told
        assert len(await session.history()) == 3
        async with foldline.open(session.store, "f") as fork:
            assert await fork.history() == whole


async def test_what_was_merged_is_not_told_again_and_what_came_since_is(url):
    words = Spoken()
    async with foldline.open(url, "s", summarizer=words) as session:
        await ask(session, "Mend src/login.py.", "Sessions or tokens?")
        async with await session.fork("f") as fork:
            await ask(fork, "Write src/one.py.", "Wrote it.")
            await session.merge("f")
            with pytest.raises(foldline.InputError, match="merged into it"):
                await session.merge("f")
            await ask(fork, "Write src/two.py.", "Wrote that.")
        before = session.leaf
        await session.merge("f")
        assert [entry.message.text for entry in words.asked[-1].folded] == [
            "Write src/two.py.",
            "Wrote that.",
        ]
        await session.branch(before)  # where the second was not merged yet
        await session.merge("f")
        await session.store.purge("f")
        with pytest.raises(foldline.InputError):
            await session.merge("f")
        assert await session.verify() == []


async def test_nothing_is_merged_from_what_is_on_the_path_or_nowhere(url):
    async with foldline.open(url, "s") as session:
        first, *_ = await ask(session, "Mend the page.", "It is mended. " * 200, "Thanks.")
        leaf = session.leaf
        for other in (first, leaf):
            with pytest.raises(foldline.InputError, match="nothing was said on"):
                await session.merge(other)
        with pytest.raises(foldline.InputError, match="no entry 'nowhere'"):
            await session.merge("nowhere")
        await session.compact(up_to=first)
        await session.branch(leaf)  # a fold alone is nothing that was done
        assert session.leaf == leaf
        newest = (await session.branches())[0].leaf
        with pytest.raises(foldline.InputError, match="nothing was said on"):
            await session.merge(newest)


async def test_a_branch_is_merged_while_calls_are_open(url):
    async with foldline.open(url, "s") as session:
        (first,) = await ask(session, "Mend the page.")
        await session.append({"role": "assistant", "content": "I began with the header."})
        other = session.leaf
        await session.branch(first)
        call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        await session.append({"role": "assistant", "content": None, "tool_calls": [call]})
        await session.merge(other)
        await session.append({"role": "tool", "tool_call_id": "c1", "content": "<html>"})
        messages = await session.context()
        assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user"]
        assert "I began with the header." in messages[-1]["content"]
        assert get("openai-chat").validate(messages) == []
