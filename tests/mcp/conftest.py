from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def home(clean_home):
    return clean_home


@pytest.fixture
def here(tmp_path):
    return tmp_path / "here"
