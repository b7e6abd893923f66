"""A client that has its server compact, as Codex does: the gateway answers with an item that it reads again."""

from __future__ import annotations

import contextlib

import msgspec
import openai
import pytest
from tests.service.served import AlternatingClients, run_gateway, run_service
from tests.service.upstream import JSON, Prepared, served_upstream
from tests.support import patient

import foldline
from foldline.core.log.entries import Compacted, Said
from foldline.service.gateway.compaction_item import make_item, read_item
from foldline.testing import Scripted, call, serve_in_thread

pytestmark = pytest.mark.slow

RULE = "Never drop the column berths."
FILLER = "Every word of it is needed. " * 50
TOOL = {
    "type": "function",
    "name": "read",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
TRIGGER = {"type": "compaction_trigger"}
WINDOW = 20_000


def answers(asked):
    return f"Answer {asked.index}. {FILLER}"


def said(text):
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


class Client:
    """An agent that keeps its own list of items, and has the server compact it."""

    def __init__(self):
        self.items = []

    def at(self, url):
        self.client = AlternatingClients(
            lambda one: openai.OpenAI(base_url=f"{one}/v1", api_key="any", max_retries=0, timeout=60), url
        )
        self.at_end(self.client.close)

    def ask(self, text=None, *, items=None):
        self.items += [said(text)] if text else []
        done = self.client.responses.create(model="scripted", input=items or self.items, tools=[TOOL])
        self.items += [one.model_dump(exclude_none=True) for one in done.output]
        return done.output_text

    def compact(self, how="stream"):
        """Compact as Codex does: what the user said stays before the item."""
        given = {"model": "scripted", "input": [*self.items, TRIGGER], "tools": [TOOL]}
        if how == "stream":
            events = list(self.client.responses.create(stream=True, **given))
            kinds = [event.type for event in events]
            assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
            found = [event.item for event in events if event.type == "response.output_item.done"]
            assert found == events[-1].response.output
        elif how == "whole":
            found = self.client.responses.create(**given).output
        else:
            found = self.client.responses.compact(model="scripted", input=self.items).output
        (item,) = [one.model_dump(exclude_none=True) for one in found]
        assert item["type"] == "compaction"
        self.items = [one for one in self.items if one.get("role") == "user"] + [item]
        return item


@pytest.fixture
def codex():
    made = Client()
    with contextlib.ExitStack() as stack:
        made.at_end = stack.callback
        yield made


def sent(model):
    """The newest request that the model was sent, and its kinds of items."""
    return str(model.requests[-1].messages), [one.get("type") for one in model.requests[-1].messages]


async def path_of(place):
    """The entries of the one session of a store."""
    async with contextlib.AsyncExitStack() as stack:
        store = foldline.stores.open_store(place)
        stack.push_async_callback(store.close)
        assert await store.verify() == []
        (info,) = await store.sessions()
        return [entry async for entry in store.path(info.id)]


@pytest.fixture
def place(tmp_path):
    return f"sqlite:///{tmp_path / 's.db'}"


@pytest.mark.parametrize("how", ["stream", "whole", "alone"])
async def test_a_client_compacts_and_goes_on_in_the_same_session(codex, how, place):
    with run_gateway(answers, window=WINDOW, store=place) as (url, model):
        codex.at(url)
        codex.ask(f"Read the tables. {RULE}")
        for number in range(9):
            codex.ask(f"Go on {number}.")
        before = len(model.requests)
        codex.compact(how)
        assert len(model.requests) == before  # no upstream is asked for it
        codex.ask("Now the tides.")
        text, kinds = sent(model)
        latest = model.requests[-1].messages
        codex.ask("And the moon.")
    assert "compaction" not in kinds
    assert RULE in text
    assert "Now the tides." in text
    checkpoint, *kept = latest
    assert "foldline-checkpoint" in str(checkpoint)
    assert "Answer 2. Every" not in str(kept)  # it is folded
    assert [one.refused for one in model.requests if one.refused] == []
    path = await path_of(place)
    words = [one.message.text for one in path if isinstance(one, Said)]
    assert len(words) == 2 * 12
    assert words[-4].startswith("Now the tides.")
    (fold,) = [one.receipt for one in path if isinstance(one, Compacted)]
    assert fold.tokens_after * 2 < fold.tokens_before


async def test_it_compacts_again_in_a_tool_loop_and_behind_a_restart(codex, place):
    def work(asked):
        return call("read") if asked.index % 3 else answers(asked)

    model = Scripted(work, window=WINDOW)
    with serve_in_thread(model) as up:
        for number in range(5):
            with run_service(openai_upstream=up, window=WINDOW, store=place) as url:
                codex.at(url)
                codex.ask(f"Turn {number}. {RULE if not number else ''} {FILLER}")
                while codex.items[-1]["type"] == "function_call":
                    made = codex.items[-1]["call_id"]
                    codex.items.append({"type": "function_call_output", "call_id": made, "output": FILLER})
                    if len(model.requests) % 2:
                        codex.compact()
                    codex.ask()
    assert [one.refused for one in model.requests if one.refused] == []
    assert RULE in sent(model)[0]
    path = await path_of(place)
    words = [one.message.text for one in path if isinstance(one, Said)]
    for number in range(5):
        assert sum(f"Turn {number}." in one for one in words) == 1
    assert sum(isinstance(one, Compacted) for one in path) > 1


async def test_what_is_undone_or_folded_further_is_sent_so(codex, place):
    with run_gateway(answers, window=WINDOW, store=place) as (url, model):
        codex.at(url)
        for number in range(6):
            codex.ask(f"Question {number}. {FILLER}")
        codex.compact()
        async with foldline.open(place, (await path_name(place))) as session:
            await session.undo()
        codex.ask("After the undo.")
        assert len(sent(model)[1]) == 13
        for number in range(30):
            codex.ask(f"More {number}. {FILLER}")
        assert len(sent(model)[1]) < 2 * 36
    assert [one.refused for one in model.requests if one.refused] == []


async def path_name(place):
    store = foldline.stores.open_store(place)
    (info,) = await store.sessions()
    await store.close()
    return info.id


async def test_a_history_from_before_it_and_an_edited_one_behind_it_are_branches(codex, place):
    with run_gateway(answers, window=WINDOW, store=place) as (url, model):
        codex.at(url)
        for number in range(6):
            codex.ask(f"Question {number}. {FILLER}")
        whole = list(codex.items)
        codex.compact()
        folded = list(codex.items)
        codex.ask("Behind it.")
        codex.items = [*folded, said("Behind it, but otherwise.")]
        codex.ask()
        assert "Behind it." not in sent(model)[0]
        codex.items = [*whole[:4], said("Before it.")]
        codex.ask()
        assert "Question 1." in sent(model)[0]
        assert "Question 3." not in sent(model)[0]
        codex.items = [*folded, said("Behind it once more.")]
        codex.ask()
        assert "Before it." not in sent(model)[0]
        assert "Behind it once more." in sent(model)[0]
    assert [one.refused for one in model.requests if one.refused] == []
    words = [one.message.text for one in await path_of(place) if isinstance(one, Said)]
    assert len(words) == 12 + 2


@pytest.mark.parametrize(
    "where", ["another gateway", "a session that is gone", "no session found", "server state"]
)
async def test_the_item_is_read_where_its_session_is_not(codex, where, place, tmp_path):
    with run_gateway(answers, window=WINDOW, store=place) as (url, _):
        codex.at(url)
        codex.ask(f"Read the tables. {RULE}")
        for number in range(8):
            codex.ask(f"Go on {number}.")
        item = codex.compact()
    if where == "a session that is gone":
        store = foldline.stores.open_store(place)
        await store.purge(await path_name(place))
        await store.close()
    if where == "another gateway":
        place = f"sqlite:///{tmp_path / 'other.db'}"
    if where == "no session found":
        known = read_item(msgspec.json.encode(item))
        codex.items[-1] = make_item(known.session, "0" * 64, known.view)
    more = {"conversation": "conv_1"} if where == "server state" else {}
    with served_upstream(window=WINDOW, store=place) as (url, model):
        model.prepared[""] = Prepared(200, JSON, [b"{}"])
        body = {"model": "m", "input": [*codex.items, said("And now?")], **more}
        assert patient.post(f"{url}/v1/responses", json=body).status_code == 200
    given = msgspec.json.decode(model.received[""][0].body)["input"]
    assert "compaction" not in [one.get("type") for one in given]
    assert RULE in str(given)
    assert given[-1]["content"][0]["text"] == "And now?"


@pytest.mark.parametrize(
    "content", ["gAAAAABo", "foldline-1.no base64", "foldline-1.e30=", "foldline-2.eyJ9", "x foldline-1."]
)
def test_what_is_not_ours_passes_untouched(content):
    body = {"model": "m", "input": [{"type": "compaction", "encrypted_content": content}, said("And now?")]}
    raw = msgspec.json.format(msgspec.json.encode(body))
    with served_upstream() as (url, model):
        model.prepared[""] = Prepared(200, JSON, [b"{}"])
        patient.post(f"{url}/v1/responses", content=raw)
        stateful = {"model": "m", "previous_response_id": "resp_1", "input": "Hi."}
        patient.post(f"{url}/v1/responses/compact", json=stateful)
    assert [one.path for one in model.received[""]] == ["/v1/responses", "/v1/responses/compact"]
    assert model.received[""][0].body == raw


def test_a_short_history_has_its_item_and_an_empty_one_none(codex):
    with run_gateway(answers) as (url, model):
        codex.at(url)
        codex.ask(RULE)
        item = codex.compact()
        codex.ask("Go on.")
        with pytest.raises(openai.BadRequestError, match="nothing to compact"):
            codex.client.responses.create(model="m", input=[TRIGGER])
    assert RULE in str(msgspec.json.decode(read_item(msgspec.json.encode(item)).view[0]))
    assert RULE in sent(model)[0]
    assert "compaction" not in sent(model)[1]


def test_a_store_that_fails_is_no_reason_to_stand_still(codex, place, tmp_path):
    with run_gateway(answers, window=WINDOW, store=place) as (url, model):
        codex.at(url)
        codex.ask(RULE)
        for number in range(8):
            codex.ask(f"Go on {number}. {FILLER}")
        for file in tmp_path.iterdir():
            file.write_bytes(b"no database " * 1_000)
        codex.compact()
        codex.ask("Go on.")
    assert RULE in sent(model)[0]
    assert "compaction" not in sent(model)[1]
    assert [one.refused for one in model.requests if one.refused] == []
