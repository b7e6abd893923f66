"""The OpenAPI document, built from the operations and their types, and two pages.

The pages are a reference built from that document, and the meaning of each problem type. They are plain HTML
with one style sheet, no script, and nothing loaded from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

import msgspec
from jinja2 import Environment, PackageLoader, Undefined
from markupsafe import Markup
from starlette.responses import Response

from foldline.service.api.operation import BYTES, JSON, Operation
from foldline.service.problems import PROBLEMS, slug

VERSION: Final = "1.0.0"  # of the API, not of the package
REF: Final = "#/components/schemas/{name}"
FOLDER: Final = "templates"


class ProblemDetails(msgspec.Struct, frozen=True):
    """An error (RFC 9457); `leaf` is the current one if the session has moved on."""

    type: str
    title: str
    status: int
    detail: str = ""
    leaf: str | None = None


def index(operations: Sequence[Operation[Any]]) -> dict[str, Any]:
    """Return the body of `/api`: where the document is, and the operations."""
    return {
        "name": "foldline",
        "version": VERSION,
        "openapi": "/api/openapi.json",
        "docs": "/api/docs",
        "problems": "/api/problems",
        "operations": [f"{item.method} /api{item.path}: {item.about}" for item in operations],
    }


def document(operations: Sequence[Operation[Any]], *, tokens: bool) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document; `tokens` says that requests need one."""
    kinds = [kind for item in operations for kind in (item.body, item.result) if kind is not None]
    unique = list(dict.fromkeys([*kinds, ProblemDetails]))
    schemas, components = msgspec.json.schema_components(unique, ref_template=REF)
    refs = dict(zip(unique, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for item in operations:
        paths.setdefault(item.path, {})[item.method.lower()] = _operation(item, refs)
    schemes = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "token": {"type": "apiKey", "in": "header", "name": "foldline-token"},
    }
    openapi: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Foldline",
            "version": VERSION,
            "description": "Sessions that never overflow: stored, folded and recalled over HTTP.",
        },
        "servers": [{"url": "/api"}],
        "tags": [{"name": name} for name in dict.fromkeys(item.topic for item in operations)],
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": schemes},
    }
    return openapi | ({"security": [{"bearer": []}, {"token": []}]} if tokens else {})


def _operation(item: Operation[Any], refs: dict[Any, Any]) -> dict[str, Any]:
    problem_content = {"application/problem+json": {"schema": refs[ProblemDetails]}}
    problem = {"description": "What went wrong", "content": problem_content}
    described: dict[str, Any] = {
        "operationId": item.name,
        "summary": item.about,
        "tags": [item.topic],
        "x-scope": item.needs,
        "parameters": [*_path(item), *_query(item), *_headers(item)],
        "responses": {str(item.status): _success(item, refs), "default": problem},
    }
    if item.body is not None:
        content = {"schema": refs[item.body]} | ({"example": item.example} if item.example else {})
        described["requestBody"] = {"content": {item.takes: content}, "required": True}
    elif item.takes == BYTES:
        described["requestBody"] = {"content": {BYTES: {}}, "required": True}
    return described


def _path(item: Operation[Any]) -> list[dict[str, Any]]:
    schema = {"type": "string", "minLength": 1, "maxLength": 200}
    return [
        {"name": name, "in": "path", "required": True, "schema": schema}
        for name in re.findall(r"{(\w+)}", item.path)
    ]


def _query(item: Operation[Any]) -> list[dict[str, Any]]:
    if item.query is None:
        return []
    (_,), components = msgspec.json.schema_components([item.query], ref_template=REF)
    schema = components[item.query.__name__]
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _plain(kind)}
        for name, kind in schema["properties"].items()
    ]


def _plain(kind: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter without null, which a missing parameter is."""
    choices = [choice for choice in kind.get("anyOf", []) if choice != {"type": "null"}]
    return choices[0] if len(choices) == 1 else {k: v for k, v in kind.items() if v is not None}


def _headers(item: Operation[Any]) -> list[dict[str, Any]]:
    headers: list[dict[str, Any]] = []
    if item.changes:
        about = "The leaf that the client knows, as an entity tag: 412 if the session has another one."
        headers.append(
            {"name": "If-Match", "in": "header", "description": about, "schema": {"type": "string"}}
        )
    if item.keyed:
        about = "A repeated key returns the first response, and nothing is done twice; 422 with another body."
        kind = {"type": "string", "minLength": 1, "maxLength": 255}
        headers.append({"name": "Idempotency-Key", "in": "header", "description": about, "schema": kind})
    return headers


def _success(item: Operation[Any], refs: dict[Any, Any]) -> dict[str, Any]:
    if item.status == 204:
        return {"description": "Done"}
    content: dict[str, Any] = {item.media: {}}
    if item.result is not None:
        content = {JSON: {"schema": refs[item.result]}}
    return {"description": item.about, "content": content}


# ---- pages


def pages(document: Mapping[str, Any]) -> tuple[Response, Response]:
    """Return the reference of the API, and the page of its problems."""
    style = (files("foldline.service.api") / FOLDER / "reference.css").read_text(encoding="utf-8")
    environment = Environment(
        loader=PackageLoader("foldline.service.api", FOLDER),
        autoescape=True,
        undefined=Undefined,
        trim_blocks=True,
    )
    environment.filters |= {"kind": kind, "as_json": as_json, "slug": slug}
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    headers = {
        "content-security-policy": f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    }

    def page(template: str, **context: Any) -> Response:
        text = environment.get_template(template).render(style=Markup(style), **context)  # noqa: S704  ours
        return Response(text, headers=headers, media_type="text/html")

    schemas = document["components"]["schemas"]
    reference = page("reference.html", info=document["info"], topics=_topics(document), schemas=schemas)
    return reference, page("problems.html", problems=PROBLEMS)


def _topics(document: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the operations of each tag, in the order of the document."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            row = {**described, "method": method.upper(), "path": f"/api{path}"}
            topics.setdefault(described["tags"][0], []).append(row)
    return topics


def kind(schema: Mapping[str, Any]) -> Markup:
    """Return the type that a schema describes, with a link if it has a name."""
    if "$ref" in schema:
        return Markup('<a href="#{0}">{0}</a>').format(schema["$ref"].rpartition("/")[2])
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return Markup(" or ").join(map(kind, choices))
    if "enum" in schema:
        return Markup(", ").join(map(as_json, schema["enum"]))
    if "const" in schema:
        return Markup("{}").format(as_json(schema["const"]))
    if schema.get("type") == "array":
        return Markup("list of {}").format(kind(schema.get("items") or {}))
    if isinstance(schema.get("additionalProperties"), dict):
        return Markup("map of {}").format(kind(schema["additionalProperties"]))
    limits = {"minimum": "≥", "maximum": "≤", "minLength": "length ≥", "maxLength": "length ≤"}
    bounds = [f"{word} {schema[name]:,}" for name, word in limits.items() if name in schema]
    return Markup("{}").format(" ".join([schema.get("type", "any"), *bounds]))


def as_json(value: Any) -> str:
    """Return a value as readable JSON."""
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict) else None)
