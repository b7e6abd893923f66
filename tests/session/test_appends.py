"""What a host appends is read in time with its size, however many calls are open."""

from __future__ import annotations

import pytest
from tests.support.growth import grows_in_step
from tests.support.talk import tool

from foldline.session.appends import AppendReader


@pytest.mark.slow
def test_results_that_come_one_by_one_do_not_look_at_all_open_calls():
    def read(many: int) -> None:
        still_open = {f"c{number}": "look" for number in range(many)}
        for name in still_open:
            (found,) = AppendReader("openai-chat", lambda: "openai-chat", "leaf", still_open).read(
                [tool(name, "x")]
            )
            assert found.results[0].call_id == name

    assert grows_in_step(read, 4_000)
