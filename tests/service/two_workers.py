"""A fixture that puts two services over one store in place of each one; every request goes to the other."""

from __future__ import annotations

import pytest
from tests.service.served import WORKERS


@pytest.fixture(autouse=True)
def two_workers():
    token = WORKERS.set(2)
    yield
    WORKERS.reset(token)
