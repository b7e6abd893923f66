"""The commands over a PostgreSQL store, and every session from SQLite to it and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.calling import CHAT, SESSION, coding_session, talk, write_lines

pytest.importorskip("psycopg", reason="needs the extra foldline[postgres]")


def test_the_commands_work_on_postgres(foldline, postgres_url, tmp_path):
    file = write_lines(tmp_path / "session.jsonl", coding_session(3))
    store = ("--store", postgres_url)
    assert foldline("sessions", *store).code == 0
    name = foldline("import", file, "--json", *store).json["session"]
    assert foldline("import", file, "--json", *store).json["new_entries"] == 0
    assert [one["id"] for one in foldline("sessions", "--json", *store).json] == [name]
    assert "Please mend module0.py" in foldline("show", "session", *store).out
    assert foldline("show", name, "--view", *store).code == 0
    assert len(foldline("search", "mended", "--json", *store).json) == 3
    assert foldline("constraints", name, *store).code == 0
    folded = foldline("export", name, "--format", "openai-chat", "--view", "--target", "2000", *store)
    assert folded.code == 0, folded.err
    assert foldline("verify", *store).out.startswith("intact")
    refused = foldline("backup", tmp_path / "copy.db", *store)
    assert refused.code == 2
    assert "pg_dump" in refused.err
    assert foldline("purge", name, "--yes", *store).code == 0
    assert foldline("sessions", "--json", *store).json == []


def test_a_server_that_is_not_there_is_an_error_of_the_command(foldline, monkeypatch):
    from foldline.stores import postgres_pool

    monkeypatch.setattr(postgres_pool, "is_worth_a_retry", lambda *_: False)  # or it waits ten seconds for it
    failed = foldline("sessions", "--store", "postgresql://me:hunter2@127.0.0.1:1/db", "--json")
    assert failed.code == 1
    assert "127.0.0.1:1, database db, cannot be reached" in failed.json["error"]["message"]
    assert "hunter2" not in failed.out + failed.err


def test_all_sessions_go_to_postgres_and_back(foldline, postgres_url, tmp_path):
    one, two = f"sqlite:///{tmp_path / 'one.db'}", f"sqlite:///{tmp_path / 'two.db'}"
    for number, file in enumerate((SESSION, CHAT, write_lines(tmp_path / "third.jsonl", coding_session(4)))):
        assert foldline("import", file, "--id", f"s{number}", "--store", one).code == 0
    for source, target in ((one, postgres_url), (postgres_url, two)):
        told = foldline("migrate", source, target, "--json").json
        assert (told["sessions"], told["ok"], told["problems"]) == (3, True, [])
        assert told["entries"] > 200
    assert foldline("migrate", one, two, "--json").json["entries"] == 0
    assert (
        foldline("sessions", "--json", "--store", one).json
        == foldline("sessions", "--json", "--store", two).json
    )
    for number in range(3):
        exports = [foldline("export", f"s{number}", "--store", store) for store in (one, postgres_url, two)]
        assert exports[0].out
        assert exports[0].out == exports[1].out == exports[2].out
    assert "both stores are intact, and the copy is the same" in foldline("migrate", one, two).out


def test_another_session_of_that_name_is_a_problem(foldline, postgres_url, tmp_path):
    store = f"sqlite:///{tmp_path / 'one.db'}"
    for number, url in enumerate((store, postgres_url)):
        file = write_lines(tmp_path / f"{number}.jsonl", talk(f"text {number}"))
        foldline("import", file, "--id", "s", "--store", url)
    told = foldline("migrate", store, postgres_url)
    assert told.code == 1
    assert "entry 1 differs in the target" in told.err


def test_a_store_that_is_not_there_is_not_migrated(foldline, tmp_path):
    told = foldline("migrate", f"sqlite:///{tmp_path / 'none.db'}", f"sqlite:///{tmp_path / 'two.db'}")
    assert told.code == 2
    assert "there is no store" in told.err
    assert not Path(tmp_path / "two.db").exists()
