"""What a model does with a session's tools, and live state in its views: in every dialect, on both stores."""

from __future__ import annotations

import msgspec
import pytest
from tests.integration.test_session import WINDOW, fill, turn

import foldline
from foldline.core.checkpoint.request import SummaryReply
from foldline.core.cut.notes import MARK
from foldline.core.decide.presets import preset
from foldline.core.log.entries import Compacted, Pruned
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult
from foldline.dialects import get
from foldline.providers import Call
from foldline.summarizers.offline import OfflineSummarizer
from foldline.testing import Answer, Scripted, call

DIALECTS = ["openai-chat", "anthropic", "openai-responses", "ui-message", "bedrock-converse"]
SPOKEN = DIALECTS[:3]
LARGE = foldline.Window(context=9_000, output=1_000)


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'sessions.db'}"


async def prompt(session, model, words: str) -> str:
    """One prompt in an agent's loop: the model is asked until it calls no tool; its last words."""
    offered = session.tools(compact=True)
    await session.append({"role": "user", "content": words})
    while True:
        reply = await model.complete(
            Call(messages=await session.context(), system=session.system, tools=offered, max_tokens=500)
        )
        await session.append(reply.native)
        message = get(model.dialect).decode_reply(reply.native)
        if not message.calls:
            return reply.text
        for one in message.calls:
            answer = await session.call_tool(one.name, one.arguments)
            await session.append(Message("tool", (ToolResult(one.id, (Text(answer),)),)))


def results_of(asked) -> list[str]:
    return [line for line in str(asked.body).split(MARK)[1:]]


def entry_in(asked) -> str:
    """The first entry id that the newest search told of."""
    return str(asked.body).rsplit(MARK, 1)[1].split("- ", 1)[1].split(" ", 1)[0]


# ---- recall


@pytest.mark.parametrize("dialect", SPOKEN)
async def test_a_model_finds_what_was_folded_away_and_reads_it(url, dialect):
    script = [
        *(f"Module {n} is fine. " + "I looked at all of it. " * 90 for n in range(14)),
        call("recall_list", limit=3),
        call("recall_search", query="key7781 yard"),
        lambda asked: call("recall_read", entry=entry_in(asked)),
        lambda asked: f"The answer: {'yard 60 opens with key7781' in results_of(asked)[-1]}",
    ]
    model = Scripted(script, window=20_000, dialect=dialect)
    async with foldline.open(url, "s", window=LARGE, dialect=dialect) as session:
        fact = "key7781"  # one of so many that no checkpoint names it
        notes = "\n".join(f"the gate of yard {n} opens with key{7721 + n}" for n in range(400))
        await session.append(
            Message("user", (Text("Read the notes."),)),
            Message("assistant", (ToolCall("c0", "read", {"path": "notes.txt"}),)),
            Message("tool", (ToolResult("c0", (Text(notes),)),)),
            Message("assistant", (Text("I have read them."),)),
        )
        for n in range(14):
            await prompt(session, model, f"Look at module {n}. " + "Read it line by line, please. " * 20)
        assert (await session.stats()).summaries >= 1
        assert fact not in str(await session.context())

        assert await prompt(session, model, "What opens the gate?") == "The answer: True"

        assert model.left == 0
        assert await session.verify() == []
        problems = get(dialect).validate(await session.context(), session.system)
        assert problems == []


async def test_recalls_own_answers_are_not_found_again(url):
    async with foldline.open(url, "s") as session:
        await session.append({"role": "user", "content": "The gate opens with zebra-7781."})
        for n in range(3):
            found = await session.call_tool("recall_search", {"query": "zebra"})
            assert found.count("zebra-7781") == 1
            asked = {"name": "recall_search", "arguments": '{"query": "zebra"}'}
            await session.append(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": f"r{n}", "type": "function", "function": asked}],
                },
                {"role": "tool", "tool_call_id": f"r{n}", "content": found},
            )
        assert len(await session.recall("zebra")) == 1
        assert len(await session.folded()) == 0


async def test_a_model_looks_into_another_session_by_its_id(tmp_path):
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    async with foldline.open(url, "march", window=WINDOW) as march:
        await march.append(
            {"role": "user", "content": "The berth of the blue boat is B-77. " + "Moor it. " * 2_000}
        )
    async with foldline.open(url, "april", window=WINDOW) as session:
        await session.append({"role": "user", "content": "Where was the blue boat in March?"})
        assert "B-77" not in await session.call_tool("recall_search", {"query": "berth of the blue boat"})
        found = await session.call_tool("recall_search", {"query": "berth blue", "session": "march"})
        assert "session march" in found
        assert "B-77" in found
        entry = found.split("- ", 1)[1].split(" ", 1)[0]
        read = await session.call_tool("recall_read", {"entry": entry, "session": "march"})
        assert "B-77" in read
        assert f"Error: this session has no message '{entry}'" in await session.call_tool(
            "recall_read", {"entry": entry}
        )
        missing = await session.call_tool("recall_search", {"query": "boat", "session": "may"})
        assert "Error: no session 'may' in this store" in missing


async def test_wrong_calls_are_answered_with_words_and_unknown_tools_are_the_programs_fault(url):
    async with foldline.open(url, "s") as session:
        await session.append({"role": "user", "content": "Hello."})
        assert await session.call_tool("recall_read", {"entry": "nope"}) == (
            f"{MARK}Error: this session has no message 'nope': take the id from a search or a list"
        )
        assert "the arguments are not JSON" in await session.call_tool("recall_search", '{"query"')
        assert "recall_search needs query" in await session.call_tool("recall_search")
        assert "Nothing is folded" in await session.call_tool("recall_list", "{}")
        with pytest.raises(foldline.InputError, match="unknown tool 'bash'"):
            await session.call_tool("bash", {"command": "rm -rf /"})


@pytest.mark.parametrize("word", ["zebra", "日本語のシマウマ"])
async def test_answers_are_short_however_much_there_is_and_all_of_it_can_be_read(url, word):
    async with foldline.open(url, "s", window=WINDOW) as session:
        for n in range(60):
            await session.append(
                {"role": "user", "content": f"{word} {n} " * 60},
                {"role": "assistant", "content": f"{word} noted. " * 20},
            )
            await session.context()
        for name, arguments in (
            ("recall_search", {"query": word}),
            ("recall_search", {"query": f"{word} 7", "limit": 10}),
            ("recall_list", {}),
        ):
            answer = await session.call_tool(name, arguments)
            assert 100 < session.setup.counter.count(answer) <= 2_500

        gone, pages, before = [], 0, {}
        while before is not None:
            answer = await session.call_tool("recall_list", before)
            gone += [line.split()[1] for line in answer.splitlines() if line.startswith("- ")]
            earlier = answer.partition("\nEarlier ones: ")[2]
            before = {"before": earlier.rsplit("before ", 1)[1].rstrip(".")} if earlier else None
            pages += 1
        assert sorted(gone) == sorted(one.entry for one in await session.folded(1_000))
        assert pages > 2


@pytest.mark.parametrize("word", ["zebra ", "シマウマ"])
async def test_a_huge_message_is_read_in_pieces_that_fit_an_answer(url, word):
    async with foldline.open(url, "s") as session:
        (huge,) = await session.append({"role": "user", "content": word * 4_000 + "the end"})
        offset, pieces = 0, 0
        while offset is not None:
            answer = await session.call_tool("recall_read", {"entry": huge, "offset": offset})
            assert session.setup.counter.count(answer) <= 2_700
            more = answer.rsplit("recall_read with offset ", 1)
            offset = int(more[1].rstrip("]")) if len(more) > 1 else None
            pieces += 1
        assert answer.endswith("the end")
        assert pieces > 2


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_the_definitions_are_in_the_sessions_dialect_and_count_once(url, dialect):
    async with foldline.open(url, "s", dialect=dialect, tools=[{"name": "mine"}]) as session:
        before = session.view_tokens
        made = session.tools()
        after = session.view_tokens
        assert after > before
        assert session.tools() == made
        assert session.view_tokens == after
        assert session.prefix().tools == [{"name": "mine"}, *made]
        assert len(session.tools(compact=True)) == len(made) + 1
        assert session.view_tokens > after


async def test_the_definitions_count_again_after_other_tools_were_given(url):
    mine = [{"name": "mine"}]
    async with foldline.open(url, "s", dialect="anthropic", tools=mine) as session:
        made = session.tools()
        counted = session.view_tokens
        await session.use_model("claude-sonnet-4-6", tools=mine)
        assert session.view_tokens < counted
        assert session.tools() == made
        assert (session.view_tokens, session.prefix().tools) == (counted, [*mine, *made])
        await session.use_model("claude-sonnet-4-6", tools=[*mine, *made])
        assert session.tools() == made
        assert (session.view_tokens, session.prefix().tools) == (counted, [*mine, *made])


async def test_the_list_of_what_is_folded_leads_to_every_folded_message(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        await fill(session, 8)
        await session.context()
        gone = await session.folded(1_000)
        shown = {item.entry.id for item in session.view() if hasattr(item, "entry")}
        assert len(gone) >= (await session.stats()).total_messages - len(shown)
        for one in gone:
            assert (await session.read(one.entry)).total > 0


# ---- a compaction that the model asks for


async def test_a_model_may_ask_for_a_compaction_which_comes_before_its_next_step(url):
    model = Scripted([call("compact_context", focus="the SQL"), "Now I go on."], window=60_000)
    asked = []

    class Watched(OfflineSummarizer):
        async def summarize(self, request):
            asked.append(request.instructions)
            return self.write(request)

    async with foldline.open(url, "s", window=60_000, summarizer=Watched()) as session:
        await fill(session, 6)
        size = session.view_tokens

        assert await prompt(session, model, "Go on.") == "Now I go on."

        (boundary,) = [e async for e in session.store.path("s") if isinstance(e, Compacted | Pruned)]
        assert (boundary.receipt.reason, asked) == ("agent", ["the SQL"])
        assert session.view_tokens < size
        assert len(model.requests) == 2
        assert "folded before your next step" in str(model.requests[1].body)


async def test_a_compaction_that_was_asked_for_waits_while_calls_are_open_and_is_made_once(url):
    async with foldline.open(url, "s", window=60_000) as session:
        await fill(session, 3)
        asked, answered, *_ = turn(9)[1:]
        await session.append({"role": "user", "content": "Go on."}, asked)
        await session.call_tool("compact_context")
        with pytest.raises(foldline.CallsOpen):
            await session.context()
        await session.append(answered)
        await session.context()
        await session.context()
        assert (await session.stats()).summaries == 1


async def test_a_compaction_that_cannot_be_made_does_not_stop_the_model(url):
    class Broken(OfflineSummarizer):
        async def summarize(self, request):
            return SummaryReply("", "model:test", stop="error")

    async with foldline.open(url, "s", summarizer=Broken()) as session:
        await session.append({"role": "user", "content": "Hello."})
        await session.call_tool("compact_context", {"focus": "all"})
        assert [m["content"] for m in await session.context()] == ["Hello."]


# ---- live state


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_view_with_live_state_is_frozen_until_the_next_boundary(url, dialect):
    todos = ["- [ ] module 0"]
    # a boundary behind a reply would freeze the state of then
    policy = msgspec.structs.replace(preset("foldline"), background=False, check_at=("turn_start",))
    async with foldline.open(url, "s", policy=policy, window=WINDOW, dialect=dialect) as session:
        session.attach("todos", lambda: "\n".join(todos))
        before, boundaries, seen = [], 0, set[int]()
        for n in range(24):
            await session.append(Message("user", (Text(f"Look at module {n}. " + "Line by line. " * 40),)))
            todos[0] = f"- [ ] module {n}"
            view = await session.context()
            assert get(dialect).validate(view, session.system) == []
            count = (await session.stats()).summaries
            if count == boundaries:
                assert view[: len(before)] == before, "between two boundaries a view only grows"
            else:
                assert f'<live-state name=\\"todos\\">\\n- [ ] module {n}\\n' in str(view).replace('"', '\\"')
                seen.add(n)
            before, boundaries = view, count
            await session.append(Message("assistant", (Text(f"Module {n} is fine. " + "I read it. " * 150),)))
        assert len(seen) >= 2
        live = [
            e.checkpoint.live for e in [e async for e in session.store.path("s")] if isinstance(e, Compacted)
        ]
        assert [one.text for (one,) in live] == [f"- [ ] module {n}" for n in sorted(seen)]


async def test_live_state_survives_a_restart_without_its_callbacks(tmp_path):
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    async with foldline.open(url, "s", window=WINDOW) as session:
        session.attach("todos", lambda: "- [ ] write the tests")
        await fill(session, 2)
        await session.compact()
    async with foldline.open(url, "s", window=WINDOW) as session:
        assert await session.live() == {"todos": "- [ ] write the tests"}
        await fill(session, 3, start=2)
        await session.note("live_state", plan="first the page")
        await session.compact()
        text = str(await session.context())
        assert "- [ ] write the tests" in text
        assert "first the page" in text
        await session.note("live_state", todos="")
        assert await session.live() == {"plan": "first the page"}


async def test_live_state_can_be_undone_with_its_boundary(url):
    async with foldline.open(url, "s", window=WINDOW) as session:
        off = session.attach("todos", lambda: "- [ ] write the tests")
        await fill(session, 2)
        await session.compact()
        off()
        await session.undo()
        assert await session.live() == {}
        assert "write the tests" not in str(await session.context())
        await session.redo()
        assert await session.live() == {"todos": "- [ ] write the tests"}


async def test_a_secret_in_live_state_never_reaches_the_log(url):
    key = "sk-ant-api03-" + "a1B2" * 10
    async with foldline.open(url, "s", window=WINDOW) as session:
        session.attach("env", lambda: f"API_KEY={key}")
        await fill(session, 2)
        await session.compact()
        assert key not in (await session.export()).decode()


# ---- where the session stands


@pytest.mark.parametrize("policy", ["opencode", "claude-code", "codex", "foldline"])
async def test_a_question_that_waits_for_the_user_waits_behind_a_compaction_too(url, policy):
    async with foldline.open(url, "s", window=WINDOW, policy=policy) as session:
        await fill(session, 3)
        asks = "All modules are read. Shall I drop the table users?"
        await session.append({"role": "user", "content": "Go on."}, {"role": "assistant", "content": asks})
        assert isinstance(await session.compact(), foldline.Receipt)

        standing = await session.standing()

        assert (standing.state, standing.question) == ("waiting", "Shall I drop the table users?")
        view = await session.context()
        assert "Shall I drop the table users?" in str(view)
        assert "Continue if you have next steps." not in str(view)


async def test_opencode_goes_on_behind_a_reply_that_was_cut_off_and_has_nothing_else_to_send(url):
    policy = preset("opencode")
    model = Scripted([Answer(text="I read all of it. " * 30, stop="length")], window=60_000)
    async with foldline.open(url, "s", window=WINDOW, policy=policy) as session:
        await fill(session, 4)
        await session.append({"role": "user", "content": "Go on."})
        reply = await model.complete(Call(messages=await session.context()))
        await session.use_model(None, window=foldline.Window(context=2_000, output=500))
        await session.append(reply.native)
        assert (await session.standing()).because == "cut_off"

        view = await session.context()

        assert view[-1] == {"role": "user", "content": "Continue if you have next steps."}
        assert get("openai-chat").validate(view) == []
        assert await session.context() == view
        last = [entry async for entry in session.store.path("s")][-1]
        assert last.message.injected


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_view_that_is_folded_again_as_a_list_keeps_its_live_state(dialect):
    async with foldline.open("memory://", "s", window=WINDOW, dialect=dialect) as session:
        session.attach("todos", lambda: "- [ ] write the tests")
        for n in range(6):
            await session.append(
                Message("user", (Text(f"Look at module {n}. " + "Line by line. " * 40),)),
                Message("assistant", (Text(f"Module {n} is fine. " + "I read it. " * 150),)),
            )
        await session.compact()
        for n in range(6, 9):
            await session.append(
                Message("user", (Text(f"Look at module {n}."),)),
                Message("assistant", (Text(f"Module {n} is fine. " + "I read it. " * 150),)),
            )
        view, system = await session.context(), session.system

    done = await foldline.acompact(view, target=1_500, dialect=dialect, system=system)

    assert done.view_tokens <= 1_500
    assert "- [ ] write the tests" in str(done.messages)
    assert get(dialect).validate(done.messages, done.system) == []
