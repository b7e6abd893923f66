from __future__ import annotations

import pytest


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    """The URL of a store of each kind that needs no server."""
    return "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 's.db'}"
