"""An operation of the API: what it takes, what it answers, and who does it."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from starlette.responses import Response

from foldline.service.api.idempotency import Remembered
from foldline.service.api.state import ApiState
from foldline.service.tenants import Tenant
from foldline.session.session import Session

T = TypeVar("T")

JSON: Final = "application/json"
STREAM: Final = "text/event-stream"
BYTES: Final = "application/octet-stream"
SESSION: Final = "{session}"  # the place of a session's id in a path

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
NewId: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$(?!\n)", description="The id of a session")
]
Words: TypeAlias = Annotated[str, msgspec.Meta(max_length=100_000)]
Title: TypeAlias = Annotated[str, msgspec.Meta(max_length=1_000)]
Page: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Offset: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Target: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**53, description="A budget of the view in tokens")]


class ApiCall(msgspec.Struct):
    """One request, checked: whose it is, its session (where the path names one), query, body, and names.

    `raw` is the body as it came; `remembered` is there where the request has an idempotency key.
    """

    state: ApiState
    tenant: Tenant
    names: dict[str, str]
    query: Any
    body: Any
    raw: bytes
    found: Session | None = None
    remembered: Remembered | None = None

    @property
    def again(self) -> bool:
        """Whether an earlier try under the request's key may have done it."""
        return self.remembered is not None and self.remembered.again

    @property
    def token(self) -> str:
        """Letters for the id of what the request begins: the same ones where it is sent again."""
        return secrets.token_hex(8) if self.remembered is None else self.remembered.record.token

    @property
    def session(self) -> Session:
        """The session that the path names."""
        assert self.found is not None
        return self.found


class ApiResult(msgspec.Struct):
    """What an operation answers: a value, the status where it is not the operation's own, more headers."""

    value: Any = None
    status: int | None = None
    headers: dict[str, str] = {}


Run: TypeAlias = Callable[[ApiCall], Awaitable[ApiResult | Response]]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation.

    `body` and `query` are the types that are read, `result` the one that is answered in JSON (None: nothing,
    or another `media`). `takes` is the media type of the body; `may_miss` says that it may be left out.
    `changes` says that `If-Match` is looked at: `held` keeps other changes off until the operation has ended;
    one that is not is cancelled where its client leaves.
    A POST that changes, or begins, a session takes an idempotency key; `resumes` says that the operation
    finds out by itself what an earlier try under its key has done.
    """

    name: str
    method: Method
    path: str
    about: str
    run: Run
    body: Any = None
    query: Any = None
    result: Any = None
    status: int = 200
    media: str = JSON
    takes: str = JSON
    changes: bool = False
    held: bool = True
    keyed: bool = False
    resumes: bool = False

    @property
    def of_session(self) -> bool:
        """Whether the path names a session."""
        return SESSION in self.path
