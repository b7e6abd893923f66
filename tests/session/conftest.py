import pytest

from foldline.stores import open_store


@pytest.fixture(params=["memory", "sqlite"])
async def store(request, tmp_path):
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path / 'sessions.db'}"
    opened = open_store(url)
    yield opened
    await opened.close()
