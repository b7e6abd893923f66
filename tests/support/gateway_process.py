"""`foldline serve` as a program of its own, always at the same port, so that it can be killed and started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import weakref
from pathlib import Path


class GatewayProcess:
    """A gateway in front of one model. `folder` is its home and holds its store, `s.db`."""

    def __init__(self, folder: Path, model: str, *, window: int = 12_000, summaries: str = "offline") -> None:
        held = socket.socket()  # while the gateway is down, nobody else is given its port
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        weakref.finalize(self, held.close)
        port = held.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.store = f"sqlite:///{folder}/s.db"
        self._command = [
            *(sys.executable, "-m", "foldline", "serve", "--port", str(port), "--summaries", summaries),
            *("--store", self.store, "--window", str(window)),
            *("--openai-upstream", model, "--anthropic-upstream", model),
        ]
        self._environment = {**os.environ, "HOME": str(folder)}

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, text=True, env=self._environment, start_new_session=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith("http://")

    def kill(self) -> None:
        """End it as a power cut would."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._ended()

    def stop(self) -> None:
        self._process.terminate()
        assert self._ended() == 128 + signal.SIGTERM

    def _ended(self) -> int:
        code = self._process.wait(120)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code
