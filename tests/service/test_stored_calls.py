"""A client whose provider keeps the replies: it sends references to them, and the outputs of their calls."""

from __future__ import annotations

import msgspec
import pytest
from tests.dialects.items import call, output, reasoning, response, spoke
from tests.service.upstream import Prepared, served_upstream
from tests.support import patient

from foldline.dialects import get

TURNS = 8
WINDOW = 6_000
WORDS = "The harbour master wants to know it for every quay. " * 40


class Keeping:
    """A client, and the provider that keeps what it replied."""

    def __init__(self, url, model):
        self.url, self.model = url, model
        self.items = []

    def turn(self, k):
        """Ask, be answered with two calls, give their outputs, be answered."""
        asked = f"Which berths are free on day {k}? {WORDS}"
        self.items.append({"role": "user", "content": asked})
        calls = [call(f"c{k}{which}", id=f"fc_{k}{which}") for which in "ab"]
        yield self._ask(reasoning(id=f"rs_{k}"), *calls)
        self.items += [output(f"c{k}{which}", f"BERTH-{k}{which} " * 60) for which in "ab"]
        yield self._ask(spoke(f"Berth {k} is free.", id=f"msg_{k}"))

    def _ask(self, *reply):
        body = msgspec.json.encode(response(*reply))
        self.model.prepared[""] = Prepared(200, [("content-type", "application/json")], [body])
        asked = {"model": "m", "store": True, "input": self.items}
        done = patient.post(f"{self.url}/v1/responses", json=asked, headers={"authorization": "Bearer k"})
        assert done.content == body
        self.items += [{"type": "item_reference", "id": one["id"]} for one in reply]
        return msgspec.json.decode(self.model.received[""][-1].body)["input"]


@pytest.fixture
def keeping():
    with served_upstream(window=WINDOW) as (url, model):
        yield Keeping(url, model)


def test_every_output_goes_with_the_reference_to_its_call_through_folds(keeping):
    given = [sent for k in range(TURNS) for sent in keeping.turn(k)]
    for sent in given:
        assert get("openai-responses").validate(sent) == []
        assert "Late result" not in str(sent)
        calls = {one["id"].removeprefix("fc_") for one in sent if one.get("id", "").startswith("fc_")}
        outputs = {one["call_id"][1:] for one in sent if one.get("type") == "function_call_output"}
        assert calls == outputs
    last = given[-1]
    assert "foldline-checkpoint" in str(last[0])
    assert "Which berths are free on day 0?" in str(last[0])
    assert last[-1]["call_id"] == f"c{TURNS - 1}b"
