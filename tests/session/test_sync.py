"""`foldline.open_sync`: the session for code that is not async, with nothing written twice."""

from __future__ import annotations

import asyncio
import inspect
import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import foldline
from foldline.session.session import Session
from foldline.session.sync import SyncSession, open_sync
from foldline.summarizers.offline import OfflineSummarizer

WINDOW = foldline.Window(context=6_000, output=1_000)
ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'sessions.db'}"


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_facade_has_all_that_a_session_has_and_nothing_of_its_own():
    beside = {"session", "portal"}  # attributes, not methods
    assert public(Session) - public(SyncSession) <= {
        "summarizer",
        "written_by",
        "make_drafts_by",
        "follow_model",
    }
    assert public(SyncSession) - public(Session) - beside <= {"id", "store", "max_tokens"}


@pytest.mark.parametrize("name", sorted(public(Session) & public(SyncSession)))
def test_every_method_has_the_sessions_own_signature_and_words(name):
    own, ours = inspect.getattr_static(Session, name), inspect.getattr_static(SyncSession, name)
    if not inspect.isfunction(own):
        assert isinstance(ours, property)
        return
    assert list(inspect.signature(own).parameters) == list(inspect.signature(ours).parameters)
    assert not inspect.iscoroutinefunction(inspect.unwrap(ours)) or ours.__wrapped__ is own
    assert ours.__doc__


def test_opening_takes_what_open_takes():
    assert inspect.signature(open_sync) == inspect.signature(foldline.open)
    assert foldline.open_sync is open_sync


def test_the_rest_works_as_in_the_async_session(url):
    with foldline.open_sync(url, "s") as session:
        (first,) = session.append({"role": "user", "content": "The gate opens with zebra-7781."})
        session.append({"role": "assistant", "content": "Noted. " * 100})
        off = session.attach("todos", lambda: "- [ ] paint it")
        events = []
        session.on("*", lambda event: events.append((event.name, threading.current_thread().name)))

        assert session.recall("zebra")[0].entry == first
        assert "zebra-7781" in session.call_tool("recall_search", {"query": "zebra"})
        assert session.live() == {"todos": "- [ ] paint it"}
        off()
        assert session.live() == {}
        assert session.rewind().text == "The gate opens with zebra-7781."
        assert session.context() == []
        session.branch(first)
        with session.handoff("Paint the gate", to="fresh") as fresh:
            assert isinstance(fresh, SyncSession)
            assert "zebra-7781" in str(fresh.context())
            assert fresh.portal is session.portal
        assert session.context()  # a session that came from it does not take its thread along
        assert [link.session for link in session.links()] == ["fresh"]
        assert [name for name, _ in events] == ["branched", "branched", "handed_off"]
        assert {thread for _, thread in events} == {"foldline"}


def test_errors_come_as_they_are(url):
    with foldline.open_sync(url, "s") as session:
        with pytest.raises(foldline.InputError, match="has no entry 'x'"):
            session.branch("x")
        with pytest.raises(foldline.InputError, match="unknown tool 'bash'"):
            session.call_tool("bash")
        with pytest.raises(TypeError):
            session.append(bogus=1)
    with pytest.raises(foldline.InputError):
        foldline.open_sync("gopher://x")


async def test_it_works_where_an_event_loop_runs(url):
    with foldline.open_sync(url, "s") as session:
        session.append({"role": "user", "content": "Hello."})
        assert session.context() == [{"role": "user", "content": "Hello."}]


def test_a_callback_that_would_wait_for_its_own_session_is_told_so(url):
    with foldline.open_sync(url, "s") as session:
        told = []

        def callback(_event) -> None:
            with pytest.raises(foldline.InputError, match="cannot wait for its own session"):
                session.context()
            told.append(True)

        session.on("message", callback)
        session.append({"role": "user", "content": "Hello."})
        assert told == [True]


def test_a_closed_session_says_so_and_closing_twice_is_nothing(url):
    session = foldline.open_sync(url, "s")
    session.append({"role": "user", "content": "Hello."})
    thread = session.portal._thread
    session.close()
    session.close()
    assert not thread.is_alive()
    with pytest.raises(foldline.InputError, match="this session is closed"):
        session.context()
    assert session.id == "s"


def test_a_session_that_cannot_be_entered_is_closed_with_its_thread(tmp_path):
    (tmp_path / "notes.txt").write_text("these are my notes" * 100)
    session = foldline.open_sync(f"sqlite:///{tmp_path / 'notes.txt'}", "s")
    with pytest.raises(foldline.FoldlineError, match="not a Foldline database"), session:
        pass
    assert not session.portal._thread.is_alive()


def test_threads_may_share_a_session(url):
    with foldline.open_sync(url, "s") as session:

        def work(n: int) -> None:
            for i in range(10):
                session.append({"role": "user", "content": f"{n} {i}"})

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        said = [message["content"] for message in session.history()]
        assert len(said) == len(set(said)) == 40
        for n in range(4):
            assert [text for text in said if text.startswith(f"{n} ")] == [f"{n} {i}" for i in range(10)]


def test_threads_that_use_a_session_while_another_closes_it_are_told_so(url):
    session = foldline.open_sync(url, "s")
    session.append({"role": "user", "content": "Hello."})
    working, told = threading.Barrier(5), []

    def use() -> None:
        while True:
            session.note("k", v=1)

    def work() -> None:
        working.wait()
        with pytest.raises(foldline.FoldlineError, match="closed"):
            use()
        told.append(True)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    working.wait()
    session.close()
    for thread in threads:
        thread.join(120)
    assert told == [True] * 4


class Slow(OfflineSummarizer):
    """Writes after a long time; knows whether it was cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.cancelled = False

    async def summarize(self, request):
        self.begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return self.write(request)


def test_an_interrupted_call_is_cancelled_and_the_session_goes_on(url, ctrl_c):
    slow = Slow()
    with foldline.open_sync(url, "s", window=WINDOW, summarizer=slow) as session:
        session.append(
            {"role": "user", "content": "Read it."}, {"role": "assistant", "content": "word " * 900}
        )

        def interrupt() -> None:
            slow.begun.wait()
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

        main = threading.Thread(target=interrupt)
        main.start()
        with pytest.raises(KeyboardInterrupt):
            session.compact()
        main.join()

        assert slow.cancelled
        session.append({"role": "user", "content": "On we go."})
        assert len(session.context()) == 3
        assert session.stats().summaries == 0


def test_what_still_runs_is_cancelled_at_the_end(url):
    slow = Slow()
    session = foldline.open_sync(url, "s", window=WINDOW, summarizer=slow)
    drafts = []
    session.on("draft_started", drafts.append)
    while not drafts:
        words = {"role": "assistant", "content": "word " * 220}
        session.append({"role": "user", "content": "Read it."}, words)
        session.context()
    assert slow.begun.wait(60)
    session.close()
    assert slow.cancelled


def test_a_program_that_forgets_to_close_ends_all_the_same(tmp_path):
    program = f"""
import foldline, json
session = foldline.open_sync("sqlite:///{tmp_path / "s.db"}", "s")
session.append({{"role": "user", "content": "Hello."}})
print(json.dumps(session.context()))
"""
    done = subprocess.run(
        # from Python 3.13 on the file that was left open is told of, to those who ask for such warnings
        [sys.executable, "-W", "error", "-W", "ignore:unclosed database:ResourceWarning", "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [{"role": "user", "content": "Hello."}]
    with foldline.open_sync(f"sqlite:///{tmp_path / 's.db'}", "s") as session:
        assert len(session.history()) == 1


def test_the_type_checker_sees_the_methods_types(tmp_path):
    checker = Path(sys.executable).with_name("basedpyright")
    if not checker.exists():
        pytest.skip("no basedpyright: make setup installs it")
    (tmp_path / "program.py").write_text(
        """from typing import assert_type

import foldline
from foldline.core.decide.ask import Nothing
from foldline.stores.base import Hit

with foldline.open_sync("memory://", "s", window=8_000) as session:
    assert_type(session.append({"role": "user"}), list[str])
    assert_type(session.context(), foldline.ContextMessages)
    assert_type(session.compact("the SQL", target=4_000), foldline.Receipt | Nothing)
    assert_type(session.recall("q", limit=3), list[Hit])
    assert_type(session.handoff("g"), foldline.SyncSession)
    assert_type(session.call_tool("recall_list"), str)
    session.recall(3)  # pyright: ignore[reportArgumentType]
    session.compact(traget=3)  # pyright: ignore[reportCallIssue]
foldline.open_sync(windw=3)  # pyright: ignore[reportCallIssue]
"""
    )
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps(
            {
                "typeCheckingMode": "strict",
                "reportUnnecessaryTypeIgnoreComment": "error",
                "pythonVersion": "3.11",
                "venvPath": str(Path(sys.prefix).parent),
                "venv": Path(sys.prefix).name,
                "extraPaths": [str(ROOT / "src")],
            }
        )
    )
    done = subprocess.run(
        [checker, "-p", tmp_path], capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout
