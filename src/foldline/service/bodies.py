"""The body of a request, read up to a limit."""

from __future__ import annotations

from starlette.requests import Request


class TooLarge(Exception):
    """The body is larger than may be."""


async def read_body(request: Request, most: int) -> bytes:
    """Return the whole body; raises TooLarge as soon as it is known to be more than `most` bytes."""
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > most:
        raise TooLarge(f"the body has {int(told):,} bytes; {most:,} may be sent ([serve] max_body)")
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > most:
            raise TooLarge(f"the body has more than {most:,} bytes ([serve] max_body)")
    return bytes(body)
