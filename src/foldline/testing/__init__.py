"""For tests of agents: models, scripted or faulty, as strict as the real APIs; checks of recorded sessions.

    from foldline.testing import Scripted, call, serve

    model = Scripted([call("read", path="a.py"), "It prints hi."])
    async with serve(model) as url:
        client = anthropic.AsyncAnthropic(base_url=url, api_key="test")

    assert check_session("recordings/login.jsonl", window=60_000) == []

The server needs the extra `testing` (h11); the models themselves need nothing.
"""

from typing import TYPE_CHECKING, Any

from foldline.testing.answers import Answer, Refusal, call, calls
from foldline.testing.faulty import FAULTS, Fault, Faulty
from foldline.testing.request import Asked
from foldline.testing.scripted import Scripted
from foldline.testing.wire import Gate

if TYPE_CHECKING:
    from foldline.lab.recordings import SessionProblem, assert_view_valid, check_session
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
    "SessionProblem",
    "assert_view_valid",
    "call",
    "calls",
    "check_session",
    "serve",
    "serve_in_thread",
]


def __getattr__(name: str) -> Any:
    """Load the server, which needs an extra, and the checks, which replay sessions, at their first use."""
    if name in ("serve", "serve_in_thread"):
        try:
            from foldline.testing import server  # noqa: PLC0415  an optional extra
        except ModuleNotFoundError as error:
            if error.name != "h11":
                raise
            text = "the HTTP server needs h11: pip install 'foldline[testing]'"
            raise ModuleNotFoundError(text, name=error.name) from error
        return getattr(server, name)
    if name in ("SessionProblem", "assert_view_valid", "check_session"):
        from foldline.lab import recordings  # noqa: PLC0415  above this package

        return getattr(recordings, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
