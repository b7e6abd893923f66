"""How long do `import foldline` and `foldline --help` take in a new process, beside Python itself?"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from table import Row

TIMES = 15


def took(*args: str) -> float:
    """Return the median time of a new process, in seconds."""
    found: list[float] = []
    for _ in range(TIMES):
        start = time.perf_counter()
        subprocess.run([sys.executable, *args], check=True, stdout=subprocess.DEVNULL)
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def main(*, full: bool = False) -> list[Row]:
    """Measure a bare Python, the import, what the library's two entry points load, and the command's help."""
    del full
    bare = took("-c", "pass")
    loads = "import foldline; foldline.compact; foldline.open"
    return [
        Row("python -c pass", bare * 1e3, "ms"),
        Row("import foldline, beside it", (took("-c", "import foldline") - bare) * 1e3, "ms", most=80),
        Row("import, compact and open loaded, beside it", (took("-c", loads) - bare) * 1e3, "ms"),
        Row("foldline --help", took("-m", "foldline", "--help") * 1e3, "ms", most=250),
    ]
