"""import, export, sessions, show, search, verify and purge over one store."""

from __future__ import annotations

import asyncio
import json
import os
from io import StringIO
from pathlib import Path

import pytest
from tests.cli.calling import EXAMPLES, coding_session, talk, write_lines

from foldline.core.log.codec import encode
from foldline.core.log.entries import Compacted, Entry, Said
from foldline.core.log.log import said
from foldline.core.log.messages import Message, Text
from foldline.stores import SqliteStore
from foldline.transcripts import header_line


def stored(session: str, file: Path | None = None) -> tuple[list[Entry], list[Entry], str | None]:
    """The path, the whole log and the leaf of a session in the default store."""

    async def read() -> tuple[list[Entry], list[Entry], str | None]:
        store = SqliteStore(file or Path.home() / ".foldline" / "foldline.db")
        try:
            path = [entry async for entry in store.path(session)]
            return path, [entry async for entry in store.all(session)], await store.leaf(session)
        finally:
            await store.close()

    return asyncio.run(read())


def branch(session: str, file: Path, at: int, *texts: str) -> None:
    """Say something else after the entry at that place of the path."""

    async def write() -> None:
        store = SqliteStore(file)
        try:
            path = [entry async for entry in store.path(session)]
            await store.move(session, path[at].id, seen=path[-1].id)
            before = path[at]
            assert isinstance(before, Said)
            for text in texts:
                entry = said(
                    Message("user", (Text(text),)),
                    parent=before.id,
                    said_key=before.said_key,
                    tokens=3,
                    at=9.0,
                )
                await store.append(session, [entry], seen=before.id)
                before = entry
        finally:
            await store.close()

    asyncio.run(write())


def test_a_session_goes_in_and_is_found_again(foldline, file):
    told = foldline("import", file)
    assert told.code == 0
    assert "18 messages, 0 compactions (jsonl), 18 new entries" in told.out
    name = foldline("sessions", "--json").json[0]["id"]
    assert name.startswith("session-")
    assert "Please mend module0.py" in foldline("show", "session").out  # the beginning of an id is enough
    hits = foldline("search", "mended", "--json").json
    assert {hit["session"] for hit in hits} == {name}
    assert len(hits) == 3
    assert "module2.py is mended" in foldline("search", "module2.py mended", "--session", name).out
    assert foldline("search", "nobody said this").out == "nothing found\n"
    assert foldline("verify").out.startswith("intact")
    assert foldline("verify", "--session", name, "--json").json == {"ok": True, "problems": []}


@pytest.mark.parametrize("query", ["", " ", "\t\n"])
def test_a_search_for_no_word_is_refused(foldline, query):
    found = foldline("search", query, "--json")
    assert found.code == 2
    assert "give a word" in found.err
    assert found.json["error"]["exit_code"] == 2


def test_importing_again_changes_nothing_and_a_grown_file_is_caught_up(foldline, file):
    first = foldline("import", file, "--json").json
    assert (first["messages"], first["new_entries"]) == (18, 18)
    again = foldline("import", file, "--json").json
    assert (again["session"], again["new_entries"]) == (first["session"], 0)
    write_lines(file, coding_session(4))
    grown = foldline("import", file, "--json").json
    assert (grown["session"], grown["new_entries"], grown["messages"]) == (first["session"], 6, 24)
    path, log, _ = stored(first["session"])
    assert len(path) == len(log) == 24


def test_a_grown_file_with_a_title_is_caught_up(foldline, tmp_path):
    def grown(*texts: str, model: str) -> Path:
        header = {"title": "Numbers", "model": model, "dialect": "openai-chat"}
        return write_lines(tmp_path / "titled.jsonl", [header, *talk(*texts)])

    name = foldline("import", grown("one", "two", model="gpt-5.2"), "--json").json["session"]
    grown("one", "two", "three", "four", model="gpt-5.2-mini")
    foldline("import", tmp_path / "titled.jsonl")
    path, _, _ = stored(name)
    assert [entry.message.text for entry in path if isinstance(entry, Said)] == [
        "one",
        "two",
        "three",
        "four",
    ]
    info = foldline("sessions", "--json").json[0]
    assert (info["title"], info["messages"]) == ("Numbers", 4)
    assert foldline("import", tmp_path / "titled.jsonl", "--json").json["new_entries"] == 0


def test_a_reply_that_was_still_being_written_is_caught_up(foldline, tmp_path):
    def half(*parts: str) -> Path:
        content = [{"type": "text", "text": part} for part in parts]
        return write_lines(
            tmp_path / "live.jsonl",
            [{"role": "user", "content": "go"}, {"role": "assistant", "content": content}],
        )

    name = foldline("import", half("first"), "--json").json["session"]
    assert foldline("import", half("first", "second"), "--json").code == 0
    path, log, _ = stored(name)
    assert [entry.message.text for entry in path if isinstance(entry, Said)] == ["go", "first\nsecond"]
    assert len(log) == 3


def test_a_session_that_went_on_differently_is_refused(foldline, file, tmp_path):
    name = foldline("import", file, "--json").json["session"]
    other = write_lines(tmp_path / "other.jsonl", [*coding_session(3), *talk("this way")])
    third = write_lines(tmp_path / "third.jsonl", [*coding_session(3), *talk("that way")])
    assert foldline("import", other, "--id", name).code == 0
    refused = foldline("import", third, "--id", name)
    assert refused.code == 2
    assert "already exists with different messages: import under another id" in refused.err
    assert len(stored(name)[0]) == 19
    assert foldline("import", third, "--id", "another").code == 0


def test_an_export_comes_back_equal_with_every_branch(foldline, file, tmp_path):
    one, two = tmp_path / "one.db", tmp_path / "two.db"
    foldline("import", file, "--id", "work", "--store", f"sqlite:///{one}")
    branch("work", one, 5, "else", "and more")
    branch("work", one, 2, "a third way")
    before = stored("work", one)
    out = tmp_path / "work.jsonl"
    told = foldline("export", "work", "-o", out, "--store", f"sqlite:///{one}", "--json")
    assert told.json["count"] == len(before[1]) == 21
    foldline("import", out, "--store", f"sqlite:///{two}")
    assert stored("work", two) == before
    assert foldline("import", out, "--store", f"sqlite:///{two}", "--json").json["new_entries"] == 0
    assert stored("work", two) == before
    again = tmp_path / "again.jsonl"
    foldline("export", "work", "-o", again, "--store", f"sqlite:///{two}")
    assert again.read_bytes() == out.read_bytes()
    assert foldline("compact", out, "--target", 5000, "--json").json["receipt"]["messages_before"] == 4
    assert foldline("verify", "--store", f"sqlite:///{two}").code == 0


def test_an_export_whose_end_is_missing_keeps_what_is_whole(foldline, file, tmp_path):
    foldline("import", file, "--id", "work")
    out = tmp_path / "work.jsonl"
    foldline("export", "work", "-o", out)
    out.write_bytes(out.read_bytes()[:-40])
    done = foldline("import", out, "--id", "cut", "--json")
    assert done.code == 0
    assert (done.json["messages"], done.json["new_entries"]) == (17, 17)
    assert "line 19" in done.err


def test_export_prints_json_lines_or_one_document(foldline, file):
    foldline("import", file, "--id", "work")
    plain = foldline("export", "work")
    assert json.loads(plain.out.splitlines()[0]) == {
        "format": "foldline", "version": 1, "session": "work", "leaf": stored("work")[2]
    }  # fmt: skip
    assert len(plain.out.splitlines()) == 19
    assert len(foldline("export", "work", "--json").json["entries"]) == 18
    chat = foldline("export", "work", "--format", "openai-chat")
    assert [json.loads(line)["role"] for line in chat.out.splitlines()][:3] == ["user", "assistant", "tool"]
    document = foldline("export", "work", "--format", "anthropic", "--json").json
    assert document["messages"] == coding_session(3)


def test_the_view_of_a_session_with_a_compaction(foldline, tmp_path):
    rows = [
        {"meta": {"agent": "x"}},
        *[{"role": m["role"], "text": m["content"]} for m in talk("one", "two", long=50)],
        {"role": "summary", "text": "Numbers were told."},
        *[{"role": m["role"], "text": m["content"]} for m in talk("three", "four")],
    ]
    foldline("import", write_lines(tmp_path / "plain.jsonl", rows), "--id", "plain")
    assert foldline("sessions", "--json").json[0]["compactions"] == 1
    shown = foldline("show", "plain").out
    assert "one word0" in shown
    assert "compacted: imported" in shown
    view = foldline("show", "plain", "--view")
    assert "added: checkpoint" in view.out
    assert "one" not in view.out.split()
    assert [item["kind"] for item in foldline("show", "plain", "--view", "--json").json][-2:] == [
        "kept",
        "kept",
    ]
    (receipt,) = foldline("show", "plain", "--receipts", "--json").json
    assert receipt["receipt"]["reason"] == "imported"
    assert "made by the agent that wrote the session" in foldline("show", "plain", "--receipts").out
    folded = foldline("export", "plain", "--view").out.splitlines()
    assert "Numbers were told." in folded[0]
    path, _, _ = stored("plain")
    boundary = next(entry for entry in path if isinstance(entry, Compacted))
    whole = foldline("show", "plain", "--entry", boundary.id[:12])
    assert "Numbers were told." in whole.out
    assert foldline("show", "plain", "--entry", boundary.id, "--json").json["id"] == boundary.id
    assert foldline("show", "plain", "--entry", "zzz").code == 2
    assert "matches 5 entries" in foldline("show", "plain", "--entry", "").err


def test_show_as_json_is_every_entry(foldline, file):
    foldline("import", file, "--id", "work")
    entries = foldline("show", "work", "--json").json
    assert len(entries) == 18
    assert entries[0]["type"] == "said"


def test_purge_says_how_to_go_on_where_nobody_can_answer(foldline, file, monkeypatch):
    foldline("import", file, "--id", "work")
    monkeypatch.setattr("sys.stdin", StringIO(""))
    kept = foldline("purge", "work")
    assert kept.code == 2
    assert "--yes" in kept.err
    assert len(stored("work")[0]) == 18


def test_purge_asks_and_deletes_for_good(foldline, file, monkeypatch):
    foldline("import", file, "--id", "work")
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: "n")
    kept = foldline("purge", "work")
    assert kept.code == 130
    assert "nothing was changed" in kept.err
    assert len(stored("work")[0]) == 18
    assert foldline("purge", "work", "--yes", "--json").json == {"purged": "work"}
    assert foldline("sessions", "--json").json == []
    assert "No session is stored yet" in foldline("sessions").out
    assert b"module1" not in (Path.home() / ".foldline" / "foldline.db").read_bytes()


@pytest.mark.parametrize(
    "command",
    [["show"], ["purge", "--yes"], ["verify", "--session"], ["search", "x", "--session"]],
)
def test_a_session_that_is_not_there(foldline, command):
    done = foldline(*command, "nowhere", "--json")
    assert done.code == 2
    assert "no session 'nowhere' in the store" in done.err
    assert done.json["error"]["type"] == "SessionNotFound"


@pytest.mark.parametrize(
    "command",
    [["sessions"], ["search", "x"], ["show", "x"], ["export", "x"], ["purge", "x", "--yes"]],
)
def test_asking_makes_no_store(foldline, tmp_path, command):
    """A mistyped path gave an empty store, and left its file behind."""
    url = f"sqlite:///{tmp_path / 'new' / 'typo.db'}"
    done = foldline(*command, "--store", url)
    assert f"there is no store at {url} yet" in done.err
    assert foldline(*command).code == done.code
    assert not (tmp_path / "new").exists()
    assert not (Path.home() / ".foldline").exists()


def test_a_store_that_is_named_and_not_there_is_not_intact(foldline, tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'typo.db'}"
    assert foldline("verify").code == 0  # nobody named one, and nothing is stored yet
    done = foldline("verify", "--store", url)
    assert (done.code, done.out) == (2, "")
    assert f"there is no store at {url}" in done.err
    monkeypatch.setenv("FOLDLINE_STORE", url)
    assert foldline("verify").code == 2


@pytest.mark.parametrize("named", [True, False])
def test_a_store_that_was_cut_to_nothing_is_not_intact(foldline, file, tmp_path, named):
    place = tmp_path / "cut.db" if named else Path.home() / ".foldline/foldline.db"
    store = ["--store", f"sqlite:///{place}"] if named else []
    foldline("import", file, *store)
    for one in place.parent.glob(f"{place.name}*"):
        os.truncate(one, 0)
    done = foldline("verify", *store, "--json")
    assert done.code == 1
    assert not done.json["ok"]
    assert f"{place} has 0 bytes" in foldline("verify", *store).err
    assert foldline("sessions", *store, "--json").json == []
    for command in (["backup", tmp_path / "copy.db", *store], ["migrate", f"sqlite:///{place}", "memory://"]):
        refused = foldline(*command)
        assert refused.code == 2
        assert "there is no store at" in refused.err
    assert place.stat().st_size == 0  # nothing was made of it
    assert not (tmp_path / "copy.db").exists()
    foldline("import", file, *store)
    assert foldline("verify", *store).out.startswith("intact")


@pytest.mark.parametrize("at", [1_761_000_000_000_000, -1e300])
def test_a_wrong_time_of_one_session_does_not_hide_the_others(foldline, tmp_path, at):
    line = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "timestamp": at}
    line["message"] = {"role": "user", "content": "Never touch the lock file."}
    foldline("import", write_lines(tmp_path / "claude.jsonl", [line]), "--id", "theirs")
    message = Message("user", (Text("Never touch the lock file."),))
    entry = said(message, parent=None, tokens=9, at=at)
    own = tmp_path / "own.jsonl"
    own.write_bytes(header_line(session="own", leaf=entry.id) + encode(entry) + b"\n")
    foldline("import", own)
    assert {"theirs", "own"} <= set(foldline("sessions").out.split())
    for session in ("theirs", "own"):
        assert foldline("constraints", session, "--json").json["standing"][0]["at"] is None
        assert foldline("merge", session).code == 0
        assert foldline("export", session, "--format", "pi").code == 0


def test_an_id_that_begins_several_sessions_is_refused(foldline, file):
    for name in ("work-1", "work-2"):
        foldline("import", file, "--id", name)
    done = foldline("show", "work")
    assert done.code == 2
    assert "matches 2 sessions: work-1, work-2" in done.err


def test_an_unknown_store_url_says_what_is_known(foldline):
    done = foldline("sessions", "--store", "mysql://x")
    assert done.code == 2
    assert "sqlite:///FILE" in done.err


KEY = "sk-ant-api03-" + "Qx7" * 31 + "AA"


def test_an_empty_title_shows_the_first_request_without_its_secrets(foldline, tmp_path):
    first = f"Deploy it\nwith {KEY} please, and keep the logs of every step in one place for us to read."
    foldline("import", write_lines(tmp_path / "session.jsonl", talk(first, "I will.", "Thanks.")))
    [found] = foldline("sessions", "--json").json
    assert found["title"].startswith("Deploy it with [redacted")
    assert found["title"].endswith("…")
    assert len(found["title"]) <= 60
    assert "Deploy it with" in foldline("sessions").out


def test_an_empty_title_is_what_the_user_said_first_not_what_the_agent_put_before_it(foldline, tmp_path):
    reminder = "<system-reminder>\n# Environment\nPlatform: linux\n</system-reminder>"
    first = f"{reminder}\nWrite the reports."
    foldline("import", write_lines(tmp_path / "session.jsonl", talk(reminder, "Yes?", first, "I will.")))
    assert foldline("sessions", "--json").json[0]["title"] == "Write the reports."


def test_a_title_that_a_tool_made_has_no_secret(foldline, tmp_path):
    whole = {"title": f"Deploy with {KEY}", "messages": talk("Deploy it.", "I will.")}
    file = tmp_path / "session.json"
    file.write_text(json.dumps(whole))
    foldline("import", file)
    [found] = foldline("sessions", "--json").json
    assert found["title"].startswith("Deploy with [redacted")
    assert KEY[:30] not in foldline("show", found["id"], "--json").out


def test_a_backup_is_a_store_that_can_be_read(foldline, file, tmp_path):
    foldline("import", file)
    before = foldline("sessions", "--json").json
    target = tmp_path / "copy.db"
    told = foldline("backup", target)
    assert (told.code, told.err) == (0, "")
    assert "backed up" in told.out
    assert foldline("sessions", "--store", f"sqlite:///{target}", "--json").json == before
    assert foldline("verify", "--store", f"sqlite:///{target}").out.startswith("intact")
    again = foldline("backup", target, "--json")
    assert again.code == 2
    assert "already exists" in again.json["error"]["message"]
    other = tmp_path / "again.db"
    assert foldline("backup", other, "--json").json == {"target": str(other), "bytes": other.stat().st_size}


def test_a_backup_of_no_store_makes_none(foldline, tmp_path):
    done = foldline("backup", tmp_path / "copy.db", "--store", f"sqlite:///{tmp_path / 'none.db'}")
    assert done.code == 2
    assert "there is no store" in done.err
    assert not list(tmp_path.glob("*.db"))


@pytest.mark.parametrize(
    "words",
    [("inspect",), ("constraints",), ("compact", "--target", "3000")],
    ids=["inspect", "constraints", "compact"],
)
def test_a_stored_session_is_read_like_its_file(words, foldline, file, tmp_path):
    foldline("import", file, "--id", "kept")
    own = tmp_path / "own.jsonl"
    foldline("export", "kept", "-o", own)
    command, *options = words
    of_store, of_file = (foldline(command, one, *options, "--json").json for one in ("kept", own))
    for found in (of_store, of_file):
        found.get("receipt", {}).pop("duration_ms", None)
    assert of_store == of_file


@pytest.mark.parametrize("command", ["inspect", "constraints", "compact", "export"])
def test_a_name_of_nothing_is_neither_a_file_nor_a_session(command, foldline):
    done = foldline(command, "nobody")
    assert (done.code, done.out) == (2, "")
    assert "no such file, and no session 'nobody'" in done.err


def test_a_list_shows_as_much_of_an_id_as_names_its_session(foldline, file):
    for end in ("1129-130409-0dad", "1129-130409-0dae"):
        foldline("import", str(file), "--id", f"work-5f2a9c11-{end}")
    shown = foldline("sessions").out
    assert {"130409-0dad", "130409-0dae"} <= set(shown.split())
    assert foldline("show", "130409-0dad").out == foldline("show", "work-5f2a9c11-1129-130409-0dad").out
    assert foldline("search", "tests", "--limit", "1").out.split()[0].startswith("130409-0da")
    done = foldline("undo", "work-")
    assert "matches 2 sessions: work-5f2a9c11-1129-130409-0dad, work-" in done.err


def test_an_imported_session_is_listed_with_the_agent_that_wrote_it(foldline, file):
    assert foldline("import", file, "--id", "plain").code == 0
    assert "agent" not in foldline("sessions").out
    assert foldline("import", EXAMPLES / "research.jsonl", "--id", "research").code == 0
    agents = {row["id"]: row["agent"] for row in foldline("sessions", "--json").json}
    assert agents == {"plain": "", "research": "pi"}
    assert " pi " in foldline("sessions").out
