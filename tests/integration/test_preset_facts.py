"""Under every preset code puts beside a model's summary what it leaves out."""

from __future__ import annotations

import json

import pytest
from tests.support.live import prompt, session_on

from foldline.core.checkpoint.prompts import headings
from foldline.core.checkpoint.request import SummaryReply
from foldline.core.decide.presets import PRESETS
from foldline.core.measure.window import Window
from foldline.stores import MemoryStore

WINDOW = Window(context=60_000, output=4_000)
FILLER = "parsers lexers scanners readers printers loaders writers tokens grammars trees nodes edges".split()


class SaysLittle:
    """A model whose summary has every heading, and nothing of the session."""

    name = "model:vague"

    async def summarize(self, request):
        rows = [
            f"## {heading}\nSome thought went into the {FILLER[place % len(FILLER)]}, as was meant."
            for place, heading in enumerate(headings(request.family, request.kind))
        ]
        return SummaryReply("\n\n".join(rows), self.name)


def call(number, name, **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def result(number, text):
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


@pytest.mark.parametrize("name", PRESETS)
async def test_files_rules_and_the_users_words_survive_a_vague_summary(name):
    session = session_on(MemoryStore(), SaysLittle(), policy=name, window=WINDOW)
    await session.append(
        {"role": "user", "content": "Mend the parser. Never push to main."},
        call(1, "read", path="/srv/app/lexer.py"),
        result(1, "def lex(): pass\n" * 60),
        call(2, "write", path="/srv/app/grammar.py", content="x = 1\n" * 50),
        result(2, "written"),
    )
    for number in range(30):
        await session.append(prompt(number, 40), {"role": "assistant", "content": "It is done. " * 300})
    receipt = await session.compact()
    assert receipt.summarizer == "model:vague"
    shown = "\n".join(str(message["content"]) for message in await session.context())
    read, changed = shown.split("<read-files>")[1].split("<modified-files>")
    assert "lexer.py" in read
    assert "grammar.py" in changed
    assert "- Never push to main." in shown
    assert "Mend the parser. Never push to main." in shown
