"""An operation of the API: what it takes, what it answers, and who does it.

Each is a function of a file named for its topic. What the routes, the OpenAPI document, the index and the
pages need to know of it is read from its signature and its docstring, so that it is said once.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import ModuleType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_type_hints,
)

import msgspec
from sse_starlette import ServerSentEvent
from starlette.responses import Response

from foldline.config import Scope
from foldline.core.log.codec import encode_utf8
from foldline.errors import InputError
from foldline.service.api.idempotency import Remembered
from foldline.service.api.state import ApiState
from foldline.service.tenants import Tenant
from foldline.session.session import Session

T = TypeVar("T")

JSON: Final = "application/json"
STREAM: Final = "text/event-stream"
BYTES: Final = "application/octet-stream"
PING_SECONDS: Final = 15  # between two signs of life in a stream
SEND_SECONDS: Final = 60.0  # that a client may take to read what was sent
_TAG: Final = re.compile(r'\s*(W/)?"([^"]*)"\s*')
SESSION: Final = "{session}"  # the place of a session's id in a path

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
NewId: TypeAlias = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$(?!\n)", description="The id of a session")
]
Words: TypeAlias = Annotated[str, msgspec.Meta(max_length=100_000)]
Title: TypeAlias = Annotated[str, msgspec.Meta(max_length=1_000)]
Cursor: TypeAlias = Annotated[str, msgspec.Meta(max_length=1_000)]
Page: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Offset: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Target: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**53, description="A budget of the view in tokens")]


class ApiCall(msgspec.Struct):
    """One request, checked: whose it is, the names in its path, its session (where the path names one).

    `given` is the query and the body as they are read, `raw` the body as it came, `headers` those of the
    answer, `asked` those of the request; `remembered` is there where the request has an idempotency key.
    `key` is a provider's that the client pays with. A stream ends when `is_allowed` says that its token was
    revoked or has expired.
    """

    state: ApiState
    tenant: Tenant
    names: dict[str, str]
    given: dict[str, Any]
    raw: bytes = b""
    key: str | None = None
    asked: Mapping[str, str] = {}
    headers: dict[str, str] = {}
    found: Session | None = None
    remembered: Remembered | None = None
    is_allowed: Callable[[], bool] = lambda: True

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


class OperationSettings(TypedDict, total=False):
    """What an operation may have otherwise than most.

    `changes` says that `If-Match` is looked at: `held` keeps other changes off until the operation has ended;
    one that is not is cancelled where its client leaves.
    A POST that changes, or begins, a session takes an idempotency key (`keyed`); `resumes` says that the
    operation finds out by itself what an earlier try under its key has done. `scope` is what a token must
    allow, where that is not to read (GET) or to write; `example` is a body as a client may send it.
    """

    status: int
    media: str
    takes: str
    changes: bool
    held: bool
    keyed: bool
    resumes: bool
    read: Callable[[bytes], Any]
    scope: Scope
    example: Any


class Operation(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One operation, as `operation` makes it of a function.

    `body` and `query` are the types that are read, `result` the one that is answered in JSON (None: nothing,
    or another `media`). `takes` is the media type of the body, which `read` reads where it is no plain JSON.
    `topic` is the file that it stands in.
    """

    name: str
    topic: str
    about: str
    method: Method
    path: str
    run: Callable[..., Awaitable[T]]
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
    read: Callable[[bytes], Any] | None = None
    scope: Scope | None = None
    example: Any = None

    @property
    def needs(self) -> Scope:
        """What a token must allow."""
        return self.scope or ("read" if self.method == "GET" else "write")

    @property
    def of_session(self) -> bool:
        """Whether the path names a session."""
        return SESSION in self.path


def operation(
    method: Method, path: str, **settings: Unpack[OperationSettings]
) -> Callable[[Callable[..., Awaitable[T]]], Operation[T]]:
    """Make an operation of a function.

    The function's name in camel case, the first line of its docstring, its parameters `body` and `query` and
    what it returns are the API's: an answer in JSON, or a response that it made itself.
    """

    def made(run: Callable[..., Awaitable[T]]) -> Operation[T]:
        hints = get_type_hints(run, include_extras=True)
        first, *others = run.__name__.split("_")
        return Operation(
            name=first + "".join(word.capitalize() for word in others),
            topic=run.__module__.rpartition(".")[2],
            about=(run.__doc__ or "").partition("\n")[0].removesuffix("."),
            method=method,
            path=path,
            run=run,
            body=hints.get("body"),
            query=hints.get("query"),
            result=None if hints["return"] in (Response, type(None)) else hints["return"],
            **settings,
        )

    return made


def operations_of(topic: ModuleType) -> Iterator[Operation[Any]]:
    """Yield the operations that a file defines, in its order."""
    name = topic.__name__.rpartition(".")[2]
    for one in vars(topic).values():
        if isinstance(one, Operation) and one.topic == name:
            yield cast("Operation[Any]", one)


# ---- what a request says beside its body


def decoded_query(query: Mapping[str, str], kind: Any) -> Any:
    """Return a query as its type; raises InputError for what is unknown or wrong."""
    unknown = set(query) - {field.encode_name for field in msgspec.structs.fields(kind)}
    if unknown:
        raise InputError(f"the query has no parameter {min(unknown)!r}")
    try:
        return msgspec.convert(dict(query), kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"the query is not what this takes: {error}") from error


def matches(condition: str | None, leaf: str | None) -> bool:
    """Return whether `If-Match` holds for a leaf; no condition always does, `*` for any leaf."""
    if condition is None or condition.strip() == "*":
        return True
    tags = [_TAG.fullmatch(one) for one in condition.split(",")]
    return any(tag is not None and not tag[1] and tag[2] == (leaf or "") for tag in tags)


def sent_event(name: str, data: dict[str, Any], entry: str | None = None) -> ServerSentEvent:
    """Return a server-sent event; its id is the entry that it tells of."""
    return ServerSentEvent(encode_utf8(data).decode(), event=name, id=entry)


def etag(leaf: str | None) -> str:
    """Return a leaf as an entity tag; that of an empty path is empty."""
    return f'"{leaf or ""}"'
