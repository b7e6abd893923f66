"""Requests that are sent again after their worker died, when the session has changed in between."""

from __future__ import annotations

from tests.service.api.client import api, reply, user
from tests.service.api.test_keys import keyed, left_open


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
