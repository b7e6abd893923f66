from __future__ import annotations

import pytest

from foldline.catalogue import DEFAULT_WINDOW, Catalogue, learn, learned
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.window import Window


def test_a_learnt_window_stands_above_the_catalogue():
    for name in ("openai:unheard-of", "anthropic:claude-sonnet-4-5"):
        before = Catalogue().look_up(name)
        found = learned(before, 8_192)
        assert (found.name, found.price) == (name, before.price)
        assert (found.known, found.found, found.warning) == (True, "learned", None)
        assert found.window == Window(context=8_192, output=4_096)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("limit", [8_192, 1_000_000])
def test_a_limit_that_is_named_is_believed(known, limit):
    window = Window(context=200_000, input=180_000, output=64_000)
    learnt = learn(window, Overflow(limit=limit, asked=limit + 1), known=known)
    assert learnt is not None
    assert (learnt.context, learnt.input_limit) == (limit, limit)
    assert learnt.output <= limit // 2


def test_a_limit_that_is_known_already_teaches_nothing():
    assert learn(Window(context=8_192), Overflow(limit=8_192, asked=9_000), known=True) is None


def test_without_a_limit_an_unknown_model_is_tried_with_less_and_never_without_end():
    window, steps = DEFAULT_WINDOW, []
    sent = window.context
    while (learnt := learn(window, Overflow(), known=False, sent=sent)) is not None:
        assert learnt.context < window.context
        steps.append(learnt.context)
        window, sent = learnt, learnt.context
    assert steps[0] == 140_000
    assert steps[-1] == 2_048
    assert len(steps) < 15


def test_without_a_limit_a_known_model_keeps_its_window():
    assert learn(Window(context=200_000), Overflow(), known=True, sent=190_000) is None
    assert learn(DEFAULT_WINDOW, Overflow(), known=False) is None
