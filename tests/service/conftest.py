from __future__ import annotations

import pytest
from tests.service.chats import Chat


@pytest.fixture
def chat():
    made = []

    def make(url, **headers):
        made.append(Chat(url, **headers))
        return made[-1]

    yield make
    for one in made:
        one.close()
