"""Two sentences on a session: by a model where its reply is such a thing, else by code."""

from __future__ import annotations

import pytest
from tests.support.talk import assistant, call, entries, tool, user

from foldline.core.checkpoint.request import FAILED, SummaryReply
from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.handoff import display
from foldline.core.decide.ask import FoldRequest
from foldline.core.decide.presets import preset
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.core.view import ViewState

TALK = (
    user("Port the parser to Rust. " + "It reads the settings of every service, line by line. " * 12),
    assistant("I begin with the lexer.", call("c1", path="src/lexer.rs")),
    tool("c1", "fn main() {}\n" * 40),
    assistant("The lexer is ported. Next I will port the grammar."),
)
CODE = "Port the parser to Rust"


def shown(*replies: SummaryReply | None) -> str:
    state = ViewState(entries(*TALK, tokens=200), counter=OFFLINE)
    ask = FoldRequest(policy=preset("foldline"), window=Window(context=32_000), reason="manual")
    steps = display(CompactionInput(state, ask, OFFLINE))
    request = next(steps)
    assert request.kind == "display"
    assert [entry.message for entry in request.folded] == list(TALK)
    with pytest.raises(StopIteration) as end:
        steps.send(*replies)
    return end.value.value


def test_a_models_two_sentences_are_taken_on_one_line():
    reply = SummaryReply("The lexer was ported to Rust.\nThe grammar is open.", "model:m")
    assert shown(reply) == "The lexer was ported to Rust. The grammar is open."


@pytest.mark.parametrize(
    "reply",
    [None, SummaryReply("", "m", FAILED), SummaryReply("", "m"), SummaryReply("x " * 4_000, "m", "length")],
)
def test_code_writes_them_where_no_model_did(reply):
    assert shown(reply).startswith(CODE)
    assert "Open: " in shown(reply)


def test_with_nothing_said_there_is_nothing_to_tell():
    ask = FoldRequest(policy=preset("foldline"), window=Window(context=32_000), reason="manual")
    steps = display(CompactionInput(ViewState(counter=OFFLINE), ask, OFFLINE))
    next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send(None)
    assert end.value.value == "Nothing was asked yet. Open: nothing that is known."
