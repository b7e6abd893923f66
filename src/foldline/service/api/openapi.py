"""What the API says of itself: its OpenAPI document, made of its operations and their types, and two pages.

The pages are a reference made from that document, and what each type of problem means. They are plain HTML
with one style, no script, and nothing from elsewhere.
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


# ---- pages


def pages(document: Mapping[str, Any]) -> tuple[Response, Response]:
    """Return the reference of an API, and the page of its problems."""
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

    def page(template: str, **given: Any) -> Response:
        text = environment.get_template(template).render(style=Markup(style), **given)  # noqa: S704  ours
        return Response(text, headers=headers, media_type="text/html")

    schemas = document["components"]["schemas"]
    reference = page("reference.html", info=document["info"], topics=_topics(document), schemas=schemas)
    return reference, page("problems.html", problems=PROBLEMS)


def _topics(document: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the operations of each tag, in the order of the document."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            shown = {**one, "method": method.upper(), "path": f"/api{path}"}
            found.setdefault(one["tags"][0], []).append(shown)
    return found


def kind(schema: Mapping[str, Any]) -> Markup:
    """Return the type that a schema describes, with a link where it is a named one."""
    if "$ref" in schema:
        return Markup('<a href="#{0}">{0}</a>').format(schema["$ref"].rpartition("/")[2])
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return Markup(" or ").join(kind(one) for one in choices)
    if "enum" in schema:
        return Markup(", ").join(as_json(one) for one in schema["enum"])
    if "const" in schema:
        return Markup("{}").format(as_json(schema["const"]))
    if schema.get("type") == "array":
        return Markup("list of {}").format(kind(schema.get("items") or {}))
    if isinstance(schema.get("additionalProperties"), dict):
        return Markup("map of {}").format(kind(schema["additionalProperties"]))
    limits = {"minimum": "≥", "maximum": "≤", "minLength": "length ≥", "maxLength": "length ≤"}
    told = [f"{word} {schema[name]:,}" for name, word in limits.items() if name in schema]
    return Markup("{}").format(" ".join([schema.get("type", "any"), *told]))


def as_json(value: Any) -> str:
    """Return a value as JSON that people read."""
    return json.dumps(value, ensure_ascii=False, indent=2 if isinstance(value, dict) else None)
