"""Wrong tokens are slowed by the address that they come from; right ones never are."""

from __future__ import annotations

import pytest
from tests.service.served import run_service
from tests.support import patient

from foldline.service import tenants
from foldline.service.tenants import ADDRESSES, GUESS_SECONDS, MOST_GUESSES, Guesses

pytestmark = pytest.mark.slow

TOKEN = "osprey.55c1e07ab2d94f36"


class Clock:
    """A clock that goes when it is told to."""

    now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def send(counted, address, times):
    for _ in range(times):
        counted.add(address)


def test_an_address_waits_after_some_wrong_tokens_until_a_minute_after_the_first(clock):
    counted = Guesses(clock)
    for second in range(MOST_GUESSES):
        assert counted.wait("192.0.2.7") == 0
        clock.now = 1_000.0 + second
        counted.add("192.0.2.7")
    assert counted.wait("192.0.2.7") == GUESS_SECONDS - (MOST_GUESSES - 1)
    assert counted.wait("192.0.2.8") == 0
    clock.now = 1_000.0 + GUESS_SECONDS - 1
    assert counted.wait("192.0.2.7") == 1
    clock.now += 1
    assert counted.wait("192.0.2.7") == 0
    send(counted, "192.0.2.7", MOST_GUESSES - 1)
    assert counted.wait("192.0.2.7") == 0
    counted.add("192.0.2.7")
    assert counted.wait("192.0.2.7") == GUESS_SECONDS


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::7", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::7", "2001:db8:1:3::7", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("::ffff:192.0.2.7", "192.0.2.7", True),
        ("::ffff:192.0.2.7", "::ffff:192.0.2.8", False),
        ("::1", "127.0.0.1", False),
        ("unknown", "x" * 100_000, True),  # a proxy's words for an address are no way round
        ("", "_hidden", True),
    ],
)
def test_addresses_that_one_client_has_are_one(clock, one, other, same):
    counted = Guesses(clock)
    send(counted, one, MOST_GUESSES)
    assert counted.wait(one) > 0
    assert (counted.wait(other) > 0) == same


def test_many_addresses_take_bounded_memory_and_who_sends_on_is_not_forgotten(clock):
    counted = Guesses(clock)
    send(counted, "192.0.2.7", MOST_GUESSES)
    for number in range(3 * ADDRESSES):
        counted.add(f"2001:db8:{number >> 16:x}:{number & 0xFFFF:x}::1")
        if number % 1_000 == 0:
            counted.add("192.0.2.7")
    assert len(counted) == ADDRESSES
    assert counted.wait("192.0.2.7") > 0
    assert counted.wait("2001:db8:0:5::1") == 0


BODY = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
FACES = [
    ("GET", "/api/sessions", {}),
    ("POST", "/api/fold", {"json": {"messages": []}}),
    ("POST", "/v1/messages", {"json": BODY}),
    ("POST", "/v1/chat/completions", {"json": BODY}),
    ("GET", "/v1/files", {}),
    ("GET", "/metrics", {}),
    ("GET", "/web/", {}),
    ("GET", "/web/s/one", {}),
    ("POST", "/web/login", {"data": {"token": "a-wrong-token-of-many"}}),
]
WAYS = [
    lambda token: {"authorization": f"Bearer {token}"},
    lambda token: {"x-api-key": token},
    lambda token: {"foldline-token": token},
    lambda token: {"cookie": f"foldline-token={token}"},
]


@pytest.fixture
def at(monkeypatch):
    """A service with a token, in which a minute never ends."""
    monkeypatch.setattr(tenants, "GUESS_SECONDS", 3_600.0)
    with run_service(
        store="memory://", tokens={TOKEN: "default"}, openai_upstream="http://127.0.0.1:9/v1"
    ) as url:
        yield url


def guess(at, number, face, way):
    method, path, more = face
    return patient.request(method, at + path, headers=way(f"wrong-token-number-{number}"), **more)


@pytest.mark.parametrize("face", FACES, ids=lambda face: face[1])
def test_guesses_at_every_face_are_told_to_wait_and_right_tokens_are_not(at, face):
    first = [guess(at, number, face, WAYS[number % 4]) for number in range(MOST_GUESSES)]
    assert {one.status_code for one in first} <= {401, 303}
    method, path, more = face
    for found in (
        guess(at, MOST_GUESSES, face, WAYS[0]),
        guess(at, MOST_GUESSES, face, WAYS[3]),
        patient.request(method, at + path, **more),
    ):
        assert found.status_code == 429, found.text
        assert 1 <= int(found.headers["retry-after"]) <= 3_600
        assert "too many wrong tokens" in found.text.lower()
    for method, path, _ in FACES[:1] + FACES[4:7]:
        for way in WAYS[2:]:
            found = patient.request(method, at + path, headers=way(TOKEN))
            assert found.status_code == (502 if path == "/v1/files" else 200), (path, found.text)
    for path in ("/health", "/ready", "/web/login", "/web/static/page.css"):
        assert patient.get(at + path).status_code == 200
    typed = patient.post(f"{at}/web/login", data={"token": TOKEN})
    assert (typed.status_code, typed.headers["location"]) == (303, "/web/")
    assert typed.cookies["foldline-token"] == TOKEN


def test_a_guess_counts_at_all_faces_together(at):
    statuses = [
        guess(at, number, FACES[number % len(FACES)], WAYS[0]).status_code for number in range(MOST_GUESSES)
    ]
    assert 429 not in statuses
    for face in FACES:
        assert guess(at, 99, face, WAYS[1]).status_code == 429


def test_who_sends_no_token_or_a_right_one_is_not_counted(at):
    for _ in range(3 * MOST_GUESSES):
        assert patient.get(f"{at}/api/sessions").status_code == 401
        assert patient.get(f"{at}/api/sessions", headers=WAYS[0](TOKEN)).status_code == 200
        assert patient.post(f"{at}/web/login", data={"token": " "}).status_code == 401


def test_a_proxy_on_this_machine_tells_the_client_s_address(at):
    def ask(client, number):
        headers = {"x-forwarded-for": client, "foldline-token": f"wrong-token-number-{number}"}
        return patient.get(f"{at}/api/sessions", headers=headers).status_code

    assert [ask("192.0.2.7", number) for number in range(MOST_GUESSES + 1)] == [401] * MOST_GUESSES + [429]
    assert ask("192.0.2.8", 0) == 401
