"""What Foldline writes for itself is its owner's alone, and no name that others can guess leads it elsewhere."""

from __future__ import annotations

import os
import stat

import pytest

from foldline.agent.commands.boundaries import save
from foldline.errors import InputError
from foldline.files import append_private, create_private, opened, written
from foldline.stores import open_store
from foldline.stores.transfer import back_up
from foldline.tui.editor import History


@pytest.fixture(autouse=True)
def lenient():
    """A umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def made(folder):
    """Return the modes of all that is below a folder."""
    return {str(path.relative_to(folder)): mode(path) for path in folder.rglob("*")}


def test_history_settings_and_other_own_files_are_private(tmp_path):
    History(tmp_path / "home/.foldline/history").add("my words")
    save(tmp_path / "home", "agent", {"theme": "x"})
    create_private(tmp_path / "one/two/jobs.db")
    with append_private(tmp_path / "three/trace.jsonl") as file:
        file.write(b"{}\n")
    assert made(tmp_path) == {
        **dict.fromkeys(("home", "home/.foldline", "one", "one/two", "three"), 0o700),
        **dict.fromkeys(
            (
                "home/.foldline/history",
                "home/.foldline/settings.toml",
                "one/two/jobs.db",
                "three/trace.jsonl",
            ),
            0o600,
        ),
    }


async def test_a_store_and_its_copy_are_private(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/new/sessions.db")
    try:
        await store.count()
        back_up(store, tmp_path / "new/copy.db")
        assert set(made(tmp_path / "new").values()) == {0o600}
    finally:
        await store.close()


@pytest.mark.parametrize(
    "name", ["settings.toml.{}.writing", ".settings.toml.writing", ".settings.toml.part"]
)
def test_settings_are_not_written_through_a_link_beside_them(tmp_path, name):
    away = tmp_path / "away"
    away.write_text("mine")
    beside = tmp_path / ".foldline" / name.format(os.getpid())
    beside.parent.mkdir()
    beside.symlink_to(away)
    save(tmp_path, "agent", {"theme": "x"})
    assert "theme" in (tmp_path / ".foldline/settings.toml").read_text()
    assert away.read_text() == "mine"


def test_settings_that_are_a_link_stay_one(tmp_path):
    (tmp_path / "dotfiles.toml").write_text("# mine\n")
    (tmp_path / ".foldline").mkdir()
    (tmp_path / ".foldline/settings.toml").symlink_to(tmp_path / "dotfiles.toml")
    save(tmp_path, "agent", {"theme": "x"})
    assert (tmp_path / ".foldline/settings.toml").is_symlink()
    assert "# mine" in (tmp_path / "dotfiles.toml").read_text()
    assert 'theme = "x"' in (tmp_path / "dotfiles.toml").read_text()


def test_half_written_files_have_names_that_nobody_can_guess(tmp_path):
    names = set()
    for _ in range(3):
        with written(tmp_path / "f") as file:
            file.write(b"x")
            names |= {one.name for one in tmp_path.iterdir()} - {"f"}
    assert len(names) == 3
    with opened(tmp_path / "f") as file:
        assert file.read() == b"x"


def test_without_a_home_folder_a_path_in_it_is_refused_by_name():
    with pytest.raises(InputError, match=r"~nobody-of-that-name/x\.db: the home folder is unknown"):
        open_store("sqlite:///~nobody-of-that-name/x.db")
