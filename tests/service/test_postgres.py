"""The service over PostgreSQL: the API's tests, two services over one database, and a schema for each tenant."""

from __future__ import annotations

import pytest
from tests.service.api.client import api
from tests.service.api.test_concurrency import (  # noqa: F401
    test_a_change_holds_for_the_leaf_that_the_client_knows,
    test_a_repeated_key_gives_the_first_answer,
    test_of_clients_that_know_the_same_leaf_one_appends,
    test_requests_with_one_key_at_the_same_time_are_one,
)
from tests.service.api.test_folding import (  # noqa: F401
    test_a_preview_is_dropped_and_is_no_other_sessions,
    test_a_preview_is_shown_edited_and_committed,
    test_compact_undo_redo,
)
from tests.service.api.test_keys import test_messages_that_a_dead_worker_appended_are_not_appended_again  # noqa: F401

from foldline.errors import InputError
from foldline.stores.postgres_connection import read_url
from foldline.stores.urls import url_beside

pytest.importorskip("psycopg", reason="needs the extra foldline[postgres]")


@pytest.fixture
def store(postgres_url):
    return postgres_url


@pytest.fixture
def client(postgres_url):
    with api(store=postgres_url) as (found, _):
        yield found


def test_a_session_goes_past_its_window_over_two_services(store):
    with api(store=store, window=20_000) as (one, _), api(store=store, window=20_000) as (two, _):
        one.begin("s")
        for number in range(12):
            client = (one, two)[number % 2]
            client.turn("s", f"Question {number}. " + "Tell me all of it. " * 400)
        shown = [client.get("/sessions/s/view").json() for client in (one, two)]
        assert shown[0] == shown[1]
        assert one.get("/sessions/s").json()["info"]["compactions"] >= 1


def test_each_tenant_has_a_schema_of_its_own(store):
    tokens = {"secret-of-tenant-a": "a", "secret-of-tenant-b": "b"}
    with (
        api(store=store, tokens=tokens, headers={"Authorization": "Bearer secret-of-tenant-a"}) as (a, _),
        api(store=store, tokens=tokens, headers={"Authorization": "Bearer secret-of-tenant-b"}) as (b, _),
    ):
        a.begin("mine")
        assert [one["id"] for one in a.get("/sessions").json()["sessions"]] == ["mine"]
        assert b.get("/sessions").json()["sessions"] == []
        b.begin("mine")
        b.say("mine", {"role": "user", "content": "not for a"})
        assert a.get("/sessions/mine").json()["info"]["messages"] == 0


def test_the_url_of_a_tenant_names_its_schema():
    url = "postgresql://me:p%40ss@host:5433/db?sslmode=require&options=-c%20x.y%3D1"
    target, other = read_url(url), read_url(url_beside(url, "acme"))
    assert (target.schema, other.schema) == ("foldline", "foldline@acme")
    assert other.parameters == target.parameters
    assert read_url(url_beside(f"{url}&schema=mine", "b")).schema == "mine@b"
    with pytest.raises(InputError, match="63"):
        read_url(url_beside(url, "x" * 63))
