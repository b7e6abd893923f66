from __future__ import annotations

from pathlib import Path

import pytest

from foldline.config import Settings, own_stamp, own_tokens, settings
from foldline.core.decide.presets import resolve
from foldline.core.measure.window import Window
from foldline.errors import InputError, PolicyError


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return tmp_path / "here"


def put(folder: Path, text: str) -> Path:
    file = folder / ".foldline" / "settings.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def read(home: Path, here: Path, **environment: str) -> Settings:
    return settings(home=home, folder=here, environment=environment)


def test_without_any_file_the_defaults_stand(home, here):
    assert read(home, here) == Settings()
    assert Settings().policy == "foldline"


def test_each_source_goes_before_the_one_before_it(home, here):
    put(home, 'policy = "pi"\nwindow = 1000\nstore = "sqlite:///home.db"\nmodel = "openai:gpt-5.2"\n')
    put(here, 'policy = "codex"\nwindow = 2000\n')
    known = read(home, here, FOLDLINE_POLICY="amp", FOLDLINE_STORE="")
    assert (known.policy, known.window) == ("amp", 2000)
    assert (known.store, known.model) == ("sqlite:///home.db", "openai:gpt-5.2")


def test_the_environment_gives_text_that_is_read_as_what_it_means(home, here):
    assert read(home, here, FOLDLINE_WINDOW="30000").window == 30_000
    with pytest.raises(InputError, match="FOLDLINE_WINDOW"):
        read(home, here, FOLDLINE_WINDOW="many")
    assert read(home, here, FOLDLINE_UNKNOWN="x") == Settings()


def test_tables_of_both_files_are_merged(home, here):
    put(home, '[policies.a]\nbase = "pi"\n[policies.b]\nbase = "pi"\n')
    put(here, '[policies.b]\nbase = "codex"\n[models."openai:mine"]\ncontext = 64_000\n')
    known = read(home, here)
    policies = known.user_policies()
    assert set(policies) == {"a", "b"}
    assert policies["b"].quote_user_tokens == 20_000  # codex's, not pi's
    assert known.catalogue().look_up("openai:mine").window.context == 64_000


def test_a_home_that_is_also_here_is_read_once(home):
    put(home, '[policies.a]\nbase = "pi"\n')
    assert set(read(home, home).user_policies()) == {"a"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("policy = ", "Invalid value"),
        ("window = 'many'", "window"),
        ("window = 0", "window"),
        ("window = -5", "window"),
        ("colour = 'red'", "colour"),
        ("policies = 3", "policies"),
        ("[policies]\na = 3", "policies"),
        ("[models]\na = 3", "models"),
    ],
)
def test_a_mistake_names_the_file_and_what_is_wrong(home, here, text, why):
    file = put(here, text)
    with pytest.raises(InputError) as caught:
        read(home, here)
    assert str(file) in str(caught.value)
    assert why in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_file_that_cannot_be_read_is_named(home, here):
    file = put(home, "")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="cannot be read"):
        read(home, here)
    file.unlink()
    file.mkdir()
    with pytest.raises(InputError, match=r"settings\.toml: cannot be read"):
        read(home, here)


def test_a_policy_with_a_mistake_is_named_when_it_is_wanted(home, here):
    put(home, "[policies.mine]\nkeeep = 3\n")
    with pytest.raises(PolicyError, match="mine"):
        read(home, here).user_policies()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[models."gpt-9"]\ncontext = 0', "models.gpt-9"),
        ('[models."gpt-9"]\nprice = { input = 3 }', "models.gpt-9"),
        ("[policies.mine]\nmin_messages = -1", "[policies.mine] min_messages"),
        ('[policies.mine]\nbase = "pie"', "[policies.mine] base"),
        ('[compaction]\nkeep = "many"', "[compaction] keep"),
    ],
)
@pytest.mark.parametrize("place", ["home", "here"])
def test_a_table_with_a_mistake_is_named_with_its_file(home, here, text, key, place):
    file = put(home if place == "home" else here, text)
    put(here if place == "home" else home, '[policies.other]\nbase = "pi"')
    with pytest.raises(PolicyError) as caught:
        read(home, here)
    assert str(caught.value).startswith(f"{file}: {key}")


def test_a_table_may_stand_on_the_one_of_the_other_file(home, here):
    put(home, '[policies.a]\nbase = "b"')
    put(here, '[policies.b]\nbase = "pi"\n[policies.c]\nbase = "a"')
    assert set(read(home, here).user_policies()) == {"a", "b", "c"}


@pytest.mark.parametrize(("key", "value"), [("policy", "pie"), ("model", "opnai:gpt-5.2")])
def test_a_name_that_is_set_wrongly_is_told_with_the_one_who_set_it(tmp_path, monkeypatch, key, value):
    def ask(*given):
        known = settings(home=tmp_path, folder=tmp_path)
        return known.find_policy(*given) if key == "policy" else known.named_model(*(given or [None]))

    variable = f"FOLDLINE_{key.upper()}"
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match=f"^{variable}: .*{value}"):
        ask()
    with pytest.raises(InputError, match=r"^(?!FOLDLINE)"):
        ask(value)
    monkeypatch.delenv(variable)
    put(tmp_path, f'{key} = "{value}"')
    with pytest.raises(InputError, match=rf"^{key} in settings\.toml: .*{value}"):
        ask()


def no_home():
    raise RuntimeError("Could not determine home directory.")


def test_without_a_home_or_a_folder_to_work_in_the_defaults_stand(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    monkeypatch.setattr(Path, "home", no_home)
    assert settings(environment={}) == Settings()
    assert own_tokens() == {}
    assert own_stamp() == ()


def test_what_is_asked_of_every_summary_is_a_setting_over_any_policy(home, here):
    put(
        home,
        '[compaction]\ninstructions = "Quote SQL."\n[policies.mine]\nsummary_instructions = "Quote C."\n',
    )
    known = read(home, here)
    assert known.find_policy("pi").summary_instructions == "Quote SQL."
    assert known.user_policies()["mine"].summary_instructions == "Quote C."


def test_the_compaction_settings_hold_over_what_a_policy_sets_for_a_model(home, here):
    put(
        home,
        "[compaction]\nkeep = 5_000\nreserved_output = 50_000\n"
        '[policies.mine.per_model."claude-"]\nkeep = 9_000\nhard = "90%"\nmin_gain = 7\nenabled = true\n',
    )
    known = read(home, here, FOLDLINE_DISABLE_AUTOCOMPACT="1")
    window = Window(context=200_000, output=8_000)
    mine = resolve(known.find_policy("mine"), "anthropic:claude-sonnet-4-5", window)
    assert (mine.keep.amount.tokens, mine.hard.less, mine.min_gain.tokens) == (5_000, 50_000, 7)
    assert not mine.enabled
    codex = resolve(known.find_policy("codex"), "openai:o3", window)  # its `limits` say 180,000
    assert codex.hard.less == 50_000


def test_the_settings_of_the_documentation_are_understood(home, here):
    page = (Path(__file__).parents[1] / "docs" / "cli.md").read_text(encoding="utf-8")
    put(home, page.split("```toml\n")[1].split("```")[0])
    known = read(home, here)
    assert (known.policy, known.window) == ("mine", 200_000)
    assert known.user_policies()["mine"].keep.amount.tokens == 30_000
    assert known.catalogue().look_up("openai:my-finetune").window.context == 64_000


@pytest.mark.parametrize(
    "text",
    [
        "window = " + "1" * 5_000,
        "policy = " + "[" * 100_000,
        "policy = " + "[" * 20_000,
        ".".join(["a"] * 40_000) + " = 1",
    ],
    ids=["digits", "large", "nested", "dotted"],
)
def test_the_file_of_a_folder_that_no_reader_can_take_is_refused_by_name(home, here, text):
    file = put(here, text)
    with pytest.raises(InputError) as caught:
        read(home, here)
    assert str(file) in str(caught.value)


def test_a_long_chain_of_bases_is_refused(home, here):
    put(here, "\n".join(f'[policies.p{i}]\nbase = "p{i + 1}"' for i in range(1_000)))
    with pytest.raises(PolicyError, match="at most 50 policies"):
        read(home, here).find_policy("p0")


def test_a_byte_order_mark_is_no_part_of_the_settings(home, here):
    put(home, '\ufeffpolicy = "pi"')
    assert read(home, here).policy == "pi"


def test_a_switch_that_is_off_switches_nothing_off(home, here):
    assert read(home, here, FOLDLINE_DISABLE_AUTOCOMPACT="off").find_policy().enabled is not False
