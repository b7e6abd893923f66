"""`foldline serve --demo`: the example session with a scripted model, which leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import httpx2
import pytest

pytestmark = pytest.mark.slow


def test_the_demonstration_talks_folds_and_leaves_nothing(tmp_path):
    command = [sys.executable, "-m", "foldline", "serve", "--demo", "--port", "0"]
    env = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path / "home")}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as served:
        try:
            url = served.stdout.readline().strip()
            for number in range(3):
                told = httpx2.post(
                    f"{url}/web/s/example/say",
                    data={"text": f"Hello {number}"},
                    follow_redirects=True,
                    timeout=60,
                )
                assert "no model was called" in told.text
            assert "fold-line" in told.text
            assert [one for one in tmp_path.iterdir() if one.name.startswith("foldline-demo-")]
        finally:
            served.send_signal(signal.SIGTERM)
        assert served.wait(120) == 128 + signal.SIGTERM
    assert not [one for one in tmp_path.iterdir() if one.name.startswith("foldline-demo-")]
