from __future__ import annotations

import io
import json
import re
import sys
from itertools import permutations
from pathlib import Path

import pytest
from tests.cli.calling import EXAMPLES, coding_session, talk, write_lines

from foldline import convert
from foldline.core.decide.presets import PRESETS
from foldline.dialects import get, names

RECEIPT = {
    "reason", "created_at", "first_kept", "tokens_before", "tokens_after", "messages_before", "messages_after",
    "dropped", "by_category", "constraints", "policy", "summarizer", "usage", "duration_ms",
}  # fmt: skip
ALWAYS = {"messages", "dialect", "view_tokens", "cut", "summary", "ledger", "receipt"}


@pytest.fixture
def session(tmp_path):
    return write_lines(tmp_path / "session.jsonl", coding_session())


@pytest.fixture
def short(tmp_path):
    return write_lines(tmp_path / "short.jsonl", talk("one", "two", "three", "four"))


def test_json_holds_what_the_contract_names(foldline, session):
    done = foldline("compact", session, "--target", 2000, "--json")
    assert done.code == 0
    assert set(done.json) == ALWAYS
    receipt = done.json["receipt"]
    assert set(receipt) >= RECEIPT
    assert done.json["view_tokens"] == receipt["tokens_after"] <= 2000
    assert receipt["messages_after"] == len(done.json["messages"])
    assert done.json["cut"]["first_kept"] == receipt["first_kept"]
    assert (receipt["reason"], receipt["policy"], receipt["summarizer"]) == ("target", "foldline", "offline")
    assert done.json["dialect"] == "anthropic"
    assert get("anthropic").validate(done.json["messages"]) == []


def test_a_list_that_fits_comes_back_as_it_was(foldline, short):
    done = foldline("compact", short, "--target", 50_000, "--json")
    assert done.json["messages"] == talk("one", "two", "three", "four")
    assert done.json["summary"] is done.json["cut"] is done.json["ledger"] is None
    receipt = done.json["receipt"]
    assert receipt["tokens_before"] == receipt["tokens_after"] == done.json["view_tokens"]


def test_a_range_is_folded_and_the_rest_stays_as_it_is(foldline, session):
    said = [json.loads(line) for line in session.read_text().splitlines()]
    prompts = [i for i, one in enumerate(said) if one["role"] == "user" and isinstance(one["content"], str)]
    after = prompts[len(prompts) // 2]
    done = foldline("compact", session, "--up-to", after - 1, "--json").json
    assert done["cut"] == {"first_kept": after, "split": False}
    assert done["messages"][-len(said[after:]) :] == said[after:]
    done = foldline("compact", session, "--since", after, "--json").json
    assert done["messages"][:after] == said[:after]
    assert done["summary"].startswith("<folded-range>")
    assert f"folded since message {after}" in done["receipt"]["notes"]  # a file has places, no ids
    assert get("anthropic").validate(done["messages"]) == []
    told = foldline("compact", session, "--since", after, "--preview").out
    assert "messages would be folded; the messages before them would be kept" in " ".join(told.split())
    assert foldline("compact", session, "--since", 1, "--target", 2000).code == 2
    assert foldline("compact", session, "--since", 9_999).code == 2


def test_a_range_that_cannot_be_folded_is_named_by_its_place(foldline, tmp_path):
    asks = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    path = tmp_path / "open.jsonl"
    said = [*talk("one", "two", "three"), {"role": "assistant", "content": None, "tool_calls": [asks]}]
    path.write_text("\n".join(json.dumps(one) for one in said))
    refused = foldline("compact", path, "--since", 3)
    assert refused.code == 2
    assert "since message 3: unanswered messages stay" in refused.err


@pytest.mark.parametrize("name", ["session.jsonl", "support-chat.json", "research.jsonl"])
def test_the_examples_fit(foldline, name):
    done = foldline("compact", EXAMPLES / name, "--target", 1700, "--json")
    assert done.json["view_tokens"] <= 1700 < done.json["receipt"]["tokens_before"]


def test_every_policy_fits(foldline, session):
    for name in PRESETS:
        done = foldline("compact", session, "--target", 1500, "--policy", name, "--json")
        assert done.code == 0, name
        assert done.json["view_tokens"] <= 1500, name
        assert done.json["receipt"]["policy"] == name


def test_a_system_prompt_for_another_dialect_stands_beside_the_messages(foldline, tmp_path):
    file = write_lines(
        tmp_path / "a.jsonl", [{"role": "system", "content": "Be brief."}, *talk("one", "two")]
    )
    done = foldline("compact", file, "--target", 1000, "--dialect", "anthropic", "--json")
    assert set(done.json) == {*ALWAYS, "system"}
    assert "Be brief." in json.dumps(done.json["system"])
    assert [message["role"] for message in done.json["messages"]] == ["user", "assistant"]
    for out in ("b.jsonl", "b.json"):
        foldline("compact", file, "--target", 1000, "--dialect", "anthropic", "-o", tmp_path / out)
        again = foldline("compact", tmp_path / out, "--target", 1000, "--json")
        assert again.json["messages"] == done.json["messages"]
        assert again.json["system"] == done.json["system"]


@pytest.mark.parametrize(("source", "to"), list(permutations(names(), 2)))
def test_a_system_prompt_beside_the_messages_takes_the_form_of_the_dialect(foldline, tmp_path, source, to):
    told = [{"role": "system", "content": "Be brief."}, *talk("one", "two")]
    given = convert(told, to=source)
    beside = (
        {"systemInstruction": {"parts": given.system}} if source == "gemini" else {"system": given.system}
    )
    if given.system is None:  # a message of its own in this dialect, but a file may hold it apart
        given = convert(told[1:], to=source)
        beside = {"system": "Be brief."}
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"dialect": source, **beside, "messages": given.messages}))
    wanted = convert(told, to=to)
    for target in (1_000, 40_000):
        done = foldline("compact", file, "--target", target, "--dialect", to, "--json").json
        assert done.get("system") == wanted.system
        assert len(done["messages"]) == len(wanted.messages)
        assert get(to).validate(done["messages"], done.get("system")) == []
        assert "Be brief." in json.dumps([done["messages"][0], done.get("system")])


def test_tools_of_another_dialect_are_left_out_by_name(foldline, tmp_path):
    out = tmp_path / "a.jsonl"
    for dialect, kept in (("anthropic", True), ("openai-chat", False)):
        done = foldline(
            "compact", EXAMPLES / "session.jsonl", "--target", 9000, "--dialect", dialect, "-o", out
        )
        assert ("tools" in json.loads(out.read_text().splitlines()[0])) == kept
        assert ("the tools are left out" in done.err) != kept


def test_a_system_prompt_in_the_form_of_a_third_dialect_is_read(foldline, tmp_path):
    blocks = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Use tabs."}]
    body = {"dialect": "openai-responses", "system": blocks, "messages": talk("one", "two")}
    (tmp_path / "a.json").write_text(json.dumps(body))
    done = foldline(
        "compact", tmp_path / "a.json", "--target", 1_000, "--dialect", "bedrock-converse", "--json"
    )
    assert done.json["system"] == [{"text": "Be brief."}, {"text": "Use tabs."}]


def test_output_is_json_lines_or_one_document(foldline, session, tmp_path):
    done = foldline("compact", session, "--target", 2000, "--json").json
    lines, document = tmp_path / "out.jsonl", tmp_path / "out.json"
    told = foldline("compact", session, "--target", 2000, "-o", lines)
    assert told.code == 0
    assert "receipt" in told.out
    assert "wrote" in told.err
    foldline("compact", session, "--target", 2000, "-o", document)
    assert [json.loads(line) for line in lines.read_text().splitlines()] == done["messages"]
    assert json.loads(document.read_text()) == done["messages"]
    assert sorted(path.name for path in tmp_path.glob("*out*")) == ["out.json", "out.jsonl"]


def test_a_dash_writes_the_messages_to_standard_output_and_the_rest_beside(foldline, session):
    for extra in ([], ["--json"]):
        done = foldline("compact", session, "--target", 2000, "-o", "-", *extra)
        assert json.loads(done.out.splitlines()[0])["role"] == "user"
        assert all(json.loads(line)["role"] for line in done.out.splitlines())
    assert not Path("-").exists()


def test_a_fold_of_the_fold_changes_nothing(foldline, session, tmp_path):
    first = foldline("compact", session, "--target", 2000, "-o", tmp_path / "a.jsonl", "--json").json
    second = foldline("compact", tmp_path / "a.jsonl", "--target", 2000, "--json").json
    assert second["messages"] == first["messages"]
    assert second["cut"] is None


def test_preview_says_and_writes_nothing(foldline, session, short, tmp_path):
    file = tmp_path / "out.jsonl"
    told = foldline("compact", session, "--target", 2000, "--preview", "-o", file)
    assert "messages would be folded; messages from" in told.out
    assert "nothing was changed" in told.out
    as_json = foldline("compact", session, "--target", 2000, "--preview", "--json", "-o", file)
    assert set(as_json.json) == ALWAYS - {"messages"}
    assert not file.exists()
    for each in (told, as_json):
        assert "--preview writes nothing" in each.err
        assert file.name in each.err
    fits = foldline("compact", short, "--target", 60_000, "--preview")
    assert "Nothing would be folded" in fits.out


def test_what_fits_but_for_a_result_without_a_call_is_not_said_to_fit_as_it_is(foldline, tmp_path):
    lost = {"role": "tool", "tool_call_id": "nobody", "content": "late"}
    for lists, words in (([lost], "a result that answers"), ([lost, lost], "2 results that answer")):
        file = write_lines(tmp_path / "orphans.jsonl", [*talk("hello", "hi"), *lists, *talk("go on")])
        told = foldline("compact", file, "--target", 5000, "--preview")
        assert f"tokens fit, without {words} no call." in told.out
        told = foldline("compact", file, "--target", 5000)
        assert f"tokens fit, without {words} no call." in told.out
        assert f"dropped orphans: {len(lists)}" in told.out


def test_a_target_below_the_floor_is_refused_with_its_parts(foldline, session):
    told = foldline("compact", session, "--target", 20)
    assert told.code == 1
    assert "cannot be removed (" in told.err
    assert "Raise the target to at least" in told.err
    error = foldline("compact", session, "--target", 20, "--json").json["error"]
    assert error["type"] == "FloorExceeded"
    assert (error["budget"], error["exit_code"]) == (20, 1)
    assert error["floor"] == sum(error["breakdown"].values()) > 20
    fits = foldline("compact", session, "--target", error["floor"], "--json")
    assert fits.code == 0
    assert fits.json["view_tokens"] <= error["floor"]


def test_without_a_target_the_policy_says_how_much_of_the_window(foldline, session):
    done = foldline("compact", session, "--window", 4_000, "--json").json
    assert (
        done["view_tokens"] <= 4_000 - 600 < done["receipt"]["tokens_before"]
    )  # reserve: 15% of the context
    named = foldline("compact", session, "--model", "anthropic:claude-sonnet-4-5", "--json").json
    assert named["cut"] is None


def test_the_files_own_compactions_are_boundaries_unless_left_out(foldline, tmp_path):
    summary = {"role": "summary", "text": "## Goal\nTell the numbers."}
    file = write_lines(
        tmp_path / "plain.jsonl",
        [
            {"meta": {"agent": "x"}},
            *[{"role": m["role"], "text": m["content"]} for m in talk("one", "two", long=300)],
            {"role": "boundary", "pre_tokens": 900},
            summary,
            *[{"role": m["role"], "text": m["content"]} for m in talk("three", "four")],
        ],
    )
    newest = foldline("compact", file, "--target", 9000, "--json").json
    assert "Tell the numbers." in newest["messages"][0]["content"]
    assert len(newest["messages"]) == 3
    everything = foldline("compact", file, "--target", 9000, "--from-start", "--json").json
    assert [m["role"] for m in everything["messages"]] == ["user", "assistant"] * 2


def test_standard_input(foldline, monkeypatch):
    raw = b"".join(json.dumps(message).encode() + b"\n" for message in talk("one", "two", "three"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    assert foldline("compact", "-", "--target", 500, "--json").json["receipt"]["messages_before"] == 3
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert "standard input: the file is empty" in foldline("compact", "-", "--target", 500).err


@pytest.mark.parametrize(
    "flag", [["--target", "0"], ["--target", "-5"], ["--target", "many"], ["--window", "0"]]
)
def test_a_budget_is_a_positive_number(foldline, session, flag):
    done = foldline("compact", session, *flag, "--json")
    assert done.code == 2
    assert "Invalid value" in done.err
    assert done.json["error"]["exit_code"] == 2


def test_an_unknown_policy_names_those_there_are(foldline, session):
    done = foldline("compact", session, "--target", 2000, "--policy", "nobody")
    assert done.code == 2
    assert "no policy 'nobody'; there are foldline, coop" in done.err
    assert not done.out


def test_warnings_are_told_once(foldline, tmp_path):
    file = write_lines(tmp_path / "a.jsonl", talk("one", "two"))
    file.write_bytes(file.read_bytes() + b'{"role": "user", "cont')
    done = foldline("compact", file, "--target", 500)
    assert done.code == 0
    assert done.err.count("line 3") == 1
    assert "the file ends inside this line" in done.err


def test_what_fits_unasked_is_told_the_budget_it_fits(foldline, short, session):
    unasked = foldline("compact", short, "--window", 100_000)
    asked = foldline("compact", short, "--target", 50_000)

    assert "the budget is 85,000 tokens, the part that foldline uses of a window of 100,000" in unasked.err
    assert "--target N" not in asked.err
    assert "--target N" not in foldline("compact", session, "--window", 4_000).err


def test_inspect_and_compact_agree_on_what_is_sent(foldline):
    example = EXAMPLES / "session.jsonl"
    sent = re.search(
        r"what a model is sent: ([\d,]+) tokens in ([\d,]+) messages", foldline("inspect", example).out
    )
    receipt = foldline("compact", example, "--json").json["receipt"]

    assert int(sent[1].replace(",", "")) == receipt["tokens_before"]
    assert int(sent[2].replace(",", "")) == receipt["messages_before"]
