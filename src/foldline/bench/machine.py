"""The machine of a measurement."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """Describe this machine: cores, processor, system, Python."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = names[0] if names else platform.processor()
    return f"{os.cpu_count()} cores of {processor}, {platform.system()}, Python {platform.python_version()}"
