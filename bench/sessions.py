"""Made-up sessions for the benches: the same for the same seed, shaped like those of coding agents."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from typing import Any

from foldline.core.log.entries import Said
from foldline.core.log.log import said
from foldline.core.measure.tokens import message_tokens
from foldline.dialects import get

VOCABULARY = (
    "the parser reads every line of config and keeps what it cannot name so that a later pass may try again rename"
    " users members table migration index query cache retry timeout session token window ledger summary handler"
    " request response client server thread lock queue worker batch stream buffer schema column row"
)
WORDS = VOCABULARY.split()
FOLDERS = ("src/app", "src/app/api", "src/core", "tests/unit", "docs")
ASKS = (
    "Please add {0} to {1}, and keep the public names as they are.",
    "The test in {1} fails since {0} changed. Find out why.",
    "Never write to {1} without asking me first. Then look at {0}.",
    "Why does {0} take so long? Measure it before you change {1}.",
)


def prompt(number: int) -> dict[str, Any]:
    """Return a short prompt that no other number gives."""
    return {"role": "user", "content": f"turn {number} " + "words of a message " * 10}


def reply(number: int) -> dict[str, Any]:
    """Return a short reply that no other number gives."""
    return {"role": "assistant", "content": f"answer {number} " + "the reply says so " * 20}


def entries_of(natives: Iterable[dict[str, Any]], before: Said | None = None) -> list[Said]:
    """Return the entries of Chat Completions messages, chained behind `before`."""
    dialect = get("openai-chat")
    found: list[Said] = []
    parent, key = (before.id, before.said_key) if before else (None, "")
    for native in natives:
        message = dialect.decode(native)
        entry = said(message, parent=parent, said_key=key, tokens=message_tokens(message))
        found.append(entry)
        parent, key = entry.id, entry.said_key
    return found


class Talk:
    """Writes native Chat Completions messages of one session, turn by turn."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._calls = 0

    def messages(self, count: int) -> list[dict[str, Any]]:
        """Return so many messages; the last one ends a turn."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            found += self.turn()
        found = found[:count]
        while found and (found[-1]["role"] != "assistant" or "tool_calls" in found[-1]):
            found.pop()
        found += [self.prompt(), self.reply()][: count - len(found)]
        return found

    def turn(self) -> Iterator[dict[str, Any]]:
        """Yield a prompt, up to eight calls with their results, and a reply."""
        yield self.prompt()
        for _ in range(self._random.randint(1, 8)):
            yield from self.step()
        yield self.reply()

    def prompt(self) -> dict[str, Any]:
        """Return what a user asks for."""
        ask = self._random.choice(ASKS).format(self.words(2), self.path())
        return {"role": "user", "content": f"{ask} {self.words(self._random.randint(5, 60))}."}

    def reply(self) -> dict[str, Any]:
        """Return a reply without calls."""
        said = ". ".join(self.words(12).capitalize() for _ in range(self._random.randint(2, 8)))
        return {"role": "assistant", "content": f"{said}. The change is in `{self.path()}`."}

    def step(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return one call and its result: a file read, an edit, or a command."""
        self._calls += 1
        name, arguments, output = self._random.choice((self._read, self._edit, self._command))()
        call_id = f"call_{self._calls}"
        function = {"name": name, "arguments": arguments}
        call = {"id": call_id, "type": "function", "function": function}
        said = {"role": "assistant", "content": self.words(14), "tool_calls": [call]}
        return said, {"role": "tool", "tool_call_id": call_id, "content": output}

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
        """Return so many words."""
        return " ".join(self._random.choices(WORDS, k=count))

    def word(self) -> str:
        """Return one word."""
        return self._random.choice(WORDS)

    def path(self) -> str:
        """Return the path of a file; some come again and again."""
        return f"{self._random.choice(FOLDERS)}/{self.word()}_{self._random.randint(0, 40)}.py"
