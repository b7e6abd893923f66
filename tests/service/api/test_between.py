"""What clients rely on where a session changes between two of their steps: keys of retries, ETags."""

from __future__ import annotations

import asyncio
from contextlib import closing

from tests.service.api.client import Client, api, reply, user
from tests.service.api.test_keys import keyed, left_open

from foldline.session.session import Session


def test_a_message_is_not_taken_for_an_earlier_one_like_it_on_a_path_that_left_the_leaf(tmp_path):
    store = f"sqlite:///{tmp_path / 's.db'}"
    with api(store=store) as (client, _):
        client.begin("one", messages=[user("Begin."), reply("Done."), user("Go on.")])
        (place,) = client.say("one", reply("Done.")).json()["entries"]
        client.say("one", user("Now otherwise."), reply("Done."))
        leaf = client.leaf("one").strip('"')
        client.post("/sessions/one/branch", {"entry": place})
        request = "/sessions/one/messages", {"messages": [user("Go on.")]}
        left_open(store, *request, leaf)
        entries = keyed(client, *request).json()["entries"]
        assert entries == [client.leaf("one").strip('"')]
        assert client.get("/sessions/one/stats").json()["stats"]["total_messages"] == 5
        assert keyed(client, *request).json()["entries"] == entries


def test_the_etag_of_a_read_is_of_no_later_leaf_than_what_it_shows(tmp_path, monkeypatch):
    entries, said = Session.entries, []

    async def entries_after_another_spoke(self, *given):
        if not said:
            said.append(reply("Yes?"))
            with closing(Client(client.url)) as other:
                await asyncio.to_thread(other.say, "one", *said)
        return await entries(self, *given)

    with api(store=f"sqlite:///{tmp_path / 's.db'}") as (client, _):
        client.begin("one", messages=[user("Hello.")])
        known = client.leaf("one")
        monkeypatch.setattr(Session, "entries", entries_after_another_spoke)
        history = client.get("/sessions/one/history")
        assert said
        assert (len(history.json()["items"]), history.headers["etag"]) == (1, known)
        client.say("one", user("Again."), status=412, **{"If-Match": history.headers["etag"]})
