"""Structs that are read are learnt before threads are: msgspec 0.22 crashes where several are the first to read one."""

from __future__ import annotations

import ast
import gc
import importlib
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import foldline
from foldline.config import ServeSettings, Settings
from foldline.service.app import Service

ROOT = Path(foldline.__file__).parent
ONE_THREAD = ("agent", "cli", "lab", "bench", "tui", "wrapping", "service")  # service: learnt at its start


def is_learnt(kind) -> bool:
    return any(type(one).__name__ == "StructInfo" for one in gc.get_referents(kind))


def read_by(path: Path) -> list[str]:
    """The structs that a file has msgspec read by name."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("msgspec."):
            given = [*node.args[1:2], *(word.value for word in node.keywords if word.arg == "type")]
            found += [one.id for one in given if isinstance(one, ast.Name)]
    return found


def unlearnt() -> list[str]:
    """What a library's user could read first in two threads, in this process."""
    found = []
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT.parent).with_suffix("")
        if name.parts[1] in ONE_THREAD or name.parts[1] == "adapters":
            continue
        for kind in read_by(path):
            read = getattr(importlib.import_module(".".join(name.parts)), kind, None)
            if isinstance(read, type) and issubclass(read, msgspec.Struct) and not is_learnt(read):
                found.append(f"{'.'.join(name.parts)}: {kind}")
    return found


def test_every_struct_that_the_library_reads_is_learnt_where_it_is_defined() -> None:
    code = "from tests.test_structs import unlearnt; print(unlearnt())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_service_has_learnt_all_of_its_structs_when_it_begins() -> None:
    Service(ServeSettings(store="memory://"), Settings())
    kinds = list(msgspec.Struct.__subclasses__())
    for kind in kinds:
        kinds += kind.__subclasses__()
    left = [kind for kind in kinds if kind.__module__.startswith("foldline.") and not is_learnt(kind)]
    for kind in left:
        with pytest.raises((TypeError, NameError)):  # nothing can be read as one
            msgspec.json.Decoder(kind)
