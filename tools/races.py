"""Run all tests five times in random order beside four busy loops, to make tests with a race fail.

.venv/bin/python tools/races.py [ROUNDS [BUSY]]

Each round prints its seed; `pytest --randomly-seed=SEED` repeats its order.
"""

from __future__ import annotations

import multiprocessing
import random
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--dist", "worksteal"]


def spin() -> None:
    while True:
        pass


def main(rounds: int = 5, busy: int = 4) -> int:
    loops = [multiprocessing.Process(target=spin, daemon=True) for _ in range(busy)]
    for loop in loops:
        loop.start()
    failed = 0
    for number in range(1, rounds + 1):
        seed = random.SystemRandom().getrandbits(32)
        print(f"round {number} of {rounds}: --randomly-seed={seed}", flush=True)
        command = [*PYTEST, f"--randomly-seed={seed}"]
        failed += subprocess.run(command, cwd=ROOT, check=False).returncode != 0
    print(f"{rounds} rounds beside {busy} busy loops: {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
