"""Models for tests: scripted or faulty, as strict as the real APIs, in this process or behind HTTP.

    from foldline.testing import Scripted, call, serve

    model = Scripted([call("read", path="a.py"), "It prints hi."])
    async with serve(model) as url:
        client = anthropic.AsyncAnthropic(base_url=url, api_key="test")

The server needs the extra `testing` (h11); the models themselves need nothing.
"""

from typing import TYPE_CHECKING, Any

from foldline.testing.answers import Answer, Refusal, call, calls
from foldline.testing.faulty import FAULTS, Fault, Faulty
from foldline.testing.request import Asked
from foldline.testing.scripted import Scripted
from foldline.testing.wire import Gate

if TYPE_CHECKING:
    from foldline.testing.server import serve, serve_in_thread

__all__ = [
    "FAULTS",
    "Answer",
    "Asked",
    "Fault",
    "Faulty",
    "Gate",
    "Refusal",
    "Scripted",
    "call",
    "calls",
    "serve",
    "serve_in_thread",
]


def __getattr__(name: str) -> Any:
    """Load the server at its first use, because it needs an extra."""
    if name in ("serve", "serve_in_thread"):
        try:
            from foldline.testing import server  # noqa: PLC0415  an optional extra
        except ModuleNotFoundError as error:
            if error.name != "h11":
                raise
            told = "the HTTP server needs h11: pip install 'foldline[testing]'"
            raise ModuleNotFoundError(told, name=error.name) from error
        return getattr(server, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
