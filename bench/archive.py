"""What does an archive cost for each of its sessions, and the process that leads the work in memory?

`python -m bench.archive [SESSIONS...]` (default: 1,000 10,000 100,000) makes so many session files of 12 messages, folds them
by `foldline batch fold` on all cores, and runs the same command again when everything is done.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.table import Row, lines, machine

ROOT = Path(__file__).parents[1]
LONG = "words of a message, " * 60


def make(folder: Path, first: int, last: int) -> None:
    """Write the session files of these numbers, a thousand in a folder."""
    for number in range(first, last):
        inside = folder / f"{number // 1000:04}"
        inside.mkdir(parents=True, exist_ok=True)
        roles = ("user", "assistant")
        said = [{"role": roles[n % 2], "content": f"{number} {n} {LONG}"} for n in range(12)]
        text = "".join(json.dumps(message) + "\n" for message in said)
        (inside / f"{number:07}.jsonl").write_text(text)


def fold(archive: Path, out: Path) -> tuple[float, float]:
    """Fold all; return the seconds, and the most MB of memory that the leading process had."""
    words = [sys.executable, "-m", "foldline", "batch", "fold", archive, "-o", out, "--target", "2000"]
    started, most = time.perf_counter(), 0
    with (out.parent / "told").open("wb") as told:
        process = subprocess.Popen([*map(str, words)], cwd=ROOT, stdout=told, stderr=told)
        while process.poll() is None:
            most = max(most, memory(process.pid))
            time.sleep(0.05)
    assert process.returncode == 0, (out.parent / "told").read_text()[-2_000:]
    return time.perf_counter() - started, most / 1024


def memory(pid: int) -> int:
    """The most KiB that a process ever had (Linux); 0 when it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), 0)


def main(sizes: list[int]) -> None:
    """Measure, and print a table."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".bench-") as name:
        before = 0
        for size in sizes:
            make(Path(name) / "archive", before, size)
            before = size
            seconds, most = fold(Path(name) / "archive", Path(name) / f"out{size}")
            again, more = fold(Path(name) / "archive", Path(name) / f"out{size}")
            rows += [
                Row(f"{size:,} sessions: each", seconds / size * 1e3, "ms"),
                Row(f"{size:,} sessions: memory of the leading process", most, "MB"),
                Row(f"{size:,} sessions, all done before: each", again / size * 1e3, "ms"),
                Row(f"{size:,} sessions, all done before: memory", more, "MB"),
            ]
            print("\n".join(lines(rows[-4:])[2:]), flush=True)
    print(machine())
    print("\n".join(lines(rows)))


if __name__ == "__main__":
    main([int(size.replace(",", "")) for size in sys.argv[1:]] or [1_000, 10_000, 100_000])
