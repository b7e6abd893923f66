"""The TypeScript client, generated from the document of a service and used by Node.js: `make soak`, where npm reaches
its registry."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.service.api.client import api

pytestmark = pytest.mark.soak

CLIENT = Path("clients/typescript")
TOKEN = "token-for-the-typescript-client"


def test_the_client_is_generated_and_talks_to_the_service(tmp_path):
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("no npm: install Node.js with npm")
    folder = tmp_path / "client"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    with api(["Hello."], tokens={TOKEN: "default"}) as (client, _):

        def run(*words):
            done = subprocess.run(
                [npm, *words],
                cwd=folder,
                env={**os.environ, "FOLDLINE_URL": client.url},
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        run("install", "--no-fund", "--no-audit")
        run("run", "build")
        told = run("test", "--silent", "--", TOKEN)
    assert json.loads(told.strip().splitlines()[-1])[-1] == "done"
