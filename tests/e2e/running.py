"""The real command in a process of its own, away from the home of whoever runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "foldline")
EXAMPLES = Path(__file__).parents[2] / "examples"


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("FOLDLINE_") and key not in ("COLUMNS", "FORCE_COLOR", "NO_COLOR")
    }
    return {**kept, "HOME": str(home), **more}


def run(
    home: Path, *args: object, env: dict[str, str] | None = None, **more: Any
) -> subprocess.CompletedProcess[bytes]:
    words = [*COMMAND, *(str(arg) for arg in args)]
    return subprocess.run(
        words, capture_output=True, check=False, cwd=home, env=environment(home, **(env or {})), **more
    )
