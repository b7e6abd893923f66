"""How long do `import foldline` and `foldline --help` take in a new process, beside Python itself?"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from budgets.table import Row

TIMES = 15


def took(cache: str, *args: str) -> float:
    """Return the median time of a new process, in seconds; its modules are compiled already, as installed ones are."""
    known = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    found: list[float] = []
    for _ in range(TIMES):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, *args],
            check=True,
            stdout=subprocess.DEVNULL,
            env={**known, "PYTHONPYCACHEPREFIX": cache},
        )
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def main(*, full: bool = False) -> list[Row]:
    """Measure a bare Python, the import, what the library's two entry points load, and the command's help."""
    del full
    loads = "import foldline; foldline.compact; foldline.open"
    with tempfile.TemporaryDirectory() as cache:
        bare = took(cache, "-c", "pass")
        imported = took(cache, "-c", "import foldline") - bare
        loaded = took(cache, "-c", loads) - bare
        helped = took(cache, "-m", "foldline", "--help")
    return [
        Row("python -c pass", bare * 1e3, "ms"),
        Row("import foldline, beside it", imported * 1e3, "ms", most=80),
        Row("the same with compact and open, beside it", loaded * 1e3, "ms"),
        Row("foldline --help", helped * 1e3, "ms", most=250),
    ]
