"""A store that cannot be written is read, searched, exported and copied, and says so when it is to be written."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

# Files and directories that root may not write either: a read-only mount that only this process sees.
MOUNTED = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'
UNSHARE = ["unshare", "--mount", "sh", "-c", MOUNTED, "sh"]

WRITE = """
import asyncio, sys
from foldline.stores import SqliteStore
from tests.stores.build import talk

async def main(file):
    store = SqliteStore(file)
    await store.append("s", talk(None, "Never push to main.", "I see pelicans."), seen=None)
    if sys.argv[2] == "indexed":
        await store.search("pelicans")
    if sys.argv[2] == "crash":
        import os
        os._exit(0)  # the log stays as it is
    await store.close()

asyncio.run(main(sys.argv[1]))
"""

READ = """
import asyncio, sys
from pathlib import Path
import foldline
from foldline.errors import StoreError
from foldline.stores import SqliteStore
from foldline.stores.transfer import back_up
from tests.stores.build import talk

async def main(file, copy):
    store = SqliteStore(file)
    path = [entry async for entry in store.path("s")]
    assert [entry.message.text for entry in path] == ["Never push to main.", "I see pelicans."]
    assert await store.active("s") == path
    assert [info.id for info in await store.sessions()] == ["s"]
    assert [hit.entry for hit in await store.search("pelicans")] == [path[1].id]
    assert await store.search("elephants") == []
    assert await store.verify() == []
    back_up(store, copy)
    async with foldline.open(store, "s", window=20_000) as session:
        assert [message["content"] for message in await session.context()][-1] == "I see pelicans."
        assert len(await session.recall("pelicans")) == 1
    more = talk(path[-1], "More.")
    for write in (
        lambda: store.append("s", more, seen=path[-1].id),
        lambda: store.move("s", path[0].id, seen=path[-1].id),
        lambda: store.purge("s"),
    ):
        try:
            await write()
        except StoreError as error:
            print(error)
    assert [entry async for entry in store.path("s")] == path
    await store.close()

asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
"""

CONTINUED = """
import asyncio, sys
from foldline.stores import SqliteStore
from tests.stores.build import talk

async def main(file):
    store = SqliteStore(file)
    await store.append("s", talk(await store.entry("s", await store.leaf("s")), "More."), seen=await store.leaf("s"))
    print(len([entry async for entry in store.path("s")]))
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def python(script: str, *args: object) -> list[str]:
    return [sys.executable, "-c", script, *map(str, args)]


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[str]]:
    """Return what runs a command where a folder cannot be written."""
    if os.geteuid() == 0:
        folder = tmp_path_factory.mktemp("mount")
        tried = [*UNSHARE, str(folder), "sh", "-c", f'! touch "{folder}/x" 2>&1']
        if not shutil.which("unshare") or subprocess.run(tried, capture_output=True, check=False).returncode:
            pytest.skip("root needs a read-only mount, and none can be made here")
        return lambda folder, *command: [*UNSHARE, str(folder), *command]

    def bare(folder: Path, *command: str) -> list[str]:
        for file in folder.iterdir():
            file.chmod(0o400)
        folder.chmod(0o500)
        return list(command)

    return bare


@pytest.mark.parametrize("left", ["closed", "indexed", "crash", "crash without -shm"])
def test_a_store_that_cannot_be_written_is_read_and_refuses_writes(
    tmp_path: Path, locked: Callable[..., list[str]], left: str
) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    file = folder / "s.db"
    run(*python(WRITE, file, left.split(maxsplit=1)[0]))
    assert (folder / "s.db-wal").exists() == left.startswith("crash")
    if left.endswith("-shm"):
        (folder / "s.db-shm").unlink()
    try:
        said = run(*locked(folder, *python(READ, file, tmp_path / "copy.db")))
    finally:
        folder.chmod(0o700)
    assert said.count("can only be read") == 3, said
    assert said.count("foldline backup TARGET") == 3
    assert run(*python(CONTINUED, tmp_path / "copy.db")) == "3\n"


def test_the_command_line_reads_a_store_that_cannot_be_written(
    tmp_path: Path, locked: Callable[..., list[str]]
) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    run(*python(WRITE, folder / "s.db", "closed"))
    here = [sys.executable, "-m", "foldline.cli"]
    store = ["--store", f"sqlite:///{folder / 's.db'}"]
    commands = [
        ["sessions"],
        ["show", "s"],
        ["search", "pelicans"],
        ["verify"],
        ["export", "s", "--format", "claude-code", "-o", str(tmp_path / "out.jsonl")],
        ["backup", str(tmp_path / "copy.db")],
    ]
    for words in commands:
        run(*locked(folder, *here, *words, *store))
    assert "pelicans" in (tmp_path / "out.jsonl").read_text()
    refused = subprocess.run(
        locked(folder, *here, "purge", "s", "--yes", *store),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    folder.chmod(0o700)
    assert refused.returncode == 1, refused
    assert "can only be read" in refused.stderr
    assert "Traceback" not in refused.stderr
