"""A day of work in one session, through `foldline rpc`: folds, two kills, a smaller model, and nothing is lost.

The long form, 300 prompts, is run by `make soak`.
"""

from __future__ import annotations

import json
import re

import msgspec
import pytest
from tests.agent.program import Rpc, foldline, served

from foldline.core.cut.notes import UNANSWERED
from foldline.testing import Answer, Scripted, call

pytestmark = pytest.mark.slow

RULES = ("Never push to main.", "All dates are written as YYYY-MM-DD.")
SETTINGS = """\
[models.scripted]
price = { input = 3.0, output = 15.0, cache_read = 0.3 }

[models.small]
price = { input = 0.5, output = 2.0, cache_read = 0.05 }
"""
SUMMARY = """\
## Goal
Review every part of the shop, one prompt after another.

## Constraints & Preferences
- {rules}

## Progress
### Done
- [x] The parts before {number:03} were read and reviewed.
### In Progress
- [ ] Part {number:03}.
### Blocked
- Nothing.

## Key Decisions
- **One part at a time**: the user asks for them in order.

## Next Steps
1. Review the part that the user names next.

## Critical Context
- Each part is one file, part_NNN.py."""
TURN = "## Turn in Progress\nThe user asked for a review; the file was read."
AT_WORK = "the agent is at work: wait for it, or interrupt it first"


class Day(msgspec.Struct, frozen=True):
    """How long the day is; at the prompts of `kills` the program is killed, before `switch` the model changes."""

    prompts: int
    compactions: int
    kills: tuple[int, int]
    switch: int
    window: int = 12_000
    smaller: int = 9_000

    def says(self, asked):
        """Read the part that is asked for, then review it; summaries are written as they are asked for."""
        newest = asked.messages[-1]
        text = newest["content"] if isinstance(newest.get("content"), str) else ""
        number = max(map(int, re.findall(r"part_(\d+)\.py", json.dumps(asked.messages))), default=0)
        if newest["role"] == "tool":
            review = (
                f"Part {number:03} counts from {number}, and checks its limit once. " + "It is sound. " * 30
            )
            return Answer(text=review, wait=60.0 if number == self.kills[1] else 0.0)
        if found := re.match(r"Prompt \d+: review part_(\d+)", text):
            number = int(found[1])
            if number == self.kills[0]:
                return call("bash", command=f"sleep 60; cat part_{number:03}.py")
            return call("read", path=f"part_{number:03}.py")
        summary = SUMMARY.format(rules="\n- ".join(RULES), number=number)
        return f"{summary}\n\n{TURN}" if "## Turn in Progress" in text else summary


class Client:
    """A client that is told what happens by a program that is killed and resumed, and keeps all of it."""

    def __init__(self, folder, *words):
        self.folder = folder
        self.words = words
        self.seen = []
        self.begin()

    def begin(self, *more):
        self.rpc = Rpc(self.folder, *self.words, *more)
        self.session = self.rpc.session

    def kill(self):
        self.rpc.kill()
        self.seen += self.rpc.seen
        self.begin("--resume", self.session)

    def close(self):
        code, error = self.rpc.close()
        self.seen += self.rpc.seen
        assert (code, error) == (0, "")

    def named(self, kind):
        return [one for one in self.seen if one["type"] == kind]


def prompt_of(number):
    return f"Prompt {number}: review part_{number:03}.py.{' ' + ' '.join(RULES) if number == 0 else ''}"


def work_through(day, client, small):
    """Have the whole day; returns the figures at its end."""
    for number in range(day.prompts):
        if number == day.switch:
            told = client.rpc.ask(type="command", line=f"/model {small} {day.smaller}")
            assert f"window {day.smaller:,}" in told["text"]
            client.words = ("--model", small, "--window", str(day.smaller), *client.words[4:])
        if number in day.kills:
            client.rpc.send(type="prompt", message=prompt_of(number))
            client.rpc.wait("call" if number == day.kills[0] else "result")
            if number == day.kills[1]:
                client.rpc.wait("message", roles=["tool"])
            assert client.rpc.ask(type="undo") == AT_WORK
            client.kill()
            continue
        ended = client.rpc.prompt(prompt_of(number))
        assert (ended["how"], ended["detail"]) == ("done", "")
        assert ended["text"].startswith(f"Part {number:03} ")
        if number == day.prompts // 3:
            assert client.rpc.ask(type="compact", instructions="the limits")["folded"]
            assert client.rpc.ask(type="undo")["entry"]
            assert client.rpc.ask(type="redo")["entry"]
    return client.rpc.ask(type="stats")


def said_in(exported):
    """The entries of an export that are messages, in order: id, role, and text or the texts of results."""
    for line in exported.splitlines():
        entry = json.loads(line)
        if entry.get("type") == "said":
            parts = [one for part in entry["message"]["parts"] for one in (part, *part.get("content", ()))]
            yield entry["id"], entry["message"]["role"], "".join(part.get("text", "") for part in parts)


def check_nothing_is_lost(day, client, folder):
    """Every prompt, reply and result of the events stands in the exported history: once, in order."""
    exported = foldline(folder, "export", client.session)
    assert exported.returncode == 0, exported.stderr
    said = list(said_in(exported.stdout))
    prompts, replies, results = map(client.named, ("prompt", "reply", "result"))
    assert [one["text"] for one in prompts] == [prompt_of(number) for number in range(day.prompts)]
    in_order = [one for one in client.seen if one["type"] in ("prompt", "reply")]
    stored = [(entry, text) for entry, role, text in said if role != "tool"]
    assert stored == [(one["entry"], one["text"]) for one in in_order]
    assert len(replies) == 2 * day.prompts - len(day.kills)  # of a killed turn the call alone
    answered = [text for _, role, text in said if role == "tool"]
    assert answered.count(UNANSWERED) == 1
    answered.remove(UNANSWERED)
    assert answered == [one["text"] for one in results]


def check_figures(day, client, stats):
    """Compactions, tokens and the price that the events add up to are those that are reported."""
    replies, boundaries = client.named("reply"), client.named("compaction")
    summaries = [one for one in boundaries if one["kind"] == "summary"]
    assert stats["summaryCount"] == len(summaries) >= day.compactions
    assert stats["contextTokens"] <= stats["usableTokens"] <= stats["window"] == day.smaller
    for name in ("input", "cache_read", "output"):
        assert stats["usage"][name] == sum(one["usage"].get(name, 0) for one in replies)
    price = sum(one["usd"] for one in replies) + sum(one["receipt"].get("price", 0) for one in boundaries)
    assert stats["usd"] == pytest.approx(price, abs=1e-5)
    assert {one["model"] for one in replies} == {"scripted", "small"}


def check_day(day, tmp_path):
    home = tmp_path / "home/.foldline"
    work = tmp_path / "work"
    home.mkdir(parents=True)
    work.mkdir()
    (home / "settings.toml").write_text(SETTINGS)
    for number in range(day.prompts):
        lines = (f"limit_{number}_{line} = {line} * size_{number}" for line in range(40))
        (work / f"part_{number:03}.py").write_text("\n".join(lines))
    with (
        served(Scripted(day.says, window=day.window, keep=1)) as (_, name),
        served(Scripted(day.says, window=day.smaller, keep=1)) as (_, other),
    ):
        client = Client(tmp_path, "--model", name, "--window", str(day.window), "--allow", "bash")
        stats = work_through(day, client, other.replace("scripted", "small"))
        client.close()
    check_nothing_is_lost(day, client, tmp_path)
    check_figures(day, client, stats)
    verified = foldline(tmp_path, "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    view = foldline(tmp_path, "export", client.session, "--view", "--json").stdout
    assert all(rule in view for rule in RULES)
    assert [one["error"] for one in client.named("error")] == [AT_WORK] * len(day.kills)


def test_a_day_in_short(tmp_path):
    day = Day(prompts=24, compactions=5, kills=(6, 14), switch=17, window=8_000, smaller=7_000)
    check_day(day, tmp_path)


@pytest.mark.soak
def test_a_long_day(tmp_path):
    check_day(Day(prompts=300, compactions=40, kills=(83, 171), switch=220), tmp_path)
