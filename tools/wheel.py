"""Build the wheel, and test it in new environments: each Python version, newest and lowest dependencies.

    .venv/bin/python tools/wheel.py [PYTHON ...]

No extra is installed, and nothing is imported from the checkout. uv makes the environments, and downloads missing Python
versions; versions that it cannot get are printed. The wheel stays in dist/.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = str(Path(sys.executable).parent / "uv")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
RESOLUTIONS = {"newest": "highest", "lowest": "lowest-direct"}  # lowest-direct: the bounds in pyproject.toml
LISTED = "print(', '.join(f'{n} {version(n)}' for n in ('click', 'msgspec', 'rich')))"


def run(*words: object, cwd: Path = ROOT, **env: str) -> str:
    """Run a program and return its output; raises RuntimeError with the output if it fails."""
    result = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **env},
        check=False,
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}\n{result.stdout}{result.stderr}")
    return result.stdout


def build() -> Path:
    """Build the wheel in a separate environment, as an installer would."""
    for old in (ROOT / "dist").glob("foldline-*.whl"):
        old.unlink()
    run(UV, "build", "--quiet", "--wheel", "--out-dir", ROOT / "dist")
    (wheel,) = (ROOT / "dist").glob("foldline-*.whl")
    with zipfile.ZipFile(wheel) as packed:
        files = packed.infolist()
    whole = sum(file.file_size for file in files)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB, {len(files)} files of {whole / 1e6:.2f} MB")
    return wheel


def pythons() -> dict[str, str]:
    """Return a search path with all Python versions of pyenv, whose shims provide only one."""
    folders = sorted(Path.home().glob(".pyenv/versions/*/bin"))
    return {"PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]])}


def install(wheel: Path, python: str, resolution: str, folder: Path) -> str:
    """Install without a cache, as on a new machine; return a line with versions, size and seconds."""
    start = time.perf_counter()
    words = ("pip", "install", "--quiet", "--no-cache", "--python", folder / "bin" / "python")
    run(UV, *words, "--resolution", RESOLUTIONS[resolution], wheel, "-r", ROOT / "pyproject.toml")
    seconds = time.perf_counter() - start
    size = sum(file.stat().st_size for file in (folder / "lib").rglob("*") if file.is_file())
    listed = run(folder / "bin" / "python", "-I", "-c", f"from importlib.metadata import version; {LISTED}")
    return f"Python {python}, {resolution}: {listed.strip()}; {size / 1e6:.1f} MB in {seconds:.1f} s"


def check(programs: Path, home: Path) -> None:
    """Run the commands that need no extra, then `check_inside` in the same environment."""
    python = (programs / "python", "-I", "-W", "error")
    foldline = (*python, programs / "foldline")
    env = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    example = run(*python, "-c", "import foldline; print(foldline.__path__[0])").strip() + "/example.jsonl"
    assert run(*foldline, "--version", cwd=home, **env).strip()
    assert "messages" in run(*foldline, "inspect", example, "--json", cwd=home, **env)
    run(*foldline, "compact", example, "--target", 9000, "-o", "folded.jsonl", cwd=home, **env)
    assert (home / "folded.jsonl").stat().st_size
    assert run(*foldline, "demo", cwd=home, **env)
    run(*python, Path(__file__), "inside", cwd=home, **env)


def check_inside() -> None:
    """Check in a new environment that the package is the installed one, has types, and runs the README's Python."""
    import foldline  # noqa: PLC0415 - only the new environment has it

    package = Path(foldline.__file__).parent
    assert package.is_relative_to(sys.prefix), package
    assert (package / "py.typed").is_file()
    readme = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    names = {"__name__": "__main__"}
    with asyncio.Runner() as runner:
        for block in blocks:
            result = eval(compile(block, "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True), names)
            if inspect.iscoroutine(result):
                runner.run(result)


def main(*versions: str) -> int:
    wheel = build()
    passed = failed = 0
    for python in versions or PYTHONS:
        for resolution in RESOLUTIONS:
            with tempfile.TemporaryDirectory() as temporary:
                folder, home = Path(temporary) / "venv", Path(temporary) / "home"
                home.mkdir()
                try:
                    run(UV, "venv", "--quiet", "--python", python, folder, **pythons())
                except RuntimeError as error:
                    print(f"Python {python}: skipped, {str(error).strip().splitlines()[-1].strip()}")
                    break
                try:
                    print(install(wheel, python, resolution, folder), flush=True)
                    check(folder / "bin", home)
                    passed += 1
                except RuntimeError as error:
                    failed += 1
                    print(f"Python {python}, {resolution}: FAILED\n{error}", flush=True)
    print(f"{passed} environments passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(check_inside() if sys.argv[1:] == ["inside"] else main(*sys.argv[1:]))
