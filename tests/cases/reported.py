"""What people reported of other tools, as small inputs, and what is right for each: one function a folder.

The inputs lie beside the checkout (../shared/cases, or FOLDLINE_CASES); each kind has a test with an input of its own
elsewhere (tests/data/reported.toml). `python -m tests.cases` prints a line for each, `tests/cases/test_cases.py` runs them.
"""

from __future__ import annotations

import io
import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from functools import partial
from pathlib import Path

import foldline
from foldline.core.decide.presets import PRESETS
from foldline.dialects import get

CASES = Path(os.environ.get("FOLDLINE_CASES") or Path(__file__).parents[3] / "shared" / "cases")
REPORTED = CASES / "reported"
FOLDLINE = str(Path(sys.executable).with_name("foldline"))
CHECKS: dict[str, Callable[[], None]] = {}


def case(*folders):
    """Register a check under the folder of its input, or under several folders of one kind."""

    def register(check):
        for folder in folders or (check.__name__.replace("_", "-"),):
            CHECKS[folder] = partial(check, folder)
        return check

    return register


# ---- what a check asks


def load(folder, name="input.json"):
    return json.loads((REPORTED / folder / name).read_text(encoding="utf-8"))


def fold(folder, target, **given):
    """Fold an input; what comes out is valid, whatever went in."""
    done = foldline.compact(load(folder), target=target, **given)
    problems = get(done.dialect).validate(done.messages, done.system)
    assert not problems, problems
    return done


def sent(done):
    return json.dumps([done.system, done.messages], ensure_ascii=False)


def command(*args, data=None, home=None):
    env = {**os.environ, **({"HOME": str(home)} if home else {})}
    return subprocess.run(
        [FOLDLINE, *map(str, args)],
        input=data,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=env,
    )


def rules(folder):
    """Return the rules that stand, by `foldline constraints`."""
    done = command("constraints", REPORTED / folder / "input.json", "--json")
    assert done.returncode == 0, done.stderr
    return [rule["text"] for rule in json.loads(done.stdout)["standing"]]


def program(path):
    """Run a program that comes with a case, and return what it prints."""
    done = subprocess.run(
        [sys.executable, path], capture_output=True, text=True, timeout=300, check=False, cwd=path.parent
    )
    assert done.returncode == 0, done.stderr[-600:]
    return done.stdout


def holds(text, *wanted):
    missing = [one for one in wanted if one not in text]
    assert not missing, f"missing: {missing}"


# ---- pairs and references


@case()
def responses_item_reference(folder):
    assert sent(fold(folder, 90_000)).count("function_call_output") == 10
    done = fold(folder, 2_000)
    outputs = [item for item in done.messages if item.get("type") == "function_call_output"]
    named = [item["id"] for item in done.messages if item.get("type") == "item_reference"]
    assert len([one for one in named if one.startswith("fc_")]) == len(outputs)


@case()
def dup_ids_one_batch(folder):
    done = fold(folder, 9_000)
    calls = [call["id"] for message in done.messages for call in message.get("tool_calls", ())]
    results = [(m["tool_call_id"], m["content"]) for m in done.messages if m["role"] == "tool"]
    assert calls == ["c1", "c1_2"]
    assert results == [("c1", "ONE"), ("c1_2", "TWO")]


@case()
def agent_dup_ids(folder):
    said = program(REPORTED / folder / "repro.py")
    assert said.startswith("rc 0"), said
    results = [m["content"] for m in json.loads(said.partition("\n")[2]) if m["role"] == "tool"]
    assert ["one" in results[0], "two" in results[1]] == [True, True], results


@case()
def adk5602_late_final_result(folder):
    done = fold(folder, 4_000)
    holds(sent(done), "4217")


@case("pause-turn-split", "cc39374-server-tools")
def blocks_of_provider_run_tools(folder):
    """A call of a server's tool and its result stay together, in one message or in two."""
    for target in range(2_500, 9_000, 900):
        with suppress(foldline.FloorExceeded):
            blocks = [
                block
                for message in fold(folder, target).messages
                for block in message["content"]
                if isinstance(block, dict)
            ]
            calls = [block["id"] for block in blocks if block["type"] == "server_tool_use"]
            assert calls == [block["tool_use_id"] for block in blocks if "tool_use_id" in block], target


@case()
def devo186_open_call_tail(folder):
    holds(sent(fold(folder, 6_000)), "deleted one")


@case()
def cc31328_dropped_assistant(folder):
    done = command("compact", REPORTED / folder / "session.jsonl", "--target", 9_000, "-o", "-")
    assert done.returncode == 0
    holds(done.stdout, "HERON")


@case("cc24304-missing-parent", "cc35024-progress-forks", "cc60542-failed-compact")
def damaged_chains(folder):
    done = command("compact", REPORTED / folder / "session.jsonl", "--target", 9_000, "-o", "-")
    assert done.returncode == 0
    holds(done.stdout, "Never touch berths.csv." if folder == "cc60542-failed-compact" else "HERON")


# ---- what is carried


@case("anthropic-compaction-block")
def readable_compaction_block(folder):
    holds(sent(fold(folder, 3_500)), "D-17", "4,250", "Ragna Lien", "Never moor at pier 3")


@case("anthropic-compaction-block-before")
def nothing_counts_before_a_compaction_block(folder):
    done = foldline.compact(load(folder), target=90_000)
    assert done.view_tokens < 1_000, done.view_tokens
    holds(sent(done), "D-17")


@case(
    "earlier-summary-claude-code",
    "earlier-summary-codex",
    "earlier-summary-assistant-summary",
    "earlier-summary-opencode",
    "earlier-summary-plain",
    "earlier-summary-system-role",
)
def an_earlier_summary(folder):
    holds(sent(fold(folder, 3_000)), "Hvalkai", "alias", "test_quays.py", "D-17", "4,250", "berths.csv")


@case()
def continuation_summary_plain(folder):
    holds(sent(fold(folder, 3_000)), "Rename the quay", "Never touch berths.csv")


@case()
def gateway_selfcompact(folder):
    said = program(REPORTED / folder / "repro.py")
    assert "folded at turn" in said, said
    assert "False" not in said, said


@case()
def cc49806_leaked_no_tools(folder):
    assert rules(folder) == []
    holds(sent(foldline.compact(load(folder), target=9_000)), "berths.csv")


@case()
def mid_developer_policy(folder):
    holds(sent(fold(folder, 3_500)), "READ-ONLY", "quote prices in euro only")


@case("additional-tools-mid", "additional-tools-first")
def tools_given_in_the_input(folder):
    holds(sent(fold(folder, 3_500)), "additional_tools", "Look at a boat")


@case()
def responses_compaction_trigger(folder):
    done = fold(folder, 3_500)
    assert done.messages[-1] == {"type": "compaction_trigger"}


# ---- text, media, marks, names


@case()
def cc86560_lone_surrogate(folder):
    done = command("compact", REPORTED / folder / "input.json", "--target", 3_000, "-o", "-")
    assert done.returncode == 0, done.stderr
    counted = subprocess.run(
        [sys.executable, REPORTED / "check_surrogates.py"],
        input=done.stdout,
        capture_output=True,
        text=True,
        check=True,
    )
    assert counted.stdout.strip().endswith(" 0"), counted.stdout
    rpc = (REPORTED / folder / "rpc.jsonl").read_text(encoding="utf-8")
    done = command("rpc", "--model", "offline", data=rpc)
    assert "Traceback" not in done.stderr, done.stderr[-400:]


@case()
def mcp_recall(folder):
    with foldline.open_sync("memory://", "mcp", dialect="anthropic") as session:
        session.append(*load(folder))
        assert session.recall("KELP")
    holds(sent(fold(folder, 3_000)), "KELP-4417")


@case()
def deepagents2873_images(folder):
    done = fold(folder, 3_000)
    assert "[image" in sent(done).lower()
    assert "image" in str(done.receipt.dropped), done.receipt.dropped


@case()
def pdf_100_pages(folder):
    tokens = foldline.compact(load(folder), target=10**6).view_tokens
    assert 150_000 <= tokens <= 300_000, tokens


@case()
def cache_marks_8(folder):
    assert sent(fold(folder, 90_000)).count("cache_control") <= 4


@case()
def named_users(folder):
    text = sent(fold(folder, 3_500))
    assert "alma" in text, text[:400]


@case()
def webfetch_huge_latest(folder):
    holds(sent(fold(folder, 90_000)), "And next week?")


# ---- rules


@case()
def lift_phrases(folder):
    old = {"Never touch berths.csv.", "Always run the linter before committing.", "Don't push to main."}
    assert not old & set(rules(folder)), rules(folder)


@case()
def rules_german(folder):
    assert len(rules(folder)) == 3, rules(folder)


@case()
def rules_other_languages(folder):
    assert len(rules(folder)) == 7, rules(folder)


@case("no-rules", "quoted-rules", "pasted-log-rules")
def nothing_here_is_a_rule(folder):
    assert rules(folder) == []


@case()
def reminder_noise(folder):
    """What a program says in a reminder is no rule of the user's."""
    assert not [rule for rule in rules(folder) if "reminder" in rule or "TodoWrite" in rule]


@case("one-time-permission", "one-time-permission2")
def a_permission_for_once_lifts_nothing(folder):
    assert rules(folder) == [load(folder)[0]["content"]]


# ---- loops and signatures


@case()
def maf8441_autonomous(folder):
    for name in sorted(PRESETS):
        holds(
            sent(fold(folder, 9_000, policy=name)),
            "Migrate all 40 sluice configs",
            "never delete the v1 files",
        )


@case("gemini-openai-compat-signature", "litellm-thought-in-id")
def signatures_stay_with_their_calls(folder):
    given = {
        call["id"]: call
        for m in load(folder)
        if m["role"] == "assistant"
        for call in m.get("tool_calls") or ()
    }
    for name in ("foldline", "pi", "coop", "gencode"):
        done = fold(folder, 7_000, policy=name)
        kept = [call for m in done.messages for call in m.get("tool_calls") or ()]
        for call in kept:
            assert call.get("extra_content") == given[call["id"]].get("extra_content")


@case()
def signed_thinking_loop(folder):
    for name in ("foldline", "pi", "coop", "gencode"):
        for message in fold(folder, 9_000, policy=name).messages:
            kinds = [block["type"] for block in message["content"] if isinstance(block, dict)]
            assert ("tool_use" in kinds) <= ("thinking" in kinds), kinds


@case()
def sourcelens60_pasted_subject(folder):
    text = sent(fold(folder, 8_000))
    assert all(f"§{n} " in text for n in range(120))


@case("tool-reference-client", "pai7189-tool-search")
def tools_that_a_search_found(folder):
    given = load(folder)
    done = foldline.compact(given["messages"], target=4_000, tools=given["tools"], dialect="anthropic")
    assert not get("anthropic").validate(done.messages, done.system)


# ---- shapes


@case(
    "shape-bedrock-converse",
    "shape-gemini-contents",
    "shape-langchain-dump",
    "shape-ollama",
    "shape-pydantic-ai",
)
def a_shape_of_another_library(folder):
    """It is read, with its calls and results as pairs that are valid, or refused by name; never taken as text."""
    try:
        done = fold(folder, 5_000)
    except foldline.InputError as error:
        said = str(error).lower()
    else:
        said = ""
    if said:
        assert folder.split("-")[1] in said, said
        return
    text = sent(done)
    holds(text, "Plan", "Dry.")
    assert done.dialect in ("bedrock-converse", "gemini") or not re.search("toolUse|functionCall", text)
    assert get(done.dialect).validate(done.messages, done.system) == []
    assert ("look" in json.dumps(load(folder))) <= (text.count('"look"') > 0)


# ---- agents and servers


@case()
def agent_refusal(folder):
    plain, as_json = program(REPORTED / folder / "repro.py").splitlines()
    assert plain.startswith("rc 1"), plain
    assert plain.count("''") < 2, "a line says so"
    assert as_json.startswith("rc 1"), as_json
    assert '"how":"done"' not in as_json.replace(" ", ""), as_json


@case()
def strict_alternation(folder):
    assert program(REPORTED / folder / "repro.py").strip() == "12 prompts answered"


# ---- a newcomer's


def newcomer(name):
    return program(CASES / "newcomer" / name)


@case("newcomer/claudemd.py")
def project_instructions(folder):
    said = re.findall(r"^(.+) (True|False)$", newcomer("claudemd.py"), re.MULTILINE)
    assert len(said) == 10, said
    assert not [words for words, there in said if there == "False" and words != "INSTRUCTIONS"], said


@case("newcomer/elide.py")
def counts_of_what_is_left_out(folder):
    """The messages that a checkpoint shows, and those that it says it leaves out, are all that were folded."""
    with redirect_stdout(io.StringIO()):
        ran = runpy.run_path(str(CASES / "newcomer" / "elide.py"))
    page = ran["t"]
    shown = re.findall(r"^\[(?:User|Assistant)\] ", page, re.MULTILINE)
    left_out = [int(one.replace(",", "")) for one in re.findall(r"^\.\.\. ([\d,]+) mess", page, re.MULTILINE)]
    folded = int(ran["kept"][0].split()[5])
    assert left_out
    assert len(shown) + sum(left_out) == 2 * folded, page


@case("newcomer/fw.py")
def lists_of_frameworks(folder):
    wrong = [line for line in newcomer("fw.py").splitlines() if " OK " not in line]
    assert all("InputError" in line and "looks like" in line for line in wrong), wrong
    assert len(wrong) <= 1, wrong


@case("newcomer/recall3.py")
def questions_in_plain_words(folder):
    for line in newcomer("recall3.py").splitlines():
        assert re.search(r" [1-9]\d* True \[", line), line
