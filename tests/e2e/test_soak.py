"""Files as large as nobody should have: `make soak`."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.running import COMMAND, environment

from foldline.cli.common import TO_FOLD, TO_READ, available

pytestmark = pytest.mark.soak

GIGABYTE = 10**9


def generate(path: Path, size: int) -> int:
    """Write a JSON-lines session of that many bytes; return its number of messages."""
    some, count, written = random.Random(7), 0, 0
    words = [f"word{n}" for n in range(5000)]
    with path.open("w") as stream:
        while written < size:
            text = f"message {count}: " + " ".join(some.choices(words, k=1500))
            role = "user" if count % 2 == 0 else "assistant"
            written += stream.write(json.dumps({"role": role, "content": text}) + "\n")
            count += 1
    return count


def peak(home: Path, *args: object) -> tuple[int, bytes, int]:
    """Run a command: its exit code, what it printed, and the most memory that it held, in bytes."""
    code = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, file=sys.stderr)\n"
        "sys.exit(done.returncode)"
    )
    words = [COMMAND[0], "-c", code, *COMMAND, *(str(arg) for arg in args)]
    done = subprocess.run(words, capture_output=True, env=environment(home), cwd=home, check=False)
    return done.returncode, done.stdout, int(done.stderr.split()[-1])


@pytest.fixture
def gigabyte(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    path = tmp_path / "gigabyte.jsonl"
    yield path, generate(path, GIGABYTE)
    path.unlink()


def test_a_gigabyte_is_read_stored_and_folded_in_bounded_memory(tmp_path, gigabyte):
    path, count = gigabyte
    work = (
        (["inspect", path, "--json"], TO_READ),
        (["import", path, "--json"], TO_READ),
        (["compact", path, "--target", 20_000, "--json"], TO_FOLD),
    )
    for args, factor in work:
        left = available()
        enough = left is None or left > factor * GIGABYTE
        code, out, most = peak(tmp_path, *args)
        if not enough:
            assert code == 2, args
            continue
        assert code == 0, args
        assert most < factor * GIGABYTE + 200 * 2**20, args
        found = json.loads(out)
        told = found["receipt"]["messages_before"] if args[0] == "compact" else found["messages"]
        assert told == count
    assert peak(tmp_path, "verify")[0] == 0


def test_a_line_of_fifty_megabytes_is_folded(tmp_path):
    file = tmp_path / "big.jsonl"
    texts = (("user", "start"), ("assistant", "word " * 10_000_000), ("user", "and now?"))
    file.write_text("".join(json.dumps({"role": role, "content": text}) + "\n" for role, text in texts))
    code, out, _ = peak(tmp_path, "compact", file, "--target", 3000, "--json")
    assert code == 0
    assert json.loads(out)["view_tokens"] <= 3000
