from __future__ import annotations

import pytest
from tests.agent.program import Rpc


@pytest.fixture(autouse=True)
def reaped():
    """No program outlives its test, also where that fails: its pipes would fail whichever test runs next."""
    yield
    while Rpc.running:
        Rpc.running.pop().kill()
