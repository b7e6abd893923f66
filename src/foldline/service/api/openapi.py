"""The OpenAPI document of the API, made of its operations and their types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from foldline.service.api.operation import BYTES, JSON, Operation

VERSION: Final = "1.0.0"  # of the API, not of the package
REF: Final = "#/components/schemas/{name}"


class ProblemDetails(msgspec.Struct, frozen=True):
    """What went wrong (RFC 9457); `leaf` where the session has moved on."""

    type: str
    title: str
    status: int
    detail: str = ""
    leaf: str | None = None


def index(operations: Sequence[Operation[Any]]) -> dict[str, Any]:
    """Return what `/api` answers: where the document is, and what can be asked."""
    return {
        "name": "foldline",
        "version": VERSION,
        "openapi": "/api/openapi.json",
        "docs": "/api/docs",
        "problems": "/api/problems",
        "operations": [f"{one.method} /api{one.path}: {one.about}" for one in operations],
    }


def document(operations: Sequence[Operation[Any]], *, tokens: bool) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document; `tokens` says that one is needed."""
    kinds = [kind for one in operations for kind in (one.body, one.result) if kind is not None]
    unique = list(dict.fromkeys([*kinds, ProblemDetails]))
    schemas, components = msgspec.json.schema_components(unique, ref_template=REF)
    refs = dict(zip(unique, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, refs)
    schemes = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "token": {"type": "apiKey", "in": "header", "name": "foldline-token"},
    }
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Foldline",
            "version": VERSION,
            "description": "Sessions that never overflow: kept, folded and recalled over HTTP.",
        },
        "servers": [{"url": "/api"}],
        "tags": [{"name": name} for name in dict.fromkeys(one.topic for one in operations)],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": schemes},
    }
    return found | ({"security": [{"bearer": []}, {"token": []}]} if tokens else {})


def _operation(one: Operation[Any], refs: dict[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.about,
        "tags": [one.topic],
        "x-scope": one.needs,
        "parameters": [*_path(one), *_query(one), *_headers(one)],
        "responses": {str(one.status): _success(one, refs), "default": _refused(refs)},
    }
    if one.body is not None:
        content = {"schema": refs[one.body]} | ({"example": one.example} if one.example else {})
        found["requestBody"] = {"content": {one.takes: content}, "required": True}
    elif one.takes == BYTES:
        found["requestBody"] = {"content": {BYTES: {}}, "required": True}
    return found


def _path(one: Operation[Any]) -> list[dict[str, Any]]:
    schema = {"type": "string", "minLength": 1, "maxLength": 200}
    return [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name in re.findall(r"{(\w+)}", one.path)
    ]


def _query(one: Operation[Any]) -> list[dict[str, Any]]:
    if one.query is None:
        return []
    (_,), components = msgspec.json.schema_components([one.query], ref_template=REF)
    schema = components[one.query.__name__]
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _plain(kind)}
        for name, kind in schema["properties"].items()
    ]


def _plain(kind: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter: one that is not there is null."""
    given = [one for one in kind.get("anyOf", []) if one != {"type": "null"}]
    return given[0] if len(given) == 1 else {k: v for k, v in kind.items() if v is not None}


def _headers(one: Operation[Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if one.changes:
        about = "The leaf that the client knows, as an entity tag: 412 where the session has another one."
        found.append({"name": "If-Match", "in": "header", "description": about, "schema": {"type": "string"}})
    if one.keyed:
        about = "A repeated key gives the first answer, and nothing is done twice; with another body 422."
        kind = {"type": "string", "minLength": 1, "maxLength": 255}
        found.append({"name": "Idempotency-Key", "in": "header", "description": about, "schema": kind})
    return found


def _success(one: Operation[Any], refs: dict[Any, Any]) -> dict[str, Any]:
    if one.status == 204:
        return {"description": "Done"}
    content: dict[str, Any] = {one.media: {}}
    if one.result is not None:
        content = {JSON: {"schema": refs[one.result]}}
    return {"description": one.about, "content": content}


def _refused(refs: dict[Any, Any]) -> dict[str, Any]:
    return {
        "description": "What went wrong",
        "content": {"application/problem+json": {"schema": refs[ProblemDetails]}},
    }
