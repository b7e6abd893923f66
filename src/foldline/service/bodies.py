"""The body of a request, read up to a limit."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request

from foldline.service.problems import Refused

SECONDS: Final = 120.0  # that a client may take to send a body


class BodyError(Refused):
    """A body that is not taken."""


class TooLarge(BodyError):
    """The body is larger than may be."""

    def __init__(self, detail: str) -> None:
        super().__init__(413, "the body is too large", detail)


class TooSlow(BodyError):
    """The body did not come in time."""

    def __init__(self, detail: str) -> None:
        super().__init__(408, "the body came too slowly", detail)


async def read_body(request: Request, most: int) -> bytes:
    """Return the whole body; raises TooLarge as soon as it is known to exceed `most` bytes, or TooSlow."""
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > most:
        raise TooLarge(f"the body has {int(told):,} bytes; {most:,} may be sent ([serve] max_body)")
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > most:
                    raise TooLarge(f"the body has more than {most:,} bytes ([serve] max_body)")
    except TimeoutError as error:
        raise TooSlow(f"the body did not come within {SECONDS:.0f} s") from error
    return bytes(body)
