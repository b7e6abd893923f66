"""The screen of `chat`, driven by its pilot: talking, every command with a screen, meters, boundaries, keys."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path

import msgspec
import pytest
from tests.agent.program import settings
from tests.support import waiting
from tests.tui.screen import open_chat, until

from foldline.agent.commands.registry import COMMANDS
from foldline.agent.options import HostOptions
from foldline.agent.permissions import PermissionRequest
from foldline.cli.commands.chat import resume_command
from foldline.errors import InputError, StoreError
from foldline.providers import Delta, Patience, Retrying
from foldline.summarizers import ModelSummarizer
from foldline.testing import Answer, Gate, Refusal, Scripted, call, calls
from foldline.tui import dialogs
from foldline.tui.app import ChatApp
from foldline.tui.editor import History
from foldline.tui.notices import Notices

LONG = "It is done as you said. " * 60


def answers(asked):
    return f"Answer {asked.index}. {LONG}"


async def test_a_prompt_is_answered_and_tool_calls_open(tmp_path):
    said = [calls(call("bash", command="echo hello"), call("find")), "I said **hello**."]
    async with open_chat(tmp_path, said) as talk:
        await talk.say("Say hello.")
        await talk.sees("Say hello.", "bash echo hello  1 lines", "I said hello.")
        await talk.pilot.press("ctrl+o")
        await until(talk.pilot, lambda: talk.text.count("hello") > 3)


@pytest.mark.slow
async def test_what_goes_on_is_in_view_and_how_to_go_on_is_said_at_the_end(tmp_path):
    gate = Gate()
    said = [call("bash", command="until test -e done; do sleep 0.05; done"), Answer(text="Done.", wait=gate)]
    async with open_chat(tmp_path, said) as talk:
        assert talk.app.to_resume == ""
        await talk.type("Wait for it.")
        await until(talk.pilot, lambda: "running bash" in talk.text)
        assert "· Esc stops" in talk.text
        (tmp_path / "work" / "done").touch()
        await until(talk.pilot, lambda: "waiting for the model" in talk.text)
        await until(talk.pilot, lambda: " s · Esc stops" in talk.text)
        gate.open()
        await until(talk.pilot, talk.quiet)
        await until(talk.pilot, lambda: " · Esc stops" not in talk.text)
        session = talk.host.session.id
    assert session.endswith(f"-{talk.app.to_resume}")
    assert len(talk.app.to_resume) >= 8


async def test_why_the_model_is_waited_for_is_in_view_for_as_long(tmp_path):
    model = Scripted([Refusal(529), "There."])
    patient = Retrying(model, Patience(first=60.0, longest=60.0))
    async with open_chat(tmp_path, model, provider=patient) as talk:
        await talk.type("Hello.")
        await talk.sees("waiting to ask again, after attempt 1", "· Esc stops · overloaded (503): The server")
        await talk.pilot.press("escape")
        await until(talk.pilot, talk.quiet)
        assert "overloaded" not in talk.text
        await talk.say("Again.")
        await talk.sees("There.")


async def test_a_call_that_is_stopped_says_so(tmp_path):
    async with open_chat(tmp_path, [call("bash", command="sleep 600")]) as talk:
        await talk.type("Run it.")
        await talk.sees("running bash")
        await talk.pilot.press("escape")
        await talk.sees("bash sleep 600  stopped", "Stopped. Complete messages")


async def test_a_finished_call_is_not_stopped_after_the_transcript_is_shown_again(tmp_path):
    said = [call("bash", command="echo hello"), "Hello.", "Nothing."]
    async with open_chat(tmp_path, said) as talk:
        await talk.say("Say hello.")
        await talk.app.transcript.load(talk.host.session)
        await talk.say("And now?")
        await talk.sees("bash echo hello", "Nothing.")
        assert "bash echo hello  1 lines" in talk.text


async def test_a_permission_that_is_asked_for_is_what_is_waited_for(tmp_path):
    async with open_chat(tmp_path, [call("bash", command="echo a"), "Done."], allow=()) as talk:
        await talk.type("Run it.")
        await talk.opened("PermissionScreen")
        await talk.sees("waiting for your answer", "bash echo a …")
        assert "· Esc stops" not in talk.text
        await talk.pilot.press("escape")
        await talk.closed()
        await talk.sees("Done.")


async def test_a_command_that_takes_long_is_seen_at_work(tmp_path, monkeypatch):
    gate = asyncio.Event()

    async def slow(host, argument):
        await gate.wait()
        return "It took long."

    monkeypatch.setitem(COMMANDS, "stats", msgspec.structs.replace(COMMANDS["stats"], run=slow))
    async with open_chat(tmp_path) as talk:
        await talk.type("/stats")
        await talk.sees("/stats ·", "· Esc stops")
        gate.set()
        await talk.sees("It took long.")
        assert "· Esc stops" not in talk.text


async def test_a_narrow_line_keeps_the_model_without_its_address(tmp_path):
    async with open_chat(tmp_path, ["Done."], size=(60, 24)) as talk:
        talk.host.model = "openai-compatible:llama-3.3@http://127.0.0.1:8080/v1"
        await talk.app.talk.draw()
        await talk.sees("openai-comp")
        assert talk.text.splitlines()[-1].endswith("…")


async def test_a_session_that_cannot_be_read_leaves_the_screen_as_it_was(tmp_path, monkeypatch):
    async with open_chat(tmp_path, ["Done."]) as talk:
        await talk.say("Hello.")

        def broken(session):
            raise StoreError("the disk is gone")

        monkeypatch.setattr(talk.host.store, "path", broken)
        with pytest.raises(StoreError):
            await talk.app.transcript.load(talk.host.session)
        await talk.sees("Hello.", "Done.")


@pytest.mark.slow
async def test_what_fills_the_window_is_always_in_view(tmp_path):
    async with open_chat(tmp_path, answers, size=(140, 40)) as talk:

        def line():
            return talk.text.splitlines()[-1]

        await talk.say("Hello.")
        await until(talk.pilot, lambda: "assistant" in line() or "tools" in line())
        assert "usable" not in line()
        assert "/ 51,000" in line()
        assert "scripted" in line()
        await talk.say("/autocompact off")
        await until(talk.pilot, lambda: "auto-compact off" in line())


async def test_a_boundary_is_a_marker_and_folded_messages_are_dimmed_and_there(tmp_path):
    async with open_chat(tmp_path, answers) as talk:
        await talk.turns(3, "Turn {}. Never push to main.")
        await talk.say("/compact the rule")
        [marker] = talk.app.transcript.query("BoundaryBlock")
        assert marker.title_line().startswith("folded above:")
        assert "(manual)" in marker.title_line()
        seen = [block for block in talk.app.transcript.query("Block") if block.entry]
        assert all(block.has_class("folded") for block in seen[: seen.index(marker)])
        assert not any(block.has_class("folded") for block in seen[seen.index(marker) :])
        blocks = list(talk.app.transcript.query("PromptBlock"))
        assert blocks[0].has_class("folded")
        assert blocks[0].text.startswith("Turn 0.")
        await talk.say("/undo")
        assert not any(block.has_class("folded") for block in talk.app.transcript.query("PromptBlock"))
        [marker] = talk.app.transcript.query("BoundaryBlock")
        assert marker.title_line().startswith("undone: folded above:")


class _HeldSummaries(Scripted):
    """A model that waits behind the first piece of a summary."""

    gate: Gate | None = None

    async def stream(self, call):
        async for piece in super().stream(call):
            yield piece
            if self.gate is not None and isinstance(piece, Delta):
                await self.gate.passed()


@pytest.mark.slow
async def test_a_summary_is_in_view_while_a_model_writes_it(tmp_path):
    model = _HeldSummaries(answers, window=60_000)
    async with open_chat(tmp_path, model) as talk:
        await talk.turns(3, "Turn {}. Never push to main.")
        talk.host.session.summarizer = ModelSummarizer(model, window=model.window)
        model.gate = Gate()
        await talk.type("/compact")
        await until(talk.pilot, lambda: "The summary so far:" in talk.text)
        model.gate.open()
        await until(talk.pilot, lambda: talk.app.transcript.query("BoundaryBlock"))
        await until(talk.pilot, lambda: "The summary so far:" not in talk.text)


@pytest.mark.slow
async def test_what_was_taken_out_is_dimmed_and_a_marker_says_so(tmp_path):
    async with open_chat(tmp_path, answers) as talk:
        await talk.say("Is it a zebra?")
        await talk.say("And now?")
        entry = talk.app.transcript.query("PromptBlock").first().entry
        await talk.say(f"/exclude {entry[:10]}")
        [marker] = talk.app.transcript.query("BoundaryBlock")
        assert marker.title_line().startswith("excluded above:")
        assert [block.has_class("folded") for block in talk.app.transcript.query("PromptBlock")] == [
            True,
            False,
        ]
        await talk.say("/undo")
        assert not any(block.has_class("folded") for block in talk.app.transcript.query("PromptBlock"))


@pytest.mark.slow
async def test_input_typed_meanwhile_is_queued_and_escape_stops(tmp_path):
    def says(asked):
        return "On we go." if "Two." in str(asked.messages) else Answer(text="slow", wait=Gate())

    async with open_chat(tmp_path, says) as talk:
        await talk.type("One.")
        await until(talk.pilot, lambda: talk.model.requests)
        await talk.type("Two.")
        await until(talk.pilot, lambda: "1 queued" in talk.text)
        await talk.pilot.press("escape")
        await talk.sees("Stopped.", "On we go.")


@pytest.mark.slow
async def test_a_failure_is_an_error_and_the_user_goes_on(tmp_path):
    async with open_chat(tmp_path, [Refusal(401, "bad key", kind="authentication_error"), "Back."]) as talk:
        await talk.say("Hello.")
        await talk.sees("bad key")
        await talk.say("Again.")
        await talk.sees("Back.")


@pytest.mark.slow
async def test_a_permission_is_asked_for_with_the_change(tmp_path):
    write = call("write", path="a.txt", content="one\n")
    async with open_chat(tmp_path, [write, "No.", write, "Yes."], allow=()) as talk:
        for key, there in (("n", False), ("y", True)):
            await talk.type("Write.")
            await talk.opened("PermissionScreen")
            await talk.sees("Allow write?", "+one")
            await talk.pilot.press(key)
            await talk.closed()
            assert (tmp_path / "work/a.txt").exists() == there


@pytest.mark.slow
async def test_a_permission_goes_away_with_the_turn(tmp_path):
    async with open_chat(tmp_path, [call("bash", command="ls")], allow=()) as talk:
        await talk.type("List.")
        await talk.opened("PermissionScreen")
        talk.host.agent.interrupt()
        await talk.closed()
        await talk.sees("Stopped.")


async def test_a_permission_goes_away_with_a_turn_that_ends_before_it_is_on_the_screen(tmp_path):
    async with open_chat(tmp_path) as talk:
        asked = asyncio.ensure_future(talk.app.talk._ask(PermissionRequest("bash", "ls")))
        await asyncio.sleep(0)  # its first step: the question is on its way
        asked.cancel()
        await talk.closed()
        assert asked.cancelled()


async def test_preview_shows_what_goes_and_stays_and_commits_what_was_shown(tmp_path):
    async with open_chat(tmp_path, answers) as talk:
        await talk.turns(3)
        await talk.type("/preview the turns")
        screen = await talk.opened("PreviewScreen")
        await until(talk.pilot, lambda: screen._preview is not None and screen._infos)
        await talk.sees("fold    user")
        assert (await talk.host.session.stats()).summaries == 0
        screen.query_one("TextArea").text += "\nThe cat is called Tom."
        await talk.pilot.press("ctrl+s")
        await talk.closed()
        await talk.sees("Folded")
        assert "The cat is called Tom." in str(await talk.host.session.context())


@pytest.mark.parametrize("anew", [True, False])
@pytest.mark.slow
async def test_a_message_ticked_in_the_preview_stays_word_for_word(tmp_path, anew):
    async with open_chat(tmp_path, answers) as talk:
        await talk.turns(3, "Turn {} about zebras.")
        await talk.type("/preview")
        screen = await talk.opened("PreviewScreen")
        await until(talk.pilot, lambda: screen._infos)
        listed = screen.query_one("OptionList")
        listed.focus()
        listed.highlighted = 0
        await talk.pilot.press("enter")
        await until(talk.pilot, lambda: "[x] fold" in talk.text)
        if anew:
            before = screen._preview
            await talk.pilot.press("ctrl+r")
            await until(talk.pilot, lambda: screen._preview not in (None, before))
        await talk.pilot.press("ctrl+s")
        await talk.closed()
        assert "Turn 0 about zebras." in str(await talk.host.session.context())
        assert [info.pinned for info in await talk.host.session.entries()].count(True) == 1


@pytest.mark.slow
async def test_a_preview_is_not_committed_while_it_is_drawn_up_anew(tmp_path):
    model = _HeldSummaries(answers, window=60_000)
    async with open_chat(tmp_path, model) as talk:
        await talk.turns(3, "Turn {}. Never push to main.")
        talk.host.session.summarizer = ModelSummarizer(model, window=model.window)
        await talk.type("/preview")
        screen = await talk.opened("PreviewScreen")
        await until(talk.pilot, lambda: screen._preview is not None)
        whole = screen.query_one("TextArea").text
        model.gate = Gate()
        await talk.pilot.press("ctrl+r")
        await until(talk.pilot, lambda: 0 < len(screen.query_one("TextArea").text) < len(whole) / 2)
        await talk.pilot.press("ctrl+s")
        assert talk.app.screen is screen
        model.gate.open()
        await until(talk.pilot, lambda: screen._preview is not None)
        await talk.pilot.press("ctrl+s")
        await talk.closed()
        [folded] = talk.app.transcript.query("BoundaryBlock")
        assert folded.summary == whole


@pytest.mark.slow
async def test_leaving_the_preview_leaves_everything_as_it_was(tmp_path):
    async with open_chat(tmp_path, answers) as talk:
        await talk.turns(3)
        await talk.type("/preview")
        screen = await talk.opened("PreviewScreen")
        await until(talk.pilot, lambda: screen._infos)
        screen._pinned.add(screen._infos[0].entry)
        before = screen._preview
        await talk.pilot.press("ctrl+r")
        await until(talk.pilot, lambda: screen._preview not in (None, before))
        await talk.pilot.press("escape")
        await talk.closed()
        assert not any(info.pinned for info in await talk.host.session.entries())
        assert (await talk.host.session.stats()).summaries == 0


@pytest.mark.slow
async def test_autocompact_is_a_selector_and_is_saved(tmp_path):
    async with open_chat(tmp_path, answers) as talk:
        await talk.type("/autocompact")
        await talk.opened("Picker")
        await talk.sees("Reserve 9,000 tokens")
        await talk.pilot.press("down", "enter")
        await talk.closed()
        await talk.sees("auto-compact off")
        assert not talk.host.session.policy.enabled
    assert "enabled = false" in (tmp_path / "home/.foldline/settings.toml").read_text()


@pytest.mark.slow
async def test_branch_lists_messages_and_puts_the_chosen_one_into_the_editor(tmp_path):
    async with open_chat(tmp_path, answers) as talk:
        await talk.turns(3)
        await talk.say("/compact")
        await talk.type("/branch")
        await talk.opened("Picker")
        await talk.sees("folded  Turn 0.")
        await talk.pilot.press("home", "down", "enter")
        await talk.closed()
        await talk.written("Turn 1.")
        await talk.sees("1 compaction")
        await talk.type("/tree")
        await talk.opened("Picker")
        await talk.sees("here")
        await talk.pilot.press("escape")
        await talk.closed()


@pytest.mark.slow
async def test_resume_chooses_a_session_and_handoff_edits_its_draft(tmp_path):
    async with open_chat(tmp_path, answers) as talk:
        await talk.say("Use JWT. Never store a password.")
        first = talk.host.session.id
        await talk.type("/handoff the tests")
        screen = await talk.opened("TextDialog")
        screen.query_one("TextArea").text += "\nThe cat is called Tom."
        await talk.pilot.press("ctrl+s")
        await talk.closed()
        assert talk.host.session.id != first
        assert "The cat is called Tom." in str(await talk.host.session.context())
        await talk.say(f"/resume {first}")
        await talk.type("/resume")
        await talk.opened("Picker")
        await talk.pilot.press("escape")
        await talk.closed()
        assert talk.host.session.id == first
        await talk.sees("Never store a password.")


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("exit", "quit")])
@pytest.mark.slow
async def test_every_command_answers_on_the_screen(tmp_path, name):
    async with open_chat(tmp_path, answers) as talk:
        await talk.say("Hello.")
        before = len(talk.app.transcript.children)
        await talk.type(f"/{name}")
        await until(talk.pilot, lambda: talk.asked() or talk.quiet())
        if talk.asked():
            await talk.pilot.press("escape")
        await talk.closed()
        assert len(talk.app.transcript.children) >= min(before, 1)
        assert "Traceback" not in talk.text


@pytest.mark.slow
async def test_commands_complete_and_files_complete(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/lending.py").write_text("x = 1\n")
    async with open_chat(tmp_path, answers) as talk:
        await talk.pilot.press("/", "c", "o", "m")
        await talk.sees("/compact")
        await talk.pilot.press("tab")
        await talk.written("/compact ")
        talk.app.editor.put("look at ")
        await until(talk.pilot, lambda: talk.app.talk.complete._files)
        await talk.pilot.press("@", "l", "e")
        await talk.pilot.press("tab")
        await talk.written("look at @lending.py ")


@pytest.mark.parametrize(
    ("typed", "name"), [("@my", "my notes.txt"), ('@"my no', "my notes.txt"), ("@page", "app/[id]/page.tsx")]
)
@pytest.mark.slow
async def test_a_name_that_completes_is_attached(tmp_path, typed, name):
    file = tmp_path / "work" / name
    file.parent.mkdir(parents=True)
    file.write_text("Read to its end.\n")
    async with open_chat(tmp_path, answers) as talk:
        await until(talk.pilot, lambda: talk.app.talk.complete._files)
        talk.app.editor.put(typed)
        await talk.pilot.press("tab")
        await talk.written(f'@"{name}" ')
        await talk.pilot.press("enter")
        await until(talk.pilot, lambda: talk.sent and talk.quiet())
        assert "Read to its end." in str(talk.model.requests[0].messages)


def test_a_history_keeps_odd_prompts_and_leaves_broken_rows_out(tmp_path):
    file = tmp_path / "history"
    for text in ("one", "two\u2028\u2029\x85\r\n", "three"):
        History(file).add(text)
    with file.open("ab") as rows:
        rows.write(b'"four\n\xff\n"five"\n')
    history = History(file)
    found = [history.older("") for _ in range(5)]
    assert found == ["five", "three", "two\u2028\u2029\x85\r\n", "one", None]


async def test_history_and_several_lines(tmp_path):
    async with open_chat(tmp_path, ["One.", "Two."]) as talk:
        await talk.say("First.")
        await talk.pilot.press("a", "ctrl+j", "b")
        await talk.written("a\nb")
        await talk.pilot.press("enter")
        await until(talk.pilot, lambda: len(talk.sent) == 2 and talk.quiet())
        talk.app.editor.put("Half")
        await talk.pilot.press("up")
        await talk.written("a\nb")
        await talk.pilot.press("up", "up")
        await talk.written("First.")
        await talk.pilot.press("down", "down", "down")
        await talk.written("Half")
    async with open_chat(tmp_path, ["Three."]) as talk:
        await talk.pilot.press("up")
        await talk.written("a\nb")


@pytest.mark.slow
async def test_hostile_text_steers_nothing(tmp_path):
    hostile = "red \x1b[31m \x1b]0;title\x07 [bold]markup[/] [link=x]y[/link] \u202eevil"
    command = "printf 'a\\033[31mb [/] [red' [$HOME]"
    said = [call("bash", command=command), hostile]
    async with open_chat(tmp_path, said) as talk:
        await talk.say(hostile)
        await until(talk.pilot, lambda: talk.text.count("[bold]markup[/]") == 2)
        assert "\x1b" not in talk.text
        assert f"bash {command}" in talk.text
        await talk.pilot.press("ctrl+o")
        await talk.sees(r"a\x1b[31mb [/] [red")
        assert "\x1b" not in talk.text


@pytest.mark.slow
async def test_an_app_that_cannot_open_its_session_says_why(tmp_path):
    app = ChatApp(HostOptions(folder=tmp_path, home=tmp_path, store="memory://"))
    async with app.run_test():
        await waiting.until(lambda: app.return_code is not None)  # the pilot waits for a screen that goes
    assert app.return_code == 2


def test_without_a_home_directory_it_says_what_to_set(tmp_path, monkeypatch):
    def no_home(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", no_home)
    with pytest.raises(InputError, match="set HOME"):
        ChatApp(HostOptions(folder=tmp_path))


@pytest.mark.slow
async def test_leaving_takes_two_ctrl_c(tmp_path):
    async with open_chat(tmp_path, answers) as talk:
        await talk.pilot.press("ctrl+c")
        await until(talk.pilot, lambda: talk.app._leaving)
        assert talk.app.return_code is None
        talk.app.simulate_key("ctrl+c")  # the pilot would wait for a screen that goes
        await waiting.until(lambda: talk.app.return_code is not None)


@pytest.mark.slow
async def test_what_is_typed_ahead_answers_no_question(tmp_path, monkeypatch):
    monkeypatch.setattr(dialogs, "QUIET", 3_600)
    async with open_chat(tmp_path, [call("bash", command="touch there"), "No."], allow=()) as talk:
        await talk.type("Go.")
        await until(talk.pilot, lambda: isinstance(talk.app.screen, dialogs.PermissionScreen))
        asks = talk.app.screen
        await talk.pilot.press("s", "a", "y", "tab", "enter", "space", "n")
        assert talk.app.screen is asks
        asks._listen()  # a pause
        await talk.pilot.press("a", "n", "enter")
        asks._listen()
        assert talk.app.screen is asks
        await talk.pilot.press("escape")
        await talk.closed()
        assert not (tmp_path / "work/there").exists()
        assert not talk.host.permissions.allow


@pytest.mark.parametrize("size", [(100, 40), (60, 10)])
@pytest.mark.slow
async def test_a_long_command_is_read_to_its_end_before_it_is_allowed(tmp_path, size):
    command = "\n".join(f"echo {n}" for n in range(60)) + "\ntouch there"
    async with open_chat(tmp_path, [call("bash", command=command), "No."], size=size, allow=()) as talk:
        await talk.type("Go.")
        await talk.opened("PermissionScreen")
        await talk.sees("Allow bash?", "echo 0", "Yes, once (y)")
        assert "touch there" not in talk.text
        await talk.pilot.press("end")
        await talk.sees("touch there", "Yes, once (y)")
        await talk.pilot.press("pageup")
        await until(talk.pilot, lambda: "touch there" not in talk.text)
        await talk.pilot.press("n")
        await talk.closed()


@pytest.mark.slow
async def test_ctrl_c_takes_every_question_away(tmp_path):
    def says(asked):
        said = asked.messages[-1]
        if said["content"] in ("one", "two"):
            return call("bash", command=f"touch {said['content']}")
        return calls(call("task", goal="one"), call("task", goal="two"))

    async with open_chat(tmp_path, says, allow=("task",)) as talk:
        await talk.type("Go.")
        await talk.opened("PermissionScreen")
        await until(talk.pilot, lambda: len(talk.model.requests) == 3)
        await talk.pilot.press("ctrl+c")
        await talk.closed()
        await talk.sees("Stopped.")
        assert not list((tmp_path / "work").iterdir())


@pytest.mark.parametrize("line", ["/handoff the tests", "/branch", "/preview"])
@pytest.mark.slow
async def test_ctrl_c_leaves_the_screen_of_a_command(tmp_path, line):
    async with open_chat(tmp_path, answers) as talk:
        await talk.turns(3)
        session = talk.host.session.id
        await talk.type(line)
        await until(talk.pilot, talk.asked)
        await talk.pilot.press("ctrl+c")
        await talk.closed()
        assert talk.host.session.id == session
        await talk.say("And now?")
        await talk.sees("Answer 3.")


@pytest.mark.slow
async def test_a_fold_that_is_stopped_is_on_the_screen_no_more(tmp_path):
    model = _HeldSummaries(answers, window=60_000)
    async with open_chat(tmp_path, model) as talk:
        await talk.turns(3, "Turn {}. Never push to main.")
        talk.host.session.summarizer = ModelSummarizer(model, window=model.window)
        model.gate = Gate()
        await talk.type("/compact")
        await talk.sees("The summary so far:", "folding (manual)")
        await talk.pilot.press("escape")
        await talk.sees("Stopped.")
        await until(talk.pilot, lambda: "summary so far" not in talk.text and "folding" not in talk.text)


@pytest.mark.slow
async def test_titles_are_no_markup(tmp_path):
    async with open_chat(tmp_path, answers) as talk:
        await talk.say("Hello.")
        await talk.type("/handoff mend the [/api] routes of list[int]")
        await talk.opened("TextDialog")
        await talk.sees("“mend the [/api] routes of list[int]”")
        await talk.pilot.press("escape")
        await talk.closed()


async def test_what_is_only_logged_is_on_the_screen(tmp_path):
    settings(tmp_path, '[agent]\ntheme = "textual-lite"\n[hooks]\nbefore_compaction = ["exit 3"]\n')
    (tmp_path / "work").mkdir()
    (tmp_path / "work/AGENTS.md").symlink_to("/etc/hostname")
    async with open_chat(tmp_path, answers) as talk:
        await talk.sees("no theme 'textual-lite' (did you mean 'textual-light'?)", "AGENTS.md is skipped")
        await talk.turns(3)
        await talk.say("/compact")
        await talk.sees("hook 'exit 3' ended with 3", "Folded")
    assert not [one for one in logging.getLogger("foldline").handlers if isinstance(one, Notices)]


@pytest.mark.slow
async def test_a_session_that_goes_on_says_where_it_stands(tmp_path):
    async with open_chat(tmp_path, [call("bash", command="true"), Answer(text="x", wait=Gate())]) as talk:
        await talk.type("Go.")
        await until(talk.pilot, lambda: len(talk.model.requests) == 2)
        for worker in talk.app.workers:
            worker.cancel()  # as if the program had ended
    async with open_chat(tmp_path, answers, newest=True) as talk:
        await talk.sees("its last turn did not end")


@pytest.mark.slow
async def test_prompts_that_another_session_does_not_get_are_told(tmp_path):
    said = [call("bash", command="until test -e done; do sleep 0.05; done"), Refusal(401, "bad key")]
    async with open_chat(tmp_path, said) as talk:
        await talk.type("One.")
        await until(talk.pilot, lambda: "running bash" in talk.text)
        await talk.type("Two, of which much was thought.")
        await until(talk.pilot, lambda: "1 queued" in talk.text)
        (tmp_path / "work/done").touch()
        await until(talk.pilot, talk.quiet)
        talk.app.talk._background = "a fold is ready"
        await talk.say("/clear")
        await talk.sees("Not sent", "Two, of which much was thought.")
        assert "a fold is ready" not in talk.text


@pytest.mark.slow
async def test_a_program_that_is_ended_leaves_the_terminal_as_it_was(tmp_path):
    async with open_chat(tmp_path) as talk:
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        os.kill(os.getpid(), signal.SIGTERM)
        await waiting.until(lambda: talk.app.return_code is not None)
    assert talk.app.return_code == 143


def test_how_to_go_on_names_the_store_and_no_password():
    assert resume_command("3fa1", None) == "foldline chat --resume 3fa1"
    assert resume_command("a; b", None) == "foldline chat --resume 'a; b'"
    assert (
        resume_command("3fa1", "sqlite:///a b.db") == "foldline chat --resume 3fa1 --store 'sqlite:///a b.db'"
    )
    assert "secret" not in resume_command("3fa1", "postgresql://me:secret@host/db")
