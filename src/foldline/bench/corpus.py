"""Synthetic sessions of coding agents, deterministic by seed, clean or dirty, and rules to plant in them.

A dirty log has faults of real logs that providers refuse: unfinished calls, results that are late, duplicate
or without a call, reused ids. The rules are of the five kinds of COMPINT (what to do, what to report, how to
work, what to prefer, how to write), in our own words.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

Messages = list[dict[str, Any]]

VOCABULARY = (
    "the parser reads every line of config and keeps what it cannot name so that a later pass may try again"
    " rename users members table migration index query cache retry timeout session token window ledger"
    " summary handler request response client server thread lock queue worker batch stream buffer schema"
    " column row"
)
WORDS = VOCABULARY.split()
FOLDERS = ("src/app", "src/app/api", "src/core", "tests/unit", "docs")
ASKS = (
    "Please add {0} to {1}, and keep the public names as they are.",
    "The test in {1} fails since {0} changed. Find out why.",
    "Never write to {1} without asking me first. Then look at {0}.",
    "Why does {0} take so long? Measure it before you change {1}.",
)
RULES = (
    "Don't restart any service yourself, tell me which one and I do it.",
    "Before you delete a file, name it and wait for my yes.",
    "Ask me before you install a package.",
    "Never write the customer's name into a log, a commit or a test.",
    "Don't open anything below vault/private.",
    "Keep the licence key out of every reply.",
    "Always run the linter before you say that something is done.",
    "When you have changed a table, show its new columns in your reply.",
    "After each step, say in one line what comes next.",
    "When there are two libraries for a job, take the one that we already have.",
    "When you give sizes, use bytes, not kilobytes.",
    "Prefer plain functions to new classes.",
    "Write all dates as year, month, day.",
    'End each reply with the words "over to you".',
    "Reply in complete sentences, no lists.",
)


class Talk:
    """Writes native Chat Completions messages of one session, turn by turn.

    `repeated` is the share of paths that occurred before.
    """

    def __init__(self, seed: int = 7, repeated: float = 0.0) -> None:
        self._random = random.Random(seed)
        self._calls = 0
        self._repeated = repeated
        self._paths: list[str] = []

    def messages(self, count: int) -> Messages:
        """Return `count` messages; the last one ends a turn."""
        messages: Messages = []
        while len(messages) < count:
            messages += self.turn()
        messages = messages[:count]
        while messages and (messages[-1]["role"] != "assistant" or "tool_calls" in messages[-1]):
            messages.pop()
        messages += [self.prompt(), self.reply()][: count - len(messages)]
        return messages

    def turn(self) -> Iterator[dict[str, Any]]:
        """Yield a prompt, up to eight calls with their results, and a reply."""
        yield self.prompt()
        for _ in range(self._random.randint(1, 8)):
            yield from self.step()
        yield self.reply()

    def prompt(self) -> dict[str, Any]:
        """Return a user's message."""
        ask = self._random.choice(ASKS).format(self.words(2), self.path())
        return {"role": "user", "content": f"{ask} {self.words(self._random.randint(5, 60))}."}

    def reply(self) -> dict[str, Any]:
        """Return a reply without calls."""
        sentences = ". ".join(self.words(12).capitalize() for _ in range(self._random.randint(2, 8)))
        return {"role": "assistant", "content": f"{sentences}. The change is in `{self.path()}`."}

    def step(self) -> tuple[dict[str, Any], ...]:
        """Return one call and its result: a file read, an edit, or a command."""
        call, result = self.call()
        return self.calling(call), result

    def calling(self, *calls: dict[str, Any]) -> dict[str, Any]:
        """Return a message with calls."""
        return {"role": "assistant", "content": self.words(14), "tool_calls": list(calls)}

    def call(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a call, and the message with its result."""
        self._calls += 1
        name, arguments, output = self._random.choice((self._read, self._edit, self._command))()
        call_id = f"call_{self._calls}"
        function = {"name": name, "arguments": arguments}
        call = {"id": call_id, "type": "function", "function": function}
        return call, {"role": "tool", "tool_call_id": call_id, "content": output}

    def _read(self) -> tuple[str, str, str]:
        lines = "\n".join(f"    {self.code()}" for _ in range(self._random.randint(10, 80)))
        return "read_file", f'{{"path": "{self.path()}"}}', f"def {self.word()}():\n{lines}\n"

    def _edit(self) -> tuple[str, str, str]:
        old, new = self.code(), self.code()
        return "edit_file", f'{{"path": "{self.path()}", "old": "{old}", "new": "{new}"}}', "1 replacement"

    def _command(self) -> tuple[str, str, str]:
        path, failed = self.path(), self._random.random() < 0.3
        passed = "\n".join(
            f"{path}::test_{self.word()}_{n} PASSED" for n in range(self._random.randint(3, 40))
        )
        end = (
            f"E   ValueError: {self.words(5)}\n1 failed in 2.31s\nexit code 1"
            if failed
            else "all passed in 2.10s"
        )
        return "bash", f'{{"command": "pytest -q {path}"}}', f"{passed}\n{end}"

    def code(self) -> str:
        """Return a line that looks like code."""
        return f"{self.word()}_{self.word()} = {self.word()}({self.word()}, {self._random.randint(0, 9_999)})"

    def words(self, count: int) -> str:
        """Return `count` words."""
        return " ".join(self._random.choices(WORDS, k=count))

    def word(self) -> str:
        """Return one word."""
        return self._random.choice(WORDS)

    def path(self) -> str:
        """Return the path of a file; some occur repeatedly."""
        if self._repeated and self._paths and self._random.random() < self._repeated:
            return self._random.choice(self._paths)
        path = f"{self._random.choice(FOLDERS)}/{self.word()}_{self._random.randint(0, 40)}.py"
        if self._repeated:
            self._paths.append(path)
        return path


class DirtyTalk(Talk):
    """Writes sessions with faults that providers refuse."""

    def step(self) -> tuple[dict[str, Any], ...]:
        """Return one call and its result, or a faulty step."""
        step = self._random.choices(
            (super().step, self._several, self._late, self._stopped, self._same_id, self._twice, self._stray),
            (86, 10, 1, 1, 1, 0.5, 0.5),
        )[0]
        return step()

    def _several(self) -> tuple[dict[str, Any], ...]:
        """Return parallel calls, and their results in another order."""
        pairs = [self.call() for _ in range(self._random.randint(2, 4))]
        results = [result for _, result in pairs]
        self._random.shuffle(results)
        return self.calling(*(call for call, _ in pairs)), *results

    def _late(self) -> tuple[dict[str, Any], ...]:
        """Return a call whose result comes only after another prompt and reply."""
        call, result = self.call()
        return self.calling(call), self.prompt(), self.reply(), result, self.prompt()

    def _stopped(self) -> tuple[dict[str, Any], ...]:
        """Return a call that the user interrupted: it has no result."""
        call, _ = self.call()
        return self.calling(call), {"role": "user", "content": f"Stop. {self.words(8)}."}

    def _same_id(self) -> tuple[dict[str, Any], ...]:
        """Return a call with the id of an earlier one, as from models that number the calls of each turn."""
        self._calls = max(0, self._calls - self._random.randint(1, 20))
        return super().step()

    def _twice(self) -> tuple[dict[str, Any], ...]:
        """Return a call with its result twice, as after a retry."""
        call, result = self.call()
        return self.calling(call), result, dict(result)

    def _stray(self) -> tuple[dict[str, Any], ...]:
        """Return a call, its result, and a result without a call."""
        _, result = self.call()
        return *super().step(), {**result, "tool_call_id": f"lost_{self._calls}"}


def context(tokens: int, seed: int) -> Messages:
    """Return a clean session of about `tokens` (characters / 4), in which paths occur repeatedly."""
    talk, messages, size = Talk(seed, repeated=0.5), list[dict[str, Any]](), 0
    while size < tokens:
        turn = list(talk.turn())
        messages += turn
        size += sum(len(str(message)) for message in turn) // 4
    return messages


def planted(messages: Messages, rules: Sequence[str], place: tuple[float, float]) -> Messages:
    """Return a session with each rule at the beginning of a user message.

    `place` is the range of user messages, as two shares of all of them, over which the rules are spread.
    """
    prompts = [index for index, message in enumerate(messages) if message["role"] == "user"]
    first, last = (round(share * (len(prompts) - 1)) for share in place)
    result = [dict(message) for message in messages]
    for number, rule in enumerate(rules):
        prompt = result[prompts[first + (last - first) * number // max(1, len(rules) - 1)]]
        prompt["content"] = f"{rule}\n{prompt['content']}"
    return result
