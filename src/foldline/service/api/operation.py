"""An operation of the API: its input, its output, and the function that runs it.

Each is a function in a file named for its topic. The routes, the OpenAPI document, the index and the pages
read its signature and its docstring.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from types import ModuleType
from typing import Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar, cast, get_type_hints

import msgspec
from sse_starlette import ServerSentEvent
from starlette.responses import Response

from foldline.config import Scope
from foldline.core.log.codec import encode_utf8
from foldline.errors import InputError
from foldline.service.api.state import ApiState
from foldline.service.idempotency import KeyEntry
from foldline.service.tenants import Tenant
from foldline.session.session import Session

T = TypeVar("T")

JSON: Final = "application/json"
STREAM: Final = "text/event-stream"
BYTES: Final = "application/octet-stream"
PING_SECONDS: Final = 15  # between two pings of a stream
SEND_SECONDS: Final = 60.0  # that a client may take to read an event
_TAG: Final = re.compile(r'\s*(W/)?"([^"]*)"\s*')
SESSION: Final = "{session}"  # the session's id in a path

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
    """One checked request: its tenant, the names in its path, its session (if the path names one).

    `arguments` holds the decoded query and body, `raw` the body's bytes, `headers` those of the response.
    `key_entry` is set if the request has an idempotency key. `key` is the client's own key for a provider.
    A stream ends once `is_allowed` says that its token was revoked or has expired.
    """

    state: ApiState
    tenant: Tenant
    names: dict[str, str]
    arguments: dict[str, Any]
    raw: bytes = b""
    key: str | None = None
    request_headers: Mapping[str, str] = {}
    headers: dict[str, str] = {}
    opened: Session | None = None
    key_entry: KeyEntry | None = None
    is_allowed: Callable[[], bool] = lambda: True

    @property
    def is_retry(self) -> bool:
        """Whether an earlier request with the same key may have succeeded."""
        return self.key_entry is not None and self.key_entry.is_retry

    @property
    def token(self) -> str:
        """A random part for the id of what the request creates, the same on a retry."""
        return secrets.token_hex(8) if self.key_entry is None else self.key_entry.record.token

    @property
    def session(self) -> Session:
        """The session that the path names."""
        assert self.opened is not None
        return self.opened


class operation(msgspec.Struct, frozen=True):  # noqa: N801  a decorator
    """Turn a function into an operation at a path.

    The API uses the function's name in camel case, the first line of its docstring, the types of its
    parameters `body` and `query`, and its return type: a value for JSON, or a Response.

    `takes` is the media type of the body; `read` decodes a body that is not plain JSON. `changes` checks
    `If-Match`. `held` locks out other changes until the operation has ended; without it the operation is
    cancelled if its client leaves. A POST that changes or creates a session takes an idempotency key
    (`keyed`); with `resumes` the operation itself finds out what an earlier attempt did. `scope` is the scope
    of the token, if it is not read (GET) or write; `example` is a sample body.
    """

    method: Method
    path: str
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

    def __call__(self, run: Callable[..., Awaitable[T]]) -> Operation[T]:
        """Return the operation of a function."""
        hints = get_type_hints(run, include_extras=True)
        first, *others = run.__name__.split("_")
        return Operation(
            **msgspec.structs.asdict(self),
            name=first + "".join(word.capitalize() for word in others),
            topic=run.__module__.rpartition(".")[2],
            about=(run.__doc__ or "").partition("\n")[0].removesuffix("."),
            run=run,
            body=hints.get("body"),
            query=hints.get("query"),
            result=None if hints["return"] in (Response, type(None)) else hints["return"],
        )


class Operation(operation, Generic[T], frozen=True, kw_only=True):
    """One operation, made from a function.

    `body` and `query` are the input types, `result` the type of the JSON response (None: no body, or another
    `media`). `topic` is the name of its file.
    """

    name: str
    topic: str
    about: str
    run: Callable[..., Awaitable[T]]
    body: Any
    query: Any
    result: Any

    @property
    def needs(self) -> Scope:
        """The scope that a token must have."""
        return self.scope or ("read" if self.method == "GET" else "write")

    @property
    def of_session(self) -> bool:
        """Whether its path names a session."""
        return SESSION in self.path


def operations_of(topic: ModuleType) -> Iterator[Operation[Any]]:
    """Yield the operations that a file defines, in its order."""
    name = topic.__name__.rpartition(".")[2]
    for value in vars(topic).values():
        if isinstance(value, Operation) and value.topic == name:
            yield cast("Operation[Any]", value)


# ---- queries and headers


def decoded_query(query: Mapping[str, str], kind: Any) -> Any:
    """Convert a query to its type; raises InputError for unknown or invalid parameters."""
    unknown = set(query) - {field.encode_name for field in msgspec.structs.fields(kind)}
    if unknown:
        raise InputError(f"unknown query parameter {min(unknown)!r}")
    try:
        return msgspec.convert(dict(query), kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"invalid query: {error}") from error


def matches(condition: str | None, leaf: str | None) -> bool:
    """Whether `If-Match` matches a leaf; no header and `*` match every leaf."""
    if condition is None or condition.strip() == "*":
        return True
    tags = map(_TAG.fullmatch, condition.split(","))
    return any(tag is not None and not tag[1] and tag[2] == (leaf or "") for tag in tags)


def sent_event(name: str, data: dict[str, Any], entry: str | None = None) -> ServerSentEvent:
    """Return a server-sent event; its id is the entry it is about."""
    return ServerSentEvent(encode_utf8(data).decode(), event=name, id=entry)


def etag(leaf: str | None) -> str:
    """Return a leaf as an entity tag; that of an empty path is empty."""
    return f'"{leaf or ""}"'
