"""A session far larger than any window, replayed in memory that does not grow with it: `make soak`."""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys

import pytest

pytestmark = pytest.mark.soak

MESSAGES = 200_000
FEW = 20_000
WORDS = (
    "the parser reads every line of config and keeps what it cannot name so that a later pass may try".split()
)


def write(path, count):
    """Write a session of turns: a prompt, some reads with their results, an answer."""
    some = random.Random(5)
    with path.open("w") as stream:
        written = 0
        while written < count:
            for message in turn(some, written):
                stream.write(json.dumps(message) + "\n")
                written += 1
    return path


def turn(some, number):
    yield {"role": "user", "content": f"Look at module_{number}.py. {' '.join(some.choices(WORDS, k=30))}"}
    for step in range(some.randint(1, 6)):
        made = f"call_{number}_{step}"
        function = {"name": "read_file", "arguments": json.dumps({"path": f"src/module_{number % 97}.py"})}
        yield {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": made, "type": "function", "function": function}],
        }
        yield {
            "role": "tool",
            "tool_call_id": made,
            "content": "\n".join(" ".join(some.choices(WORDS, k=12)) for _ in range(20)),
        }
    yield {"role": "assistant", "content": " ".join(some.choices(WORDS, k=40))}


def replayed(path, tmp_path):
    """Replay in a process of its own: what it printed, and the most memory it held, in bytes."""
    command = [sys.executable, "-m", "foldline", "replay", str(path), "--policy", "none,foldline", "--json"]
    code = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:])\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, file=sys.stderr)\n"
        "sys.exit(done.returncode)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], capture_output=True, cwd=tmp_path, check=True
    )
    return json.loads(done.stdout)["sessions"][0]["policies"], int(done.stderr.split()[-1])


def test_memory_is_that_of_the_view_however_long_the_session(tmp_path):
    assert resource.getpagesize() > 0  # this test needs a system that tells the memory of a child
    few, small = replayed(write(tmp_path / "few.jsonl", FEW), tmp_path)
    many, large = replayed(write(tmp_path / "many.jsonl", MESSAGES), tmp_path)
    assert large < 1.5 * small + 30 * 2**20
    for one in many:
        assert one["totals"]["invalid_views"] == 0
        assert one["totals"]["calls"] > 5 * few[0]["totals"]["calls"]
    assert many[1]["totals"]["peak"] < 200_000
    assert many[1]["totals"]["compactions"] > 10
