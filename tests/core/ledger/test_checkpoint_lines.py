"""Kinds of lines that readers found noisy, wrong or misleading in a checkpoint: one test for each kind.

Rules that were only pasted into a message or that only report a problem stand in `test_pasted.py` (diffs, errors
of an API) and in `test_constraint_sentences.py` (reports of bugs).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.core.ledger.session_samples import answer, assistant, said, user
from tests.support.corpus import fold

from foldline.core.ledger.collect import collect
from foldline.core.ledger.current import current
from foldline.core.ledger.facts.requests import gist
from foldline.core.ledger.merge import merge
from foldline.core.ledger.page.page import compose, parse
from foldline.core.ledger.text import names
from foldline.core.log.messages import Message, ToolCall
from foldline.core.measure.tokens import OFFLINE
from foldline.loading import from_records
from foldline.transcripts import read

HOME = "/home/eva/bakery"


def page(*messages: Message, tokens: int = 3_000) -> str:
    """The checkpoint of a session."""
    return compose(collect(said(*messages)), tokens, OFFLINE.count).text


def section(text: str, heading: str) -> str:
    """The lines under one heading, "" where there is none."""
    return text.partition(f"## {heading}\n")[2].partition("\n## ")[0]


class Calls:
    """Makes calls with their results, each with an id of its own."""

    def __init__(self) -> None:
        self._made = 0

    def __call__(self, name: str, shows: str, why: str = "", **arguments: Any) -> tuple[Message, Message]:
        self._made += 1
        key = f"c{self._made}"
        return assistant(why, ToolCall(key, name, arguments)), answer(key, shows)

    def bash(self, command: str, shows: str, why: str = "") -> tuple[Message, Message]:
        return self("bash", shows, why, command=command)


@pytest.fixture
def calls() -> Calls:
    return Calls()


PLAN = "update_plan"


def plan(calls: Calls, *steps: tuple[str, str]) -> tuple[Message, Message]:
    return calls(PLAN, "Plan updated", plan=[dict(step=step, status=status) for step, status in steps])


@pytest.mark.parametrize("status", ["pending", "in_progress"])
def test_a_plan_older_than_a_request_that_was_answered_since(calls: Calls, status: str) -> None:
    step = "Knead the loader of the flour table"
    text = page(
        user("Speed up the flour table."),
        *plan(calls, (step, status), ("Measure it again", "pending")),
        assistant("The flour table loads in 40 ms now."),
        user("Print the oven times in the menu too."),
        *calls("edit", "ok", path="menu.py", old_string="a = 1", new_string="a = 2"),
        assistant("The menu prints the oven times."),
        user("And what about the sugar?"),
        assistant("The sugar is in the menu as well."),
        user("Thanks, rename the menu to card."),
    )
    assert step not in section(text, "Next Steps")
    assert step not in section(text, "In Progress")


def test_a_plan_of_the_request_that_is_worked_on_stays(calls: Calls) -> None:
    text = page(
        user("Speed up the flour table."),
        *plan(calls, ("Knead the loader of the flour table", "in_progress"), ("Measure it again", "pending")),
    )
    assert "Knead the loader" in text
    assert "Measure it again" in text


def test_the_newest_request_when_it_was_answered(calls: Calls) -> None:
    text = page(
        user("Mend the oven timer in timer.py."),
        *calls("edit", "ok", path="timer.py", old_string="a = 1", new_string="a = 2"),
        assistant("The oven timer in timer.py is mended."),
        user("which oven did I choose yesterday?"),
        assistant("You chose the stone oven."),
    )
    assert "Newest request: which oven" not in text


def test_a_bare_answer_with_the_question_that_it_answers() -> None:
    text = page(
        user("Look at the prices."),
        assistant("Two prices are wrong. Shall I correct them and reprint the labels?"),
        user("sure, go on"),
    )
    line = next(line for line in text.splitlines() if "sure, go on" in line)
    assert "Shall I correct them and reprint the labels?" in line


def test_a_command_that_failed_and_passed_later_blocks_nothing(calls: Calls) -> None:
    text = page(
        user("Publish the price list."),
        *calls.bash('git commit -m "Prices of May"', "fatal: unable to create index.lock\nexit code: 128"),
        *calls.bash('git commit -m "Prices of May"', "[main 8c1d2e3] Prices of May\n 1 file changed"),
        assistant("The prices are committed."),
    )
    assert "Prices of May" not in section(text, "Blocked")
    assert "8c1d2e3" in text


def test_a_call_without_an_answer_on_a_file_that_was_removed_since(calls: Calls) -> None:
    text = page(
        user("Make a rye theme."),
        assistant("", ToolCall("x", "edit", dict(path=f"{HOME}/rye.css", oldText="a", newText="b"))),
        user("remove the rye.css"),
        *calls.bash(f"rm {HOME}/rye.css", ""),
        assistant("The rye.css has been removed."),
        user("Now mend the oven."),
    )
    assert "rye.css" not in section(text, "Blocked")


def test_a_search_in_a_wrong_place_blocks_nothing(calls: Calls) -> None:
    text = page(
        user("Where is the dough mixed?"),
        *calls.bash("rg mix_dough spec", "rg: spec: No such file or directory (os error 2)\nexit code: 2"),
        *calls.bash("rg mix_dough lib", "lib/dough.rb:4: def mix_dough"),
        assistant("It is mixed in lib/dough.rb."),
    )
    assert "rg: spec" not in section(text, "Blocked")


def test_a_process_that_had_ended_blocks_nothing(calls: Calls) -> None:
    text = page(
        user("Stop the preview."),
        *calls("kill_shell", "shellId: 71 was already stopped via kill_shell.", shell_id="71"),
        assistant("The preview is stopped."),
    )
    assert "shellId" not in text


@pytest.mark.parametrize(
    "shown", ["Checked 57 files in 20ms. Fixed 2 files.", "[fmt] $ rustfmt --edition 2021"]
)
def test_what_a_formatter_prints_is_no_error_that_was_fixed(calls: Calls, shown: str) -> None:
    command = "task fmt && task lint"
    text = page(
        user("Tidy up the bread module."),
        *calls.bash(command, f"{shown}\nsrc/bread.rs:4: error: unused loaf\nexit code: 1"),
        *calls("edit", "ok", path="src/bread.rs", old_string="let loaf", new_string="let _loaf"),
        *calls.bash(command, f"{shown}\nno issues found\nexit code: 0"),
        assistant("The bread module is tidy."),
    )
    assert "Fixed since: " + shown[:12] not in text


def test_a_scenario_that_is_traced_is_nothing_done(calls: Calls) -> None:
    text = page(
        user("Does an order survive a restart?"),
        *calls("read", "def restart(): ...", path="orders.py"),
        assistant(
            "Let me trace through the scenario:\n1. The worker detects a new day, but the old till is gone\n"
            "2. Orders are read again"
        ),
        *calls("edit", "ok", path="orders.py", old_string="a = 1", new_string="a = 2"),
        assistant("Fixed `restart` in orders.py so that orders survive it."),
    )
    assert "old till is gone" not in section(text, "Done")
    assert "trace through" not in section(text, "Next Steps")


def test_uncommitted_is_said_no_more_after_the_commit(calls: Calls) -> None:
    begun = (
        user("Bake the new menu."),
        *calls("write", "ok", path="menu.md", content="Bread"),
        assistant("The menu stands in menu.md. All links work, but the file isn't committed yet."),
    )
    later = (
        user("Commit it."),
        *calls.bash('git commit -am "Add the menu"', "[main 77aa0c1] Add the menu\n 1 file changed"),
        assistant("Committed as `77aa0c1`."),
    )
    assert "isn't committed" in page(*begun)
    assert "isn't committed" not in page(*begun, *later)
    assert "The menu stands in menu.md." in page(*begun, *later)
    again = assistant("The prices in prices.md are not committed.")
    asked = user("Change the prices."), *calls("write", "ok", path="prices.md", content="3"), again
    assert "prices.md are not committed" in page(*begun, *later, *asked)


def test_what_remains_untracked_is_no_step(calls: Calls) -> None:
    text = page(
        user("Commit the oven."),
        *calls.bash("git status --short", "?? notes.txt"),
        assistant("Committed. The only remaining untracked files are notes.txt and a cache."),
        user("Good. Mend the till."),
    )
    assert "untracked" not in section(text, "Next Steps")


def test_a_choice_of_something_that_was_deleted_later(calls: Calls) -> None:
    text = page(
        user("The app needs a logo."),
        assistant("A bitmap blurs when it is scaled, so I'll keep the SVG for the sign."),
        *calls("write", "ok", path="sign.svg", content="<svg/>"),
        user("No, use the bitmap instead and delete the SVG."),
        *calls.bash("rm sign.svg", ""),
        assistant("Instead of the SVG, the sign uses sign.png now. I deleted sign.svg."),
    )
    assert "keep the SVG" not in section(text, "Decisions")


@pytest.mark.parametrize(
    "shown",
    [
        'ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL  Command "ava" not found',
        'error Command "ava" not found.',
        'Command "ava" not found',
        "ERR_PNPM_NO_SCRIPT  Missing script: ava",
    ],
)
def test_a_runner_that_was_not_found_has_not_passed(calls: Calls, shown: str) -> None:
    command = "pnpm run build && pnpm exec ava out/oven.js"
    ran = calls("bash", f"> build\n> tsc -p .\n\n {shown}\n", command=command)
    failed = calls.bash(
        "make heat", "make: *** No rule\nexit code: 2"
    )  # this tool names codes that are not zero
    text = page(user("Test the oven."), *failed, *ran, assistant("I'll use the other runner."))
    line = next(line for line in text.splitlines() if line.lstrip(" -").startswith(f"`{command}`"))
    assert "failed" in line
    assert "passed" not in line
    assert "ava" in line.partition("failed")[2]


@pytest.mark.parametrize(
    ("number", "told"), [("45678", False), ("98765", False), ("7777", False), ("45687", True), ("8765", True)]
)
def test_a_number_that_was_made_up_for_a_test_is_no_value(calls: Calls, number: str, told: bool) -> None:
    text = page(
        user("Test the hook."),
        *calls.bash(f"OVEN_WORKER={number} oven hooks start; echo done", "done"),
        assistant("The hook answers."),
    )
    assert (f"oven_worker = `{number}`" in text) is told


@pytest.mark.parametrize(
    "noise",
    [
        "shellId: 3, pid: 992817, mode: async, status: running, duration: 4s",
        "Process Group PGID: 51772",
        "agentId: b71c2f0 (for resuming to continue this agent's work if needed)",
        "</system-reminder>",
    ],
)
def test_what_the_harness_says_of_itself_is_not_quoted(calls: Calls, noise: str) -> None:
    text = page(
        user("Watch the oven."),
        *calls.bash("oven watch", f"the stone oven reached 240 degrees in `preheat_stone`\n{noise}"),
        *calls.bash("oven watch --all", f"door of the small oven is open\n{noise}"),
    )
    assert noise[:12] not in text


def test_numbered_lines_of_a_source_are_not_quoted(calls: Calls) -> None:
    body = "\n".join(
        f"{at}: {line}" for at, line in enumerate(["  }", "};", "", "export function heat() {"], 97)
    )
    text = page(
        user("Where does heating begin?"),
        *calls("read", body, path="src/oven.ts"),
        assistant("In src/oven.ts, `heat` begins it."),
        *calls("write", "ok", path="src/oven.ts", content="export function warm() {}"),
        assistant("I rewrote src/oven.ts."),
    )
    assert "97: }" not in text
    assert "};" not in text


def test_code_is_no_reason_for_reading_a_file(calls: Calls) -> None:
    text = page(
        user("Mend the arguments."),
        *calls("read", 'import { OVEN_NAME } from "./names.js";\nparse(OVEN_NAME);', path="src/flags.ts"),
        *calls("read", 'type Colour =\n  | "crustColour"\n  | "crumbColour";', path="src/colours.ts"),
        *calls.bash("npm run check", "src/flags.ts(3,1): error TS2304: OVEN_NAME is not defined"),
    )
    index = text.partition("## Index")[2]
    assert "src/flags.ts" in text
    assert "import {" not in index
    assert '| "crust' not in index


@pytest.mark.parametrize(
    "pasted",
    [
        "    at bakeAll (/srv/bakery/src/oven.ts:44:7)\n    at main (/srv/bakery/src/main.ts:3:1)",
        "⠙ Baking... (press q to stop)\n────────────────────────",
    ],
)
def test_pasted_lines_are_no_requests(pasted: str) -> None:
    request = f"The oven stops when I open the door.\n{pasted}\nMake it wait."
    assert gist(request, 400) == "The oven stops when I open the door. Make it wait."
    log = section(page(user(request), assistant("It waits."), user("Now the till.")), "Work Log")
    assert "The oven stops" in log
    assert "bakeAll" not in log
    assert "Baking" not in log


def test_a_request_is_told_once(calls: Calls) -> None:
    long = (
        "Mend the conveyor " + "that carries loaves from the stone oven to the cooling rack of the shop " * 3
    )
    request = f"{long.strip()}, in conveyor.py and `belt_speed`."
    messages = [user(request), *calls("edit", "ok", path="conveyor.py", old_string="1", new_string="2")]
    messages.append(assistant("The conveyor in conveyor.py keeps `belt_speed` now."))
    for at in range(12):
        messages += [user(f"Then polish shelf {at} in shelf_{at}.py."), assistant(f"Shelf {at} is polished.")]
    for tokens in (600, 900, 1_500, 3_000):
        log = section(page(*messages, tokens=tokens), "Work Log")
        assert log.count("Mend the conveyor that carries loaves") <= 1
        assert "Last answered request" not in log


def test_a_path_in_a_quoted_command_stays_below_its_root(calls: Calls) -> None:
    command = "ls /home/eva/.cache/oven/logs"
    text = page(user("Where are the logs?"), *calls.bash(command, "oven-1.log\noven-2.log"))
    assert "`ls .cache/oven" not in text
    assert "`.cache/oven" not in text


def test_one_base_directory_for_all_paths(calls: Calls) -> None:
    paths = [f"{HOME}/cmd/shop/till/{name}.go" for name in ("till", "drawer", "coin")]
    messages = [user("Mend the till.")]
    for path in paths:
        messages += calls("read", "package till", path=path)
    messages += calls("edit", "ok", path=paths[0], old_string="a", new_string="b")
    messages += calls.bash(f"cd {HOME} && go test ./cmd/shop/till/", "ok  shop/cmd/shop/till/coin.go 0.2s")
    text = page(*messages, assistant("The till in cmd/shop/till/till.go works."))
    bases = [line.partition("`")[2].rstrip("`") for line in text.splitlines() if "base directory" in line]
    listed = [name.text for line in text.splitlines() if "`cd " not in line for name in names.in_line(line)]
    assert len(bases) == 1
    assert not any(path.startswith(HOME) and path.rstrip("/") != bases[0].rstrip("/") for path in listed)
    spelled = {path for path in listed if path.endswith("till.go")} - {"cmd/shop/till/till.go"}
    assert len(spelled) <= 1


def test_a_folder_that_was_made_again_is_not_deleted(calls: Calls) -> None:
    path = f"{HOME}/widgets/door.ts"
    text = page(
        user("Rebuild the widgets."),
        *calls.bash(f"rm -r {HOME}/widgets", ""),
        *calls("write", "ok", path=path, content="export const door = 1;"),
        *calls("write", "ok", path=f"{HOME}/main.ts", content="import './widgets/door.ts';"),
    )
    assert "door.ts" in text
    assert "widgets (deleted)" not in text


@pytest.mark.parametrize("tokens", [300, 500, 900])
def test_a_list_of_files_names_some(calls: Calls, tokens: int) -> None:
    messages = [user("Read all shelves.")]
    for at in range(40):
        messages += calls("read", f"shelf {at}", path=f"{HOME}/shelves/shelf_number_{at}.py")
    text = page(*messages, assistant("I read them."), tokens=tokens)
    inside = text.partition("<read-files>")[2].partition("</read-files>")[0].strip()
    assert not inside.startswith("(")


@pytest.mark.parametrize(
    "line",
    [
        "bakery@1.4.2 compile /home/eva/bakery",
        "Started the oven host with pid 53578.",
        "Extension host (LocalProcess pid: 53578) is responsive.",
        "[main 2026-04-08T19:22:01.517Z] the oven host exited",
        "Successfully replaced text in src/oven.py. Changed 12 characters to 15 characters.",
        "File created successfully at: src/oven.py",
        "✔ the oven of src/oven.py opens (552ms)",
    ],
)
def test_banners_and_acknowledgements_are_not_quoted(calls: Calls, line: str) -> None:
    text = page(
        user("Mend src/oven.py."), *calls.bash("make oven", f"{line}\nsrc/oven.py is now at 180 degrees")
    )
    assert line[:30] not in section(text, "Index")


def test_names_without_words_are_not_listed(calls: Calls) -> None:
    source = (
        "def heat_oven(flour):\n    warmth = oven_table[oven.place].warmthOf(flourKind)\n    return warmth\n"
    )
    text = page(
        user("Mend src/oven.py."),
        *calls("read", source, path="src/oven.py"),
        *calls.bash("ls -R", "warmthOf flourKind"),
    )
    assert "heat_oven" in text
    assert "warmthOf" not in text


def test_one_reason_stands_once_before_all_that_was_run_for_it(calls: Calls) -> None:
    why = "I'm tracing the refresh flow of the oven table first, then I'll patch the menu."
    commands = [
        f"rg -n 'oven_{word}' src/oven_{word}.py" for word in ("left", "right", "top", "bottom", "door")
    ]
    shown = [
        calls.bash(command, f"src/oven_{at}.py is named here", why) for at, command in enumerate(commands)
    ]
    text = page(user("Mend the oven table."), *(message for pair in shown for message in pair))
    assert text.count("tracing the refresh flow of the oven table first: ") == 1
    assert "then I'll patch" not in section(text, "Index")
    assert all(command in text for command in commands)


def test_the_goal_is_in_the_words_of_the_user(calls: Calls) -> None:
    log = "\n".join(f"oven.ts:{at} [Oven] resetState called Object" for at in range(8))
    text = page(
        user("Stop the oven from resetting its clock."),
        assistant("Please paste what the console shows."),
        user(log),
        assistant("It is reset twice. I shall look at the second call."),
    )
    assert "resetState" not in section(text, "Goal")


def test_a_request_that_is_sent_again_at_once_is_told_once(calls: Calls) -> None:
    asked = "The oven fails silently if any step of the chain returns an error: log it."
    text = page(
        user(asked),
        user(asked),
        *calls.bash("make test", "4 passed"),
        assistant("The oven logs its errors now."),
    )
    assert section(text, "Work Log").count(asked[:30]) == 1


def test_a_changed_file_is_told_by_its_newest_changes(calls: Calls) -> None:
    edits = [
        calls(
            "edit", "ok", f"Now add the {part} of the oven.", path="oven.py", old_string="a", new_string=part
        )
        for part in ("door", "lamp", "clock", "timer")
    ]
    text = page(user("Build the oven."), *(message for pair in edits for message in pair))
    line = next(line for line in text.splitlines() if line.startswith("- `oven.py` (modified"))
    assert "clock" in line
    assert "timer" in line
    assert "door" not in line


def test_a_check_that_ran_before_the_last_change_says_so(calls: Calls) -> None:
    change = calls("edit", "ok", path="oven.py", old_string="heat = 1", new_string="heat = 2")
    check = calls.bash("make test", "4 passed")
    before = page(user("Mend the oven."), *check, *change)
    after = page(user("Mend the oven."), *change, *check)
    assert "`make test` passed, before the last change: 4 passed" in before
    assert "No check ran after the last change of a file." in before
    assert "`make test` passed: 4 passed" in after
    assert "No check ran" not in after


def test_a_check_of_an_earlier_fold_that_ran_before_a_later_change_says_so(calls: Calls) -> None:
    change = calls("edit", "ok", path="oven.py", old_string="heat = 1", new_string="heat = 2")
    whole = said(user("Mend the oven."), *calls.bash("make test", "4 passed"), user("Go further."), *change)
    told = merge(collect(whole[:3]), collect(whole[3:]))
    for _ in range(3):
        text = compose(told, 3_000, OFFLINE.count).text
        assert "No check ran after the last change of a file." in text
        told = parse(text)


def test_a_changed_file_says_what_it_holds_now(calls: Calls) -> None:
    text = page(
        user("Set the colours of the oven."),
        *calls(
            "edit",
            "ok",
            path="dark.json",
            old_string="{}",
            new_string='{\n  "ovenOff": "dimGray",\n  "ovenLow": "red"\n}',
        ),
        *calls("edit", "ok", path="dark.json", old_string='"ovenLow": "red"', new_string='"ovenLow": "blue"'),
    )
    assert '"ovenOff": "dimGray"' in text
    assert '"ovenLow": "blue"' in text
    assert '"ovenLow": "red"' not in section(text, "Work Log")


def test_a_call_that_is_kept_itself_blocks_nothing(calls: Calls) -> None:
    asked, open_call = (
        user("Mend the oven."),
        assistant("I look.", ToolCall("open", "bash", {"command": "make oven"})),
    )
    whole = said(asked, open_call)
    ledger = current(collect(whole[:1]), collect(whole[1:]), kept=frozenset((whole[1].id,)))
    assert "never answered" not in compose(ledger, 3_000, OFFLINE.count).text


def test_an_error_of_a_compiler_is_gone_when_the_same_program_passed_later(calls: Calls) -> None:
    text = page(
        user("Mend the oven."),
        *calls.bash(
            "pnpm test -- --grep 'oven door'", "src/oven.ts(3,1): error TS2304: Cannot find name 'Door'."
        ),
        *calls.bash("pnpm test -- --grep 'oven lamp'", "38 passing (7s)"),
        assistant("I go on.", ToolCall("open", "bash", {"command": "pnpm lint"})),
    )
    assert "TS2304" not in section(text, "Progress").partition("### Blocked")[2]


def test_words_between_two_calls_answer_no_request(calls: Calls) -> None:
    text = page(
        user("Mend the oven."),
        assistant("The oven heats again."),
        user("Show a lamp while it heats."),
        assistant("I look at the panel first."),
        *calls.bash("cat panel.ts", "no lamp here"),
    )
    assert "Show a lamp while it heats." in section(text, "Goal") + section(text, "Next Steps")
    assert "answered request: Show a lamp" not in text


def test_names_that_stand_nowhere_else_are_one_list_at_the_end(calls: Calls) -> None:
    shown = "\n".join(f"recipes/oven_{number}.toml" for number in range(6))
    text = page(user("Mend the oven."), *calls.bash("ls recipes", shown))
    [line] = [line for line in text.splitlines() if line.startswith("- Other names that were met: ")]
    assert "`recipes/oven_3.toml`" in line
    again = compose(parse(text), 3_000, OFFLINE.count).text
    assert "`recipes/oven_3.toml`" in again


def test_a_sentence_that_a_message_holds_many_times_is_a_programs() -> None:
    warning = "Keys should always be unique so that components keep their identity."
    trace = "\n    at div\n    at http://localhost:3000/chunk.js:30815:13\n"
    text = (
        f"It works, but the console is full. {warning}{trace}"
        + f"chunk.js:23 Warning: two children. {warning}{trace}" * 4
    )
    told = page(user("Draw the tree."), assistant("Done."), user(text), assistant("I look."))
    assert warning not in section(told, "Constraints & Preferences")


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("diff --git a/README.md b/README.md", ["README.md", "README.md"]),
        ("--- a/src/oven.rs", ["src/oven.rs"]),
        ("+++ b/src/oven.rs", ["src/oven.rs"]),
        ("+++ src/oven.rs", ["src/oven.rs"]),
        ("see a/oven.rs and b/oven.rs", ["a/oven.rs", "b/oven.rs"]),
    ],
)
def test_the_sides_of_a_diff_are_no_folders(line: str, paths: list[str]) -> None:
    assert [name.text for name in names.in_line(line)] == paths


def test_notes_begin_with_a_sentence(calls: Calls) -> None:
    text = page(
        user("Show the shelves."),
        assistant(
            "Breads and cakes are used together: `cd shop && ls shelves`.",
            ToolCall("x", "bash", dict(command="cd shop && ls shelves")),
        ),
        answer("x", "rye.txt"),
        assistant("Here is rye.txt."),
    )
    assert not any(line.lstrip(" -").startswith("are used together") for line in text.splitlines())


RECORDED = [
    ("codex-1", "Rewire checkpoint selection flow"),
    ("codex-2", "Inspect current transcript normalization"),
    ("pi-2", "**Invalid Theme Handling**: Invalid or malformed themes no longer crash the"),
    ("pi-1", "must have a corresponding `tool_result` block in the next"),
    ("pi-1", "Newest request: what did i just execute?"),
    ("pi-2", "Newest request: yeah, do it all\n"),
    ("pi-2", '`git commit -m "Release v0.8.0"` failed'),
    ("pi-2", "A call was never answered: edit"),
    ("codex-1", "rg: test: No such file or directory"),
    ("codex-3", "rg: test: No such file or directory"),
    ("copilot-1", "shellId:"),
    ("pi-1", "Fixed since: Checked 238 files"),
    ("claude-code-3", "Fixed since: [fmt]"),
    ("claude-code-1", "- Migration detects HEAD change, but old shadow branch is gone"),
    ("claude-code-3", "nothing has been committed"),
    ("claude-code-3", "Said to come next: The only remaining untracked files"),
    ("claude-code-1", "Let me trace through the scenario:"),
    ("gemini-1", "keep the SVG for the activity bar"),
    ("opencode-1", 'sessionDetailsPanel.test.js"` passed'),
    ("copilot-1", "copilot_loader_pid = "),
    ("opencode-2", "97: } }; 100: export async function"),
    ("gemini-1", "Process Group PGID"),
    ("claude-code-2", "agentId: "),
    ("claude-code-2", "</system-reminder>"),
    ("pi-1", "- are used together"),
    ("pi-2", 'times): | "toolTitle"'),
    ("pi-1", "import { APP_NAME"),
    ("pi-2", "Asked: at resolveVarRefs"),
    ("pi-2", "Working... (esc to interrupt)"),
    ("copilot-1", "`ls .local/share/entire/`"),
    ("claude-code-1", "`cmd/entire/cli/strategy/clean_test.go`"),
    ("pi-1", "components (deleted)"),
    ("codex-2", "<read-files>\n("),
    ("claude-code-1", "Asked last (what follows this summary may answer it)"),
    ("claude-code-2", "`b/cmd/"),
]


@pytest.mark.parametrize("name", sorted({name for name, _ in RECORDED}))
def test_recorded_lines_do_not_come_back(recorded: Path, name: str) -> None:
    with (recorded / "native" / f"{name}.jsonl").open("rb") as stream:
        loaded = from_records(read(stream, name=name), OFFLINE, from_start=True)
    for target in (8_000, 20_000) if name == "pi-2" else (8_000,):
        summary = fold(loaded, "foldline", target).summary or ""
        assert "## " in summary
        assert [line for file, line in RECORDED if file == name and line in summary] == []
        assert not any("adhere to the invariant" in line for line in _rules(summary))
        long = [
            line.partition(": ")[2] for line in summary.splitlines() if len(line) > 400 and "equest: " in line
        ]
        assert [request for request in long if summary.count(request) > 1] == []


def _rules(summary: str) -> list[str]:
    return section(summary, "Constraints").splitlines()
