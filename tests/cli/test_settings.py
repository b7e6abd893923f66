"""Settings reach the commands, and flags go before them."""

from __future__ import annotations

import pytest


@pytest.fixture
def settings(away_from_home, monkeypatch):
    def put(text):
        folder = away_from_home / ".foldline"
        folder.mkdir(exist_ok=True)
        (folder / "settings.toml").write_text(text)

    return put


def folded(foldline, file, *flags):
    receipt = foldline("compact", file, *flags, "--json").json["receipt"]
    return receipt["policy"], receipt["tokens_after"]


def test_flags_go_before_the_environment_and_that_before_the_files(foldline, file, settings, monkeypatch):
    settings('policy = "mine"\nwindow = 3000\n[policies.mine]\nbase = "pi"\n')
    policy, size = folded(foldline, file)
    assert policy == "mine"
    assert size <= 3000
    monkeypatch.setenv("FOLDLINE_POLICY", "codex")
    assert folded(foldline, file)[0] == "codex"
    assert folded(foldline, file, "--policy", "amp")[0] == "amp"
    assert folded(foldline, file, "--window", 2000)[1] <= 2000


def test_own_policies_and_models_are_shown_and_used(foldline, file, settings, tmp_path):
    settings('model = "openai:mine"\n[policies.mine]\nbase = "pi"\n[models."openai:mine"]\ncontext = 2500\n')
    assert folded(foldline, file, "--policy", "mine")[1] <= 2500
    rows = foldline("policies")
    assert "window 2,500" in rows.out
    assert "\nmine " in rows.out
    extra = tmp_path / "extra.toml"
    extra.write_text('[policies.mine]\nbase = "codex"\n[policies.other]\nbase = "amp"\n')
    shown = foldline("policies", "mine", "other", "--policies", extra, "--json").json
    assert foldline("policies", extra, "--json").json == shown
    assert list(foldline("policies", f"{extra}:other", "pi", "--json").json) == ["other", "pi"]
    assert shown["mine"]["quote_user_tokens"] == 20_000
    assert folded(foldline, file, "--policies", extra, "--policy", "other", "--target", 1500)[0] == "other"


def test_a_mistake_in_the_settings_is_told_by_every_command(foldline, file, settings):
    settings("window = 'many'")
    for args in (["compact", file], ["inspect", file], ["policies"], ["sessions"], ["import", file]):
        done = foldline(*args)
        assert done.code == 2, args
        assert "settings.toml" in done.err
    assert foldline("policies", "--help").code == 0


@pytest.mark.parametrize(
    "text", ['[models.x]\ncontext = "a"', '[policies.x]\nbase = "pie"', "[compaction]\nkeeep = 3"]
)
def test_a_mistake_in_a_table_stops_only_the_commands_that_use_it(foldline, file, settings, caplog, text):
    settings(text)
    for args in (["import", file, "--id", "work"], ["sessions"], ["show", "work"], ["verify"]):
        result = foldline(*args)
        assert result.code == 0, args
    [warning] = caplog.messages  # in one process it is logged once
    assert warning.startswith("ignoring a mistake in the settings: ")
    assert "settings.toml: " in warning
    for args in (["compact", file], ["policies"], ["inspect", file], ["undo", "work"]):
        result = foldline(*args)
        assert result.code == 2, args
        assert "settings.toml: " in result.err


def test_the_store_of_the_settings_is_used(foldline, file, settings, tmp_path):
    settings(f'store = "sqlite:///{tmp_path}/team.db"')
    foldline("import", file, "--id", "work")
    assert (tmp_path / "team.db").exists()
    assert foldline("sessions", "--json").json[0]["id"] == "work"
    assert foldline("sessions", "--json", "--store", f"sqlite:///{tmp_path}/other.db").json == []


def test_what_compaction_sets_holds_over_any_policy(foldline, file, settings, tmp_path):
    settings("[compaction]\nenabled = false\n")
    args = ("--window", 3000, "--policy", "pi")
    (replayed,) = foldline("replay", file, *args, "--no-retention", "--json").json["sessions"][0]["policies"]
    assert replayed["totals"]["compactions"] == 0
    assert "the window is exceeded" in foldline("check", file, *args).out


@pytest.mark.parametrize(
    "words",
    [
        ["compact", "FILE", "--target", 2000],
        ["export", "FILE", "--view", "--target", 2000],
        ["batch", "fold", "FILE", "--target", 2000, "-o", "out"],
        ["replay", "FILE"],
        ["check", "FILE"],
    ],
)
def test_every_command_that_folds_reads_the_table_compaction(foldline, file, settings, words):
    settings('[compaction]\nmodel = "antropic:claude"\n')
    done = foldline(*(file if word == "FILE" else word for word in words))
    assert done.code == 2
    assert "anthropic" in done.err
