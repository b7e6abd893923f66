"""Tokens that are known by their hash alone, what each allows, and until when."""

from __future__ import annotations

import base64
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.requests import Request
from tests.cli.calling import run_command
from tests.service.api.client import Client, api, user
from tests.service.served import run_service
from tests.service.upstream import JSON, Prepared, served_upstream
from tests.support import patient

from foldline.config import FILE, ServeSettings, TokenGrant, own_tokens, settings
from foldline.errors import InputError
from foldline.service import tokens
from foldline.service.tenants import Denied, Tenants
from foldline.service.tokens import follows_file, hashed, new_token

PLAIN = "a-plain-token-of-old-days"
READER, WRITER, OWNER, SCRAPER, STALE = (new_token() for _ in range(5))
LATER, BEFORE = (datetime.now(UTC) + timedelta(days=days) for days in (1, -1))
TOKENS = {
    PLAIN: "a",
    hashed(READER): TokenGrant("a", ("read",), LATER),
    hashed(WRITER): TokenGrant("a", ("read", "write")),
    hashed(OWNER): TokenGrant("a"),
    hashed(SCRAPER): TokenGrant("a", ("metrics",)),
    hashed(STALE): TokenGrant("a", expires=BEFORE),
}
BODY = {"model": "m", "messages": [user("Hello.")]}


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_each_token_may_do_what_it_allows_and_no_more():
    with api(tokens=TOKENS, headers=bearer(PLAIN), openai_upstream="http://127.0.0.1:9/v1") as (client, _):
        client.begin("one")
        clients = {token: Client(client.url, **bearer(token)) for token in (READER, WRITER, OWNER, SCRAPER)}
        reader, writer, owner, scraper = clients.values()
        assert reader.get("/sessions/one").json()["info"]["id"] == "one"
        refused = reader.say("one", user("Hello."), status=403)
        assert "'write'" in refused.json()["detail"]
        writer.say("one", user("Hello."))
        for one in (reader, writer, scraper):
            one.send("DELETE", "/sessions/one", 403)
        for path in ("/sessions", "/sessions/one"):
            scraper.get(path, 403)
        for path in ("overview", "s/one", "replay", "replay/none", "replay/none/table.csv"):
            assert patient.get(f"{client.url}/web/{path}", headers=bearer(SCRAPER)).status_code == 403
        gateway = f"{client.url}/v1/chat/completions"
        for token in (READER, SCRAPER):
            found = patient.post(gateway, json=BODY, headers=bearer(token))
            assert (found.status_code, found.json()["error"]["type"]) == (403, "permission_error")
        assert patient.post(gateway, json=BODY, headers=bearer(WRITER)).status_code == 502
        for token, status in {PLAIN: 200, READER: 200, SCRAPER: 200, STALE: 401, "none": 401}.items():
            assert patient.get(f"{client.url}/metrics", headers=bearer(token)).status_code == status
        owner.send("DELETE", "/sessions/one")
        for one in clients.values():
            one.close()


def test_a_page_is_read_and_not_changed_with_a_token_that_reads():
    with api(tokens=TOKENS, headers=bearer(PLAIN)) as (client, _):
        client.begin("one")
        typed = patient.post(f"{client.url}/web/login", data={"token": READER})
        assert typed.status_code == 303
        cookie = {"cookie": f"foldline-token={READER}"}
        assert patient.get(f"{client.url}/web/s/one", headers=cookie).status_code == 200
        for path in ("new", "replay", "replay/none/drop"):
            found = patient.post(f"{client.url}/web/{path}", data={"title": "x"}, headers=cookie)
            assert found.status_code == 403
        assert len(client.get("/sessions").json()["sessions"]) == 1


def test_the_hash_of_a_token_opens_nothing_nor_does_another_text_with_a_hash():
    text = "this-is-no-token-of-ours"
    with run_service(store="memory://", tokens={**TOKENS, hashed(text): "a"}) as url:
        for token in (hashed(READER), hashed(READER).removeprefix("sha256:"), text, READER.upper()):
            assert patient.get(f"{url}/api/sessions", headers=bearer(token)).status_code == 401


@pytest.mark.parametrize("token", [READER, STALE, new_token()], ids=["right", "expired", "unknown"])
def test_what_has_the_form_of_a_token_never_leaves(token):
    places = [
        {"authorization": f"Bearer {token}"},
        {"x-mine": f"key={token};v=1"},
        {"cookie": f"a=1; t={token}"},
        {"authorization": "Basic " + base64.b64encode(f"user:{token}".encode()).decode()},
    ]
    with served_upstream(store="memory://", tokens=TOKENS) as (at, model):
        model.prepared[""] = Prepared(200, JSON, [b"{}"])
        for place in places:
            headers = {**place, "foldline-token": WRITER}
            found = patient.post(f"{at}/v1/chat/completions?key={token}&x=1", json=BODY, headers=headers)
            assert found.status_code == 200, found.text
        assert len(model.received[""]) == len(places)
        for came in model.received[""]:
            sent = f"{came.path} {came.headers}"
            assert "x=1" in came.path
            assert token not in sent
            assert base64.b64encode(token.encode()).decode()[4:-4] not in sent
        found = patient.get(f"{at}/v1/files/{token}", headers={"foldline-token": WRITER})
        assert (found.status_code, token in found.text) == (400, False)


@pytest.mark.parametrize(
    ("tokens", "told"),
    [
        ({"sha256:abc": "a"}, "foldline tokens"),
        ({hashed(READER).upper().replace("SHA", "sha"): "a"}, "foldline tokens"),
        ({hashed(READER): TokenGrant("No such name")}, "no name of a tenant"),
    ],
)
def test_what_cannot_be_a_token_is_told_at_the_start(tokens, told):
    with pytest.raises(InputError, match=told):
        Tenants(ServeSettings(tokens=tokens), "memory://")


def test_a_token_is_made_and_its_line_taken_as_it_stands(tmp_path, capfdbinary):
    words = ["tokens", "acme", "--name", 'the "ci"', "--scope", "read", "--scope", "write", "--days", "30"]
    made = run_command(capfdbinary, *words)
    token, line = made.out.strip(), made.err.partition("[serve.tokens]")[2]
    assert token not in made.err
    (tmp_path / ".foldline").mkdir()
    (tmp_path / ".foldline/settings.toml").write_text(f"[serve.tokens]{line}")
    ((name, grant),) = settings(home=tmp_path, folder=tmp_path, environment={}).serve.tokens.items()
    assert (name, grant.tenant, grant.name) == (hashed(token), "acme", 'the "ci"')
    assert grant.scopes == ("read", "write")
    assert timedelta(days=29) < grant.expires - datetime.now(UTC) < timedelta(days=31)


def test_a_token_is_made_as_json(capfdbinary):
    found = run_command(capfdbinary, "tokens", "acme", "--json").json
    assert found["hash"] == hashed(found["token"])
    assert found["scopes"] == ["read", "write", "admin"]
    assert run_command(capfdbinary, "tokens", "No Name").code == 2


def written(tokens):
    """Write the user's own settings, with these tokens."""
    file = Path.home() / FILE
    file.parent.mkdir(exist_ok=True)
    lines = [f'"{token}" = "{tenant}"' for token, tenant in tokens.items()]
    file.with_suffix(".new").write_text("\n".join(["[serve.tokens]", *lines]))
    file.with_suffix(".new").replace(file)
    return file


@pytest.fixture
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(tokens, "LOOK_SECONDS", 0)


def given(token):
    return Request({"type": "http", "headers": [(b"authorization", f"Bearer {token}".encode())]})


def following(given):
    return Tenants(ServeSettings(tokens=given), "memory://", follows=True)


def known_to(tenants, *tokens):
    return [not isinstance(tenants.find(given(token)), Denied) for token in tokens]


ONE, TWO = hashed(READER), hashed(WRITER)


@pytest.mark.usefixtures("own_home")
def test_a_token_that_is_taken_out_of_the_settings_ends_and_one_that_is_added_is_known():
    written({ONE: "a", TWO: "b"})
    begun = own_tokens()
    tenants = following(begun)
    assert known_to(tenants, READER, WRITER) == [True, True]
    written({TWO: "b"})
    assert known_to(tenants, READER, WRITER) == [False, True]
    assert known_to(following(begun), READER, WRITER) == [False, True]  # a worker that takes another's place
    file = written({ONE: "a"})
    assert known_to(tenants, READER, WRITER) == [True, False]
    file.unlink()
    for one in (tenants, following(begun)):
        assert known_to(one, READER, WRITER, "") == [False, False, False]
        assert one.closed


@pytest.mark.usefixtures("own_home")
def test_a_file_is_seen_as_another_although_size_and_time_are_the_same():
    times = (1_000_000_000, 1_000_000_000)
    os.utime(written({ONE: "a"}), ns=times)
    tenants = following(own_tokens())
    assert known_to(tenants, READER, WRITER) == [True, False]
    os.utime(written({TWO: "a"}), ns=times)
    assert known_to(tenants, READER, WRITER) == [False, True]


@pytest.mark.usefixtures("own_home")
def test_a_file_that_cannot_be_used_changes_nothing_and_is_read_again(caplog):
    file = written({ONE: "a"})
    tenants = following(own_tokens())
    with caplog.at_level("WARNING", "foldline"):
        for text in (
            "[serve.tokens",
            '[serve.tokens]\n"short" = "a"',
            '[serve.tokens]\n"' + TWO + '" = "../b"',
        ):
            file.write_text(text)
            assert known_to(tenants, READER, READER, WRITER) == [True, True, False]
    assert caplog.text.count("the tokens stay as they were") == 3
    written({TWO: "b"})
    assert known_to(tenants, READER, WRITER) == [False, True]


@pytest.mark.usefixtures("own_home")
def test_a_folders_settings_neither_add_a_token_nor_keep_one(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    (folder / FILE).parent.mkdir(parents=True)
    monkeypatch.chdir(folder)
    written({ONE: "a", TWO: "b"})
    tenants = following(own_tokens())
    (folder / FILE).write_text(f'[serve.tokens]\n"{hashed(OWNER)}" = "a"\nbroken')
    written({TWO: "b"})
    assert known_to(tenants, READER, WRITER, OWNER) == [False, True, False]


@pytest.mark.usefixtures("own_home")
def test_only_a_service_with_the_tokens_of_the_file_follows_it():
    written({ONE: "a"})
    assert follows_file(own_tokens())
    assert not follows_file({PLAIN: "c"})
    assert not follows_file({**own_tokens(), PLAIN: "c"})
    written({})
    assert not follows_file({})
