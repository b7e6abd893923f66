"""A connection that the gateway keeps may be closed by its server while a request is on its way."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest
from tests.service.served import run_service
from tests.support import patient

from foldline.service.gateway import upstream

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"


class Closing:
    """A server that answers `kept` requests of each connection, and closes it over the next one unanswered."""

    def __init__(self, kept):
        self.kept = kept
        self.requests = []  # the number of each one's connection
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self._listening.close()

    def _accept(self):
        number = 0
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                number += 1
                threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection, number):
        with connection, contextlib.suppress(OSError):
            for _ in range(self.kept):
                if not self._read(connection, number):
                    return
                connection.sendall(ANSWER)
            self._read(connection, number)

    def _read(self, connection, number):
        raw = b""
        while b"\r\n\r\n" not in raw:
            if not (piece := connection.recv(65_536)):
                return False
            raw += piece
        head, _, body = raw.partition(b"\r\n\r\n")
        length = next(
            (
                int(line.split(b":")[1])
                for line in head.split(b"\r\n")
                if line.lower().startswith(b"content-length")
            ),
            0,
        )
        while len(body) < length:
            body += connection.recv(65_536)
        self.requests.append(number)
        return True


@pytest.fixture
def asked():
    with contextlib.ExitStack() as stack:

        def begin(kept):
            server = Closing(kept)
            stack.callback(server.close)
            at = stack.enter_context(run_service(openai_upstream=server.url, store="memory://"))
            return server, lambda: patient.post(
                f"{at}/v1/chat/completions",
                json={"model": "m", "messages": [{"role": "user", "content": "Hello."}]},
                headers={"authorization": "Bearer k"},
            )

        yield begin


def test_a_request_goes_over_a_new_connection_where_a_kept_one_is_closed(asked, monkeypatch):
    monkeypatch.setattr(upstream, "ON_ITS_WAY_SECONDS", 60.0)  # as a busy machine may take
    server, ask = asked(1)
    assert [ask().status_code for _ in range(3)] == [200, 200, 200]
    assert server.requests == [1, 1, 2, 2, 3]  # the second of each is asked again


def test_a_request_that_was_under_way_for_a_while_is_not_sent_again(asked, monkeypatch):
    monkeypatch.setattr(upstream, "ON_ITS_WAY_SECONDS", 0.0)
    server, ask = asked(1)
    assert [ask().status_code for _ in range(2)] == [200, 502]
    assert server.requests == [1, 1]


def test_a_request_over_a_new_connection_is_not_sent_twice(asked):
    server, ask = asked(0)
    assert ask().status_code == 502
    assert server.requests == [1]
