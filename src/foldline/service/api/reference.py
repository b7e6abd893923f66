"""Pages about the API: a reference made from its OpenAPI document, and what each type of problem means.

They are plain HTML with one style, no script, and nothing from elsewhere.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, Undefined
from markupsafe import Markup
from starlette.responses import Response

from foldline.service.problems import PROBLEMS, slug

FOLDER: Final = "templates"


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
