from __future__ import annotations

import pytest

from foldline.catalogue import DEFAULT_WINDOW, Catalogue
from foldline.core.measure.overflow import Overflow
from foldline.core.measure.window import Window
from foldline.providers import learn, limits


def test_a_known_model_has_its_window_and_no_warning():
    found = limits("anthropic:claude-sonnet-4-5")
    assert found.model.known
    assert found.model.window.context >= 200_000
    assert found.warning is None


@pytest.mark.parametrize(
    "name", ["openai-compatible:mine@http://127.0.0.1:8080/v1", "openai:unheard-of", None]
)
def test_an_unknown_model_has_a_stated_default_and_a_warning(name):
    found = limits(name)
    assert found.model.window == DEFAULT_WINDOW
    assert "128,000" in (found.warning or "")
    assert "8,192" in (found.warning or "")
    assert (name or "the model") in (found.warning or "")


def test_the_users_own_figures_count():
    found = limits("openai:mine", Catalogue({"openai:mine": {"context": 64_000}}))
    assert (found.model.window.context, found.warning) == (64_000, None)


def test_a_learnt_window_stands_above_the_catalogue():
    for name in ("openai:unheard-of", "anthropic:claude-sonnet-4-5"):
        found = limits(name, learnt={name: 8_192})
        assert found.model.known
        assert found.model.window == Window(context=8_192, output=4_096)
        assert found.warning is None


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
    assert steps[0] == 89_600
    assert steps[-1] == 2_048
    assert len(steps) < 15


def test_without_a_limit_a_known_model_keeps_its_window():
    assert learn(Window(context=200_000), Overflow(), known=True, sent=190_000) is None
    assert learn(DEFAULT_WINDOW, Overflow(), known=False) is None
