"""What a user types after a slash, on a real session."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.agent.program import serve_model, settings
from tests.agent.working import host_on

from foldline.agent.commands.command import Outcome
from foldline.agent.commands.figures import BAR, too_large
from foldline.agent.commands.registry import COMMANDS, run
from foldline.core.decide.presets import preset
from foldline.core.measure.window import Amount
from foldline.errors import FoldlineError, InputError
from foldline.testing import Answer, Gate, call

TALK = [
    "Use JWT for the login. Never store a password.",
    "Write the tests of the login.",
    "Mend the logout, too.",
]


async def talked(host, *, turns=TALK):
    for text in turns:
        assert (await host.prompt(text)).how == "done"


def answers(asked):
    return f"Answer {asked.index}. " + "It is done as you said. " * 60


async def test_every_command_has_a_help_and_the_list_names_all(tmp_path):
    async with host_on(tmp_path) as host:
        shown = (await run(host, "/help")).text
        for name, command in COMMANDS.items():
            assert f"/{name}" in shown
            assert command.about.endswith(".")
        assert "FOCUS" in (await run(host, "/help compact")).text
        with pytest.raises(InputError, match="did you mean 'compact'"):
            await run(host, "/compcat")


async def test_on_an_empty_session_every_command_answers_or_says_what_to_do(tmp_path):
    async with host_on(tmp_path) as host:
        for name in COMMANDS:
            try:
                found = await run(host, f"/{name}")
            except FoldlineError as error:
                found = Outcome(str(error))
            assert found.text or found.leave, name


async def test_compact_undo_redo(tmp_path):
    async with host_on(tmp_path, answers, policy="foldline") as host:
        await talked(host, turns=TALK * 6)
        before = host.session.view_tokens
        assert "Folded" in (await run(host, "/compact the login")).text
        folded = host.session.view_tokens
        assert folded < before
        assert "undone" in (await run(host, "/undo")).text
        assert host.session.view_tokens == before
        assert "is back" in (await run(host, "/redo")).text
        assert host.session.view_tokens == folded
        assert "no undo" in (await run(host, "/redo")).text


async def test_compact_up_to_and_from_a_message(tmp_path):
    async with host_on(tmp_path, answers, policy="foldline") as host:
        await talked(host, turns=TALK * 3)
        listed = (await run(host, "/compact up to")).text
        assert "9. Mend the logout, too." in listed
        assert "`/compact up to N`" in listed
        whole = await host.session.context()
        assert "Folded" in (await run(host, "/compact from 6 the tests")).text
        folded = await host.session.context()
        assert folded[:-1] == whole[: len(folded) - 1]
        assert "Mend the logout, too." in str(folded[-1])
        await run(host, "/undo")
        assert "Folded" in (await run(host, "/compact up to 3")).text
        assert (await host.session.context())[-12:] == whole[-12:]
        with pytest.raises(InputError, match="no message '40' of yours"):
            await run(host, "/compact from 40")


async def test_merge_notes_what_was_done_on_another_branch_or_in_a_fork(tmp_path):
    async with host_on(tmp_path, answers, policy="foldline") as host:
        await talked(host)
        await run(host, "/branch 3")
        await host.prompt("Write the docs.")
        listed = (await run(host, "/merge")).text
        assert "Mend the logout, too." in listed
        assert "`/merge N`" in listed
        number = next(n for n, one in enumerate(await host.session.branches(), 1) if not one.current)
        assert "was added here" in (await run(host, f"/merge {number} the logout")).text
        assert "Mend the logout, too." in str((await host.session.context())[-1])
        here = host.session.id
        await run(host, "/fork")
        await host.prompt("Try another colour.")
        fork = host.session.id
        await run(host, f"/resume {here}")
        await run(host, f"/merge {fork}")
        assert "Try another colour." in str((await host.session.context())[-1])
        with pytest.raises(InputError, match="a number from 1 to 2"):
            await run(host, "/merge 9")


async def test_exclude_takes_a_message_out_until_an_undo(tmp_path):
    async with host_on(tmp_path, answers, policy="foldline") as host:
        await talked(host)
        assert "`/exclude ID` removes one" in (await run(host, "/exclude")).text
        first = (await host.session.entries())[0]
        before = str(await host.session.context())
        assert "is out of the context" in (await run(host, f"/exclude {first.entry[:10]}")).text
        assert first.text not in str(await host.session.context())
        assert "excluded: " in (await run(host, "/exclude")).text
        await run(host, "/undo")
        assert str(await host.session.context()) == before
        with pytest.raises(InputError, match="PART is a number"):
            await run(host, f"/exclude {first.entry[:10]} image")
        with pytest.raises(InputError, match="has no part 9"):
            await run(host, f"/exclude {first.entry[:10]} 9")


async def test_preview_changes_nothing(tmp_path):
    async with host_on(tmp_path, answers) as host:
        await talked(host, turns=TALK * 6)
        shown = (await run(host, "/preview")).text
        assert "Would fold" in shown
        assert "Never store a password." in shown
        assert (await host.session.stats()).summaries == 0


async def test_autocompact_is_set_and_saved_with_comments_kept(tmp_path):
    file = settings(tmp_path, "# mine\npolicy = 'pi'  # from the seed\n")
    async with host_on(tmp_path) as host:
        shown = (await run(host, "/autocompact")).text
        assert "**on**" in shown
        assert "Folds past 83,616 tokens; the view has 2," in shown
        assert "**off**" in (await run(host, "/autocompact off")).text
        assert not host.session.policy.enabled
        assert "keep -" not in (await run(host, "/autocompact reserve 900,000")).text
        assert "Reserve 9,000" in (await run(host, "/autocompact reserve 9,000")).text
        with pytest.raises(InputError):
            await run(host, "/autocompact reserve a lot")
    saved = file.read_text()
    assert saved.startswith("# mine\npolicy = 'pi'  # from the seed\n")
    assert "enabled = false" in saved
    assert "reserve = 9000" in saved
    async with host_on(tmp_path) as host:
        assert not host.session.policy.enabled
        assert host.session.policy.name == "pi"
        assert "**on**" in (await run(host, "/autocompact on")).text


async def test_a_session_that_folds_only_when_asked_stays_so_until_the_user_says_otherwise(tmp_path):
    async with host_on(tmp_path, autocompact=False) as host:
        for line in ("/policy pi", "/autocompact keep 20000", "/clear"):
            await run(host, line)
            assert not host.session.policy.enabled, line
        assert host.session.policy.name == "pi"
        for line, enabled in (("/autocompact on", True), ("/clear", True), ("/autocompact off", False)):
            await run(host, line)
            assert host.session.policy.enabled == enabled, line


async def test_figures(tmp_path):
    async with host_on(tmp_path, answers) as host:
        await talked(host)
        stats = (await run(host, "/stats")).text
        for name, value in (("totalMessages", 6), ("activeMessages", 6), ("summaryCount", 0)):
            assert f"| {name} | {value} |" in stats
        assert "compressionRatio | 1.0" in stats
        context = (await run(host, "/context")).text
        assert "usable tokens" in context
        assert "| tools |" in context
        assert "3 replies" in (await run(host, "/cost")).text


async def test_branch_lists_messages_before_a_boundary_and_says_what_it_undoes(tmp_path):
    async with host_on(tmp_path, answers) as host:
        await talked(host, turns=TALK * 6)
        await run(host, "/compact")
        shown = (await run(host, "/branch")).text
        assert "1. (folded) Use JWT" in shown
        done = await run(host, "/branch 2")
        assert done.editor == "Write the tests of the login."
        assert "1 compaction" in done.text
        assert len(await host.session.history()) == 2
        assert "1. **here**" in (tree := (await run(host, "/tree")).text) or "2. **here**" in tree
        with pytest.raises(InputError, match="number from 1 to"):
            await run(host, "/branch 99")


async def test_rewind_fork_and_tree(tmp_path):
    async with host_on(tmp_path, answers) as host:
        await talked(host)
        first = host.session.id
        assert (await run(host, "/rewind")).editor == TALK[-1]
        forked = await run(host, "/fork")
        assert forked.moved
        assert host.session.id != first
        assert len(await host.session.history()) == 4
        await run(host, f"/resume {first}")
        branches = await host.session.branches()
        there = next(n for n, one in enumerate(branches, 1) if not one.current)
        await run(host, f"/tree {there}")
        assert len(await host.session.history()) == 6


async def test_pin_unpin_constraints_recall(tmp_path):
    async with host_on(tmp_path, answers) as host:
        await talked(host, turns=[*TALK, "Passwords may now be stored."])
        entry = (await host.session.entries())[2].entry
        assert "Pinned" in (await run(host, f"/pin {entry[:10]}")).text
        assert "Write the tests" in (await run(host, "/unpin")).text
        assert "no longer" in (await run(host, f"/unpin {entry[:10]}")).text
        assert "Never store a password." in (await run(host, "/constraints")).text
        assert "Mend the" in (await run(host, "/recall logout")).text
        assert "No message matches" in (await run(host, "/recall zebra")).text


async def test_handoff_clear_resume_sessions_save_export(tmp_path):
    async with host_on(tmp_path, answers) as host:
        await talked(host)
        first = host.session.id
        assert "Saved" in (await run(host, "/save")).text
        await run(host, "/handoff the logout")
        assert "Never store a password." in str(await host.session.context())
        await run(host, "/clear")
        assert await host.session.history() == []
        await host.prompt("Hello.")
        shown = (await run(host, "/sessions")).text
        assert "“" in shown  # each by what it began with
        assert await host.short(first) in shown
        assert shown.count("**here**") == 1
        assert "1. **here**" in shown
        everywhere = (await run(host, "/sessions all")).text
        assert "- **here**" in everywhere  # a number would be another session for /resume
        assert "/resume ID" in everywhere
        await run(host, f"/resume {first}")
        assert len(await host.session.history()) == 6
        written = (await run(host, "/export markdown talk.md")).text
        assert "talk.md" in written
        assert "Use JWT" in (tmp_path / "work/talk.md").read_text()
        with pytest.raises(InputError, match="already"):
            await run(host, "/export markdown talk.md")
        with pytest.raises(InputError, match="outside"):
            await run(host, "/export markdown ../talk.md")


async def test_the_bars_of_what_fills_the_window_are_shares_of_it(tmp_path):
    async with host_on(tmp_path, answers) as host:
        await talked(host)
        rows = [
            row.split("|") for row in (await run(host, "/context")).text.splitlines() if row.startswith("|")
        ]
        bars = {name.strip(): (tokens, bar.strip()) for _, name, tokens, bar, _ in rows[2:]}
        usable = (await host.session.stats()).usable
        assert {"system prompt", "tools", "assistant", "free"} <= set(bars)
        assert sum(int(tokens.replace(",", "")) for tokens, _ in bars.values()) == usable
        for tokens, bar in bars.values():
            assert abs(len(bar) - int(tokens.replace(",", "")) * BAR / usable) <= 1


async def test_a_policy_for_which_the_view_is_too_large_says_so(tmp_path):
    async with host_on(tmp_path, answers) as host:
        await talked(host)
        assert "it folds above" not in (await run(host, "/policy pi")).text
        small = msgspec.structs.replace(preset("foldline"), name="small", hard=Amount(tokens=500))
        assert "above the limit of 500: it will be folded before the next request" in too_large(
            await host.session.stats(), small
        )


async def test_policy_and_model(tmp_path):
    async with host_on(tmp_path, answers) as host:
        assert "`foldline`" in (await run(host, "/policy")).text
        assert "`codex`" in (await run(host, "/policy codex")).text
        with pytest.raises(InputError):
            await run(host, "/policy nosuch")
        with pytest.raises(InputError):
            await run(host, "/model nosuch")


async def test_the_window_of_a_model_stays_in_a_new_session(tmp_path):
    with serve_model([]) as (_, name):
        async with host_on(tmp_path, provider=None, model=name) as host:
            for line, window in ((f"/model {name} 8000", 8_000), (f"/model {name}x", 200_000)):
                await run(host, line)
                await run(host, "/clear")
                assert host.session.setup.window.context == window


async def test_commands_that_move_wait_for_the_turn_under_way(tmp_path):
    async with host_on(tmp_path, [Answer(text="slow", wait=Gate())]) as host:
        work = asyncio.ensure_future(host.prompt("Hello."))
        await asyncio.sleep(0)  # its first step alone: the prompt is not stored yet
        for line in ("/clear", "/undo", "/branch 1"):
            with pytest.raises(InputError, match="is busy"):
                await run(host, line)
        assert host.agent.interrupt()
        assert (await work).how == "interrupted"


async def test_a_fold_reads_again_what_the_agent_used_where_the_policy_says_so(tmp_path):
    """Claude Code: the files that were read last are read again after a compaction."""
    work = tmp_path / "work"
    (work / ".foldline").mkdir(parents=True)
    (work / ".foldline/settings.toml").write_text("[policies.mine]\nreread = 2\n")
    (work / "login.py").write_text("LIMIT = 3\n")

    def script(asked):
        return call("read", path="login.py") if asked.index == 0 else answers(asked) * 3

    async with host_on(tmp_path, script, policy="mine") as host:
        await talked(host, turns=["What is the limit?", *TALK * 6])
        (work / "login.py").write_text("LIMIT = 48151\n")
        await run(host, "/compact")
        sent = str(await host.session.context())
        assert "### login.py" in sent
        assert "LIMIT = 48151" in sent
