from __future__ import annotations

import pytest
from tests.agent.program import Rpc


@pytest.fixture(autouse=True)
def kill_programs():
    """Kill the programs that a test started, even if it failed: open pipes would fail the next test."""
    yield
    while Rpc.running:
        Rpc.running.pop().kill()
