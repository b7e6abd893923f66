import pytest
from tests.support.live import close_sessions_on

from foldline.stores import open_store


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def store(request, tmp_path):
    urls = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path / 'sessions.db'}"}
    opened = open_store(urls.get(request.param) or request.getfixturevalue("postgres_url"))
    yield opened
    await close_sessions_on(opened)
    await opened.close()
