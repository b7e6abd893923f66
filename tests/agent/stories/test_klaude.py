"""The stories of klaude-code's design: where it looks, what it does after an overflow, and files by code."""

from __future__ import annotations

import pytest
from tests.agent.program import run_foldline, serve_model, settings
from tests.agent.stories.scripts import (
    headings,
    last_request,
    long_reply,
    receipts,
    reply_requests,
    script,
    summarize_by_model,
    summary_requests,
    talk,
    text_of,
)
from tests.agent.working import host_on

from foldline.agent.commands.registry import run
from foldline.core.log.entries import Compacted, Said
from foldline.testing import Answer, Refusal, call

pytestmark = pytest.mark.slow

WINDOW = 20_000
RESERVE = WINDOW // 4  # 16,384, or a quarter of a small window
REPLY = long_reply(2_000)
TALKS = script(REPLY, Goal="Build X.")
BIG = "seq -s ' ' 1 1800"  # some 4,000 tokens of a tool's output


async def until_compacted(host):
    number = 0
    while not receipts(host):
        number += 1
        await talk(host, number, number)
    return number


# ---- when it compacts


async def test_it_compacts_where_the_last_usage_leaves_less_than_the_reserve(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="klaude") as host:
        due = False
        for number in range(1, 20):
            assert bool(receipts(host)) is False
            last = host.heard.named("reply")[-1:]
            due = bool(last) and last[0].usage.total > WINDOW - RESERVE
            await talk(host, number, number)
            if receipts(host):
                break
        assert due
        assert receipts(host)[0].reason == "threshold"


async def test_without_usage_letters_by_four_are_counted(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="klaude") as host:
        summarize_by_model(host)
        said = [
            {"role": role, "content": f"{role} {n}. {'abcd' * 900}"}
            for n in range(9)
            for role in ("user", "assistant")
        ]
        await host.session.append(*said)  # 16,200 tokens by letters, and no usage of any reply
        assert host.session.policy.estimator == "chars/4"
        await talk(host, 1, 1)
        assert [receipt.reason for receipt in receipts(host)] == ["threshold"]


@pytest.mark.parametrize(
    "text",
    [
        "prompt is too long: 21000 tokens > 20000 maximum",
        "exceeds the context window",
        "context length exceeded",
    ],
)
async def test_an_overflow_is_known_by_its_words_and_the_turn_is_tried_again(tmp_path, text):
    refused = []

    def says(asked):
        if not headings(asked) and len(asked.messages) > 8 and not refused:
            refused.append(asked)
            return Refusal(400, text)
        return TALKS(asked)

    async with host_on(tmp_path, says, window=60_000, policy="klaude") as host:
        summarize_by_model(host)
        await talk(host, 1, 5)
        assert [receipt.reason for receipt in receipts(host)] == ["overflow"]
        assert host.heard.named("retry")
        assert len([one for one in await host.session.history() if one["role"] == "user"]) == 5


# ---- where it looks


@pytest.mark.slow
def test_a_run_looks_before_it_starts_its_work(tmp_path):
    with serve_model(TALKS, window=WINDOW) as (model, name):
        options = ("--model", name, "--window", str(WINDOW), "--policy", "klaude")
        told = []
        for number in range(1, 9):
            go_on = ("--continue",) if number > 1 else ()
            done = run_foldline(tmp_path, "run", "-p", f"u{number}", *options, *go_on)
            assert done.returncode == 0, done.stderr
            told.append("folded, threshold" in done.stderr)
            if told[-1]:
                break
        assert told[-1]
        newest = reply_requests(model)[-1]
        assert "Build X." in text_of(newest.messages[1])


async def test_the_start_of_each_step_of_a_tool_loop_looks_too(tmp_path):
    steps = [Answer(text="", calls=call("bash", command=BIG).calls)] * 4 + ["It is done."]

    def says(asked):
        return TALKS(asked) if headings(asked) else steps.pop(0)

    async with host_on(tmp_path, says, window=WINDOW, policy="klaude") as host:
        summarize_by_model(host)
        assert (await host.prompt("Count four times.")).how == "done"
        kinds = [event.name for event in host.heard if event.name in ("prompt", "compacted", "turn")]
        assert kinds[0] == "prompt"
        assert "compacted" in kinds[1:-1]
        assert kinds[-1] == "turn"


async def test_sub_agents_leave_thresholds_to_their_parent(tmp_path):
    def says(asked):
        if headings(asked):
            return TALKS(asked)
        texts = [text_of(message) for message in asked.messages]
        if any("Count for me" in text for text in texts[1:2]):
            used = sum(message["role"] == "tool" for message in asked.messages)
            return Answer(text="", calls=call("bash", command=BIG).calls) if used < 3 else "Counted."
        if asked.messages[-1]["role"] == "tool":
            return "The helper has counted."
        return Answer(text="", calls=call("task", goal="Count for me").calls)

    async with host_on(tmp_path, says, window=WINDOW, policy="klaude") as host:
        summarize_by_model(host)
        await host.prompt("Have somebody count.")
        own = {one.id: one.compactions for one in await host.store.sessions()}
        assert len(own) == 2
        del own[host.session.id]
        assert list(own.values()) == [0]


# ---- what it does


async def test_what_is_kept_never_begins_with_a_result(tmp_path):
    def says(asked):
        if headings(asked):
            return TALKS(asked)
        newest = asked.messages[-1]
        return (
            REPLY(asked)
            if newest["role"] == "tool"
            else Answer(text="", calls=call("bash", command=BIG).calls)
        )

    async with host_on(tmp_path, says, window=WINDOW * 2, policy="klaude") as host:
        summarize_by_model(host)
        await until_compacted(host)
        path = [entry async for entry in host.store.path(host.session.id)]
        boundary = next(entry for entry in path if isinstance(entry, Compacted))
        first = next(e for e in path if isinstance(e, Said) and e.id == boundary.first_kept)
        assert not first.message.results


async def test_old_messages_are_given_to_the_summariser_as_text(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="klaude") as host:
        summarize_by_model(host)
        await until_compacted(host)
        asked = summary_requests(host.scripted)[0]
        text = "\n".join(text_of(message) for message in asked.messages)
        assert "[User]" in text
        assert "u1" in text
        assert [name for name in headings(asked) if name in ("Goal", "Key Decisions", "Next Steps")]


async def test_files_that_were_read_and_modified_are_listed_by_code(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.py").write_text("a = 1\n")
    moves = [
        call("read", path="a.py"),
        call("edit", path="a.py", old="a = 1", new="a = 2"),
        call("write", path="b.py", content="b = 1\n"),
        "Both are written.",
    ]

    def says(asked):
        if headings(asked):
            return TALKS(asked)
        return moves.pop(0) if moves else REPLY(asked)

    async with host_on(tmp_path, says, window=WINDOW, policy="klaude") as host:
        summarize_by_model(host)
        await host.prompt("Change a, and write b.")
        await talk(host, 2, 6)
        await run(host, "/compact")
        await talk(host, 9, 9)
        checkpoint = last_request(host)[0]
        modified = checkpoint[checkpoint.index("<modified-files>") : checkpoint.index("</modified-files>")]
        assert "a.py" in modified
        assert "b.py" in modified
        assert "(none)" in checkpoint  # what the model left out stays out: code alone lists the files


async def test_the_summary_is_a_user_message_before_what_is_kept_and_says_what_it_is(tmp_path):
    settings(tmp_path, "[compaction]\nkeep = 3_000\n")
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="klaude") as host:
        summarize_by_model(host)
        count = await until_compacted(host)
        await talk(host, count + 1, count + 1)
        first, *kept = reply_requests(host.scripted)[-1].messages[1:]
        assert first["role"] == "user"
        assert "compacted" in text_of(first)
        assert "Build X." in text_of(first)
        assert kept == (await host.session.history())[-len(kept) - 1 : -1]


async def test_a_second_compaction_replaces_the_first_in_what_the_model_sees(tmp_path):
    async with host_on(tmp_path, TALKS, window=WINDOW, policy="klaude") as host:
        summarize_by_model(host)
        number = 0
        while len(receipts(host)) < 2:
            number += 1
            await talk(host, number, number)
        assert sum(text.startswith("<foldline-checkpoint") for text in last_request(host)) == 1
        assert (await host.session.stats()).summaries == 2
