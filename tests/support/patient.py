"""`httpx2` with a timeout of two minutes: on a busy machine its default of five seconds is too short."""

from __future__ import annotations

from functools import partial

import httpx2

SECONDS = 120

get = partial(httpx2.get, timeout=SECONDS)
post = partial(httpx2.post, timeout=SECONDS)
put = partial(httpx2.put, timeout=SECONDS)
delete = partial(httpx2.delete, timeout=SECONDS)
request = partial(httpx2.request, timeout=SECONDS)
stream = partial(httpx2.stream, timeout=SECONDS)
Client = partial(httpx2.Client, timeout=SECONDS)
AsyncClient = partial(httpx2.AsyncClient, timeout=SECONDS)
