import pytest

from foldline.core.decide.ask import FoldRequest
from foldline.core.decide.policy import Policy
from foldline.core.measure.window import Amount, Floor, Window

POLICY = Policy(name="plain", reserve=Amount(tokens=2_000))
WINDOW = Window(context=10_000, output=1_000)


def test_what_is_usable_comes_from_the_policy_and_a_target_replaces_it():
    assert FoldRequest(POLICY, WINDOW, "manual").usable == 8_000
    assert FoldRequest(POLICY, WINDOW, "target", target=300).usable == 300
    assert FoldRequest(POLICY, WINDOW, "target", target=0).usable == 0


@pytest.mark.parametrize(
    ("reason", "automatic"),
    [
        ("threshold", True),
        ("model_switch", True),
        ("manual", False),
        ("overflow", False),
        ("agent", False),
        ("target", False),
    ],
)
def test_only_what_nobody_asked_for_and_nothing_forces_has_to_gain_much(reason, automatic):
    assert FoldRequest(POLICY, WINDOW, reason).optional is automatic


def test_what_is_given_apart_is_the_system_prompt_and_the_tools():
    floor = Floor(system=5, tools=70, pins=900, unanswered=9, checkpoint=9)
    assert FoldRequest(POLICY, WINDOW, "manual", overhead=floor).overhead_tokens == 75
