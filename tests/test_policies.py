import re
from pathlib import Path

import msgspec
import pytest

from foldline.core.decide.policy import Keep, Policy, usable_of
from foldline.core.decide.presets import PRESETS, preset, resolve
from foldline.core.measure.window import Amount, Window
from foldline.errors import InputError, PolicyError
from foldline.policies import changed, load, policy

DOCS = Path(__file__).parent.parent / "docs"
WINDOW = Window(200_000, output=8_192)


def made(table, name="mine"):
    return load({"policies": {name: table}})[name]


def test_an_empty_table_is_foldline_under_another_name():
    assert made({}) == msgspec.structs.replace(preset("foldline"), name="mine", summary="foldline, changed")


def test_fields_change_and_the_rest_is_the_bases():
    mine = made({"base": "pi", "min_messages": 4, "cut_rule": "turn", "check_at": ["append"], "ack": "Yes."})
    assert mine == msgspec.structs.replace(
        preset("pi"),
        name="mine",
        summary="pi, changed",
        min_messages=4,
        cut_rule="turn",
        check_at=("append",),
        ack="Yes.",
    )


@pytest.mark.parametrize(
    ("given", "amount"),
    [
        (30_000, Amount(tokens=30_000)),
        ("30000", Amount(tokens=30_000)),
        ("30,000", Amount(tokens=30_000)),
        ("30_000", Amount(tokens=30_000)),
        ("85%", Amount(fraction=0.85)),
        ("12.5 % of context", Amount(fraction=0.125)),
        ("20% of usable", Amount(fraction=0.2, of="usable")),
        ("output", Amount(output=True)),
        ({"tokens": 5, "fraction": 0.5, "of": "usable"}, Amount(tokens=5, fraction=0.5, of="usable")),
        ({"fraction": 1}, Amount(fraction=1.0)),
    ],
)
def test_amounts_have_short_forms(given, amount):
    assert made({"min_gain": given}).min_gain == amount
    assert made({"hard": given}).hard == amount
    assert made({"keep": given}).keep == Keep(amount=amount)
    assert made({"keep": {"amount": given, "messages": 4}}).keep == Keep(amount=amount, messages=4)


def test_keep_counts_messages_or_keeps_nothing():
    assert made({"keep": {"messages": 10, "message_fraction": 0.3}}).keep == Keep(
        messages=10, message_fraction=0.3
    )
    assert made({"keep": {}}).keep == Keep()
    assert made({"keep": 0}).keep == Keep(amount=Amount(tokens=0))


def test_a_hard_trigger_can_be_what_is_to_be_left_and_then_is_the_reserve():
    for given in ("-30000", "-30,000", -30_000):
        mine = made({"hard": given})
        assert mine.hard.resolve(WINDOW, usable_of(mine, WINDOW)) == 170_000 == usable_of(mine, WINDOW)
    both = made({"hard": "-30000", "reserve": 10_000})
    assert usable_of(both, WINDOW) == 190_000
    assert both.hard.resolve(WINDOW) == 170_000
    soft = made({"soft": "-50000"})
    assert soft.soft.resolve(WINDOW) == 150_000
    assert soft.reserve == preset("foldline").reserve


def test_a_table_can_stand_on_another_one():
    tables = {"b": {"base": "a", "min_messages": 3}, "a": {"base": "coop", "ack": "Right."}}
    found = load({"policies": tables})
    assert list(found) == ["b", "a"]
    assert (found["b"].ack, found["b"].min_messages, found["b"].cut_rule) == (
        "Right.",
        3,
        "user_or_plain_assistant",
    )


def test_a_table_may_change_the_preset_of_its_own_name():
    assert made({"base": "pi", "keep": 5}, name="pi").keep == Keep(amount=Amount(tokens=5))
    assert policy("pi", load({"policies": {"pi": {"base": "pi", "keep": 5}}})).keep.amount.tokens == 5


def test_models_change_fields_in_short_forms():
    mine = made({"per_model": {"claude-": {"keep": "10%", "hard": "-20000"}, "gpt-": {"background": False}}})
    claude = resolve(mine, "anthropic:claude-sonnet-4-5", WINDOW)
    assert claude.keep == Keep(amount=Amount(fraction=0.1))
    assert usable_of(claude, WINDOW) == 180_000
    assert not resolve(mine, "gpt-5", WINDOW).background
    assert resolve(mine, "llama", WINDOW).keep == preset("foldline").keep


def test_every_preset_survives_a_round_trip_through_a_table():
    for name, base in PRESETS.items():
        fields = msgspec.to_builtins(base)
        del fields["name"]
        assert made({"base": name, **fields}) == msgspec.structs.replace(base, name="mine")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"base": "pie"}, r"\[policies.mine\] base = 'pie': must be one of foldline, coop, .*amp"),
        ({"base": 3}, r"base = 3: must be one of"),
        ({"base": "mine"}, r"base = 'mine': a policy cannot be based on itself"),
        (
            {"kep": 3},
            r"\[policies.mine\] kep: no such field; did you mean keep\? The fields are summary, enabled",
        ),
        ({"wholly_unknown": 3}, r"wholly_unknown: no such field; The fields are"),
        ({"cut_rule": "half"}, r"cut_rule = 'half': must be one of turn, user, user_or_plain_assistant, "),
        ({"summary_role": "tool"}, r"summary_role = 'tool': must be one of user, system"),
        ({"check_at": ["turn_start", "noon"]}, r"check_at = 'noon': must be one of turn_start, after_reply"),
        ({"check_at": "append"}, r"check_at = 'append': must be a list of turn_start"),
        ({"min_messages": "ten"}, r"min_messages = 'ten': Expected `int`, got `str`"),
        ({"min_messages": -1}, r"min_messages = -1: must not be negative"),
        ({"limits": {"gpt": -1}}, r"limits = .*: must not be negative"),
        ({"limits": {"gpt": "1k"}}, r"limits = .*: Expected `int`"),
        ({"enabled": "no"}, r"enabled = 'no': Expected `bool`"),
        ({"hard": "lots"}, r"hard = 'lots': must be tokens \(30000\), a share"),
        ({"hard": True}, r"hard = True: must be tokens"),
        ({"hard": "150%"}, r"hard = '150%': .*a fraction is from 0 to 1"),
        ({"hard": {"fraction": -0.5}}, r"a fraction is from 0 to 1"),
        ({"hard": {"token": 5}}, r"hard.token: no such key; the keys are tokens, fraction, output, of, less"),
        ({"hard": {"tokens": "5"}}, r"hard = .*Expected `int \| null`.* - at `\$.tokens`; must be tokens"),
        ({"hard": {"tokens": -5}}, r"tokens must not be negative"),
        ({"hard": {"fraction": 0.5, "of": "output"}}, r"Invalid enum value 'output'"),
        ({"reserve": "-5"}, r"reserve: only soft and hard can be given as the room to leave"),
        ({"keep": -5}, r"keep: only soft and hard can be given as the room to leave"),
        ({"keep": {"amount": "-5"}}, r"keep.amount: only soft and hard can be given as the room to leave"),
        ({"reserve": "5% of usable"}, r"reserve: a reserve is a share of the context"),
        ({"soft": "5% of reserve"}, r"soft: only summary_tokens can be a share of the reserve"),
        ({"keep": "5% of reserve"}, r"keep: only summary_tokens can be a share of the reserve"),
        ({"keep": {"messages": 3, "tokens": 4}}, r"keep.tokens: no such key; the keys are amount, messages"),
        ({"keep": {"messages": "all"}}, r"keep = .*Expected `int"),
        ({"keep": "many"}, r"keep = 'many': must be tokens"),
        ({"per_model": 3}, r"per_model: must be tables by model name"),
        ({"per_model": {"gpt": 3}}, r"per_model.gpt: must be a table of fields"),
        ({"per_model": {"gpt": {"kep": 3}}}, r"per_model.gpt kep: no such field; did you mean keep"),
        ({"per_model": {"gpt": {"limits": {}}}}, r"per_model.gpt.limits: cannot be set for a model"),
        ("pi", r"\[policies.mine\] must be a table"),
    ],
)
def test_mistakes_are_named_with_what_is_allowed(table, message):
    with pytest.raises(PolicyError, match=message):
        made(table)


def test_a_policy_has_no_ledger_to_switch_off():
    """The field did nothing; what code does with every summary is in tests/summarizers/test_grounded.py."""
    with pytest.raises(PolicyError, match=r"\[policies.mine\] ledger: no such field"):
        made({"ledger": False})
    assert "ledger" not in Policy.__struct_fields__


def test_tables_based_on_each_other_are_refused():
    with pytest.raises(PolicyError, match="a policy cannot be based on itself"):
        load({"policies": {"a": {"base": "b"}, "b": {"base": "a"}}})


def test_settings_without_policies_have_none():
    assert load({}) == {}
    with pytest.raises(PolicyError, match="policies must be tables"):
        load({"policies": 3})


def test_a_changed_field_of_the_wrong_kind_is_refused_by_name():
    with pytest.raises(PolicyError, match="--policy keep = 'x': must be tokens"):
        changed(preset("pi"), {"keep": "x"}, where="--policy")
    assert changed(preset("pi"), {"keep": 7}).keep == Keep(amount=Amount(tokens=7))


class TestFiles:
    def write(self, folder, text):
        path = folder / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def test_a_file_gives_its_policies_by_name(self, tmp_path):
        path = self.write(tmp_path, '[policies.a]\nbase = "pi"\n[policies.b]\nkeep = 4\n')
        assert list(load(path)) == ["a", "b"]
        assert policy(f"{path}:b") == load(path)["b"]
        with pytest.raises(PolicyError, match=r"mine.toml has several policies; add one of :a, :b"):
            policy(str(path))
        with pytest.raises(PolicyError, match="no policy 'c'"):
            policy(f"{path}:c")

    def test_a_file_with_one_policy_needs_no_name(self, tmp_path):
        path = self.write(tmp_path, "[policies.only]\nkeep = 4\n")
        assert policy(str(path)).name == "only"

    def test_errors_name_the_file(self, tmp_path):
        path = self.write(tmp_path, '[policies.a]\ncut_rule = "half"\n')
        with pytest.raises(
            PolicyError, match=r"mine\.toml: \[policies\.a\] cut_rule = 'half': must be one of"
        ):
            load(path)

    @pytest.mark.parametrize(
        ("text", "message"),
        [("[policies", "not TOML: "), ("keep = 3\n", r"no \[policies\.NAME\] table")],
    )
    def test_files_that_hold_no_policy(self, tmp_path, text, message):
        with pytest.raises(PolicyError, match=message):
            load(self.write(tmp_path, text))

    @pytest.mark.parametrize(
        "text",
        ["#" * 1_000_001, "a = " + "1" * 5_000, "a = " + "[" * 20_000],
        ids=["large", "digits", "nested"],
    )
    def test_files_that_no_reader_can_take(self, tmp_path, text):
        with pytest.raises(InputError, match=r"mine\.toml"):
            load(self.write(tmp_path, text))

    def test_a_byte_order_mark_is_no_part_of_a_file(self, tmp_path):
        assert list(load(self.write(tmp_path, '\ufeff[policies.a]\nbase = "pi"'))) == ["a"]

    def test_files_that_cannot_be_read(self, tmp_path):
        with pytest.raises(PolicyError, match=r"none\.toml: no such file"):
            policy(str(tmp_path / "none.toml"))
        binary = tmp_path / "binary.toml"
        binary.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(PolicyError, match="cannot be read"):
            load(binary)


def test_names_are_looked_up_among_the_users_own_first():
    own = {"pi": Policy(name="pi"), "mine": Policy(name="mine")}
    assert policy("pi", own) is own["pi"]
    assert policy("mine", own) is own["mine"]
    assert policy("coop", own) is preset("coop")
    with pytest.raises(
        PolicyError, match=r"no policy 'x'; there are foldline, .*mine, or give a \.toml file"
    ):
        policy("x", own)


class TestDocs:
    def example(self):
        text = (DOCS / "presets.md").read_text(encoding="utf-8")
        return re.findall(r"```toml\n(.*?)```", text, re.DOTALL)

    def test_every_example_loads(self, tmp_path):
        examples = self.example()
        assert examples
        for i, text in enumerate(examples):
            path = tmp_path / f"{i}.toml"
            path.write_text(text, encoding="utf-8")
            assert load(path)

    def test_the_first_example_does_what_its_words_say(self, tmp_path):
        path = tmp_path / "policies.toml"
        path.write_text(self.example()[0], encoding="utf-8")
        mine = policy("careful", load(path))
        assert usable_of(mine, WINDOW) == 170_000
        assert mine.keep == Keep(amount=Amount(tokens=30_000))
        assert mine.min_gain == Amount(fraction=0.2, of="usable")
        assert mine.prune_exempt == ("skill", "todo_write")
        opus = resolve(mine, "anthropic:claude-opus-4-5", WINDOW)
        assert opus.keep == Keep(amount=Amount(tokens=50_000))

    def test_every_field_is_explained(self):
        text = (DOCS / "presets.md").read_text(encoding="utf-8")
        for field in Policy.__struct_fields__:
            assert f"`{field}`" in text, field

    def test_the_table_of_presets_is_what_the_presets_are(self):
        text = (DOCS / "presets.md").read_text(encoding="utf-8")
        for name, each in PRESETS.items():
            row = f"| `{name}` | {each.summary} |" if ":" not in name else f"`{name}`"
            assert row in text, f"docs/presets.md, row of {name}; it should be\n{row}"
