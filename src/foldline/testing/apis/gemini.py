"""The Gemini API: its refusals, in its own words, and the format of its replies.

The texts are from error reports in public issue trackers (2025 and 2026); where none was found, they name the
rule of the dialect. A model of the third generation or later requires a signature with the first call of each
step of the current turn, as Google documents it.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, Final

from foldline.core.log.messages import Usage
from foldline.dialects import get
from foldline.dialects.gemini.form import CALL, RESULT, SIGNATURE, held, parts_in
from foldline.dialects.gemini.write import UNSIGNED
from foldline.dialects.payload import Fields, fields_of
from foldline.dialects.values import GEMINI, Problem
from foldline.testing.answers import FinishedReply, Refusal, fragments
from foldline.testing.apis.base import ModelApi
from foldline.testing.request import Asked
from foldline.testing.signatures import Signer
from foldline.testing.wire import sse

_STATUSES: Final[dict[int, tuple[str, str | None, str]]] = {
    400: ("INVALID_ARGUMENT", None, "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", None, "API key not valid. Please pass a valid API key."),
    404: ("NOT_FOUND", None, "Requested entity was not found."),
    429: ("RESOURCE_EXHAUSTED", None, "Resource has been exhausted (e.g. check quota)."),
    500: ("INTERNAL", None, "An internal error has occurred."),
    503: ("UNAVAILABLE", None, "The model is overloaded. Please try again later."),
}
_STOPS: Final = {
    "end": "STOP",
    "tools": "STOP",
    "length": "MAX_TOKENS",
    "refused": "SAFETY",
    "paused": "STOP",
}
_MADE: Final = b"foldline "  # the beginning of every signature, before it is encoded
_COUNT: Final = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)
_TEXTS: Final = {
    "list": "* GenerateContentRequest.contents: contents is not specified",
    "role": "Please use a valid role: user, model.",
    "parts-empty": "* GenerateContentRequest.contents[{n}].parts: contents.parts must not be empty.",
    "part-kind": (
        "* GenerateContentRequest.contents[{n}].parts[0].data: required oneof field 'data' must have one "
        "initialized field"
    ),
    "result-missing": _COUNT,
    "result-orphan": _COUNT,
    "result-duplicate": _COUNT,
}


class GeminiApi(ModelApi):
    """generateContent and streamGenerateContent."""

    dialect = GEMINI
    statuses = _STATUSES
    no_key = "Method doesn't allow unregistered callers (callers without established identity)."
    no_model = "unexpected model name format"
    bad_json = "Invalid JSON payload received. {text}"

    def unknown_model(self, model: str) -> Refusal:
        """Return the refusal of a model that the server does not have."""
        return Refusal(404, f"models/{model} is not found for API version v1beta")

    def check(self, request: Asked, signer: Signer, *, prefill: bool) -> None:
        """Check the contents, and the signatures of the current turn."""
        del signer, prefill
        for problem in get(GEMINI).validate(request.messages, request.system):
            raise Refusal(400, _problem_text(problem))
        if request.model.startswith("gemini-") and not request.model.startswith(("gemini-1", "gemini-2")):
            _check_signatures(request.messages)

    def too_large(self, request: Asked, cap: int, limit: int) -> Refusal:
        """Return the refusal of a `maxOutputTokens` above the model's limit."""
        del request
        return Refusal(
            400,
            f"Unable to submit request because it has a maxOutputTokens value of {cap} but the supported "
            f"range is from 1 (inclusive) to {limit + 1} (exclusive). Update the value and try again.",
        )

    def overflow(self, used: int, limit: int, cap: int, context: int) -> Refusal | None:
        """Return the refusal of an input that does not fit, or None; `maxOutputTokens` does not matter."""
        del cap, context
        if used <= limit:
            return None
        return Refusal(
            400, f"The input token count ({used}) exceeds the maximum number of tokens allowed ({limit})."
        )

    def error(self, refusal: Refusal) -> dict[str, Any]:
        """Return the inner object of an error's body."""
        error = super().error(refusal)
        return {"code": self.status(refusal), "message": error["message"], "status": error["type"]}

    def body(self, reply: FinishedReply) -> dict[str, Any]:
        """Return the GenerateContentResponse of a reply."""
        return _response(reply, _parts(reply), last=True)

    def stream(self, reply: FinishedReply) -> list[bytes]:
        """Return the chunks of a reply: its texts in pieces, and each call whole."""
        pieces: list[Fields] = []
        for part in _parts(reply):
            text = part.get("text")
            pieces += [part] if text is None else [{**part, "text": piece} for piece in fragments(text)]
        chunks = [_response(reply, [piece], last=False) for piece in pieces[:-1]]
        return [sse(chunk) for chunk in (*chunks, _response(reply, pieces[-1:], last=True))]


def _problem_text(problem: Problem) -> str:
    return _TEXTS.get(problem.rule, "* GenerateContentRequest.contents[{n}]: {text}").format(
        n=problem.index, text=problem.text
    )


def _check_signatures(contents: Sequence[Any]) -> None:
    """Check the calls of the current turn, which follows the newest message of the user."""
    call: Fields | None = None  # the first call of the step; read from its end
    for index in range(len(contents) - 1, -1, -1):
        parts = parts_in(contents[index])
        if fields_of(contents[index]).get("role") == "model":
            call = next((part for part in parts if held(part, CALL) is not None), call)
            continue
        _check_signed(call, index + 1)
        call = None
        if not any(held(part, RESULT) is not None for part in parts):
            return


def _check_signed(call: Fields | None, index: int) -> None:
    signature = held(call, SIGNATURE) if call is not None else None
    if call is not None and not signature:
        name = fields_of(held(call, CALL)).get("name")
        raise Refusal(
            400,
            "Function call is missing a thought_signature in functionCall parts. This is required for tools "
            "to work correctly, and missing thought_signature may lead to degraded model performance. "
            f"Additional data, function call `{name}`, position {index}.",
        )
    if signature and signature != UNSIGNED and not base64.b64decode(signature).startswith(_MADE):
        raise Refusal(400, "Corrupted thought signature.")


# ---- a reply


def _parts(reply: FinishedReply) -> list[Fields]:
    parts: list[Fields] = [{"text": reply.thinking, "thought": True}] if reply.thinking else []
    parts += [{"text": reply.text}] if reply.text else []
    calls: list[Fields] = [
        {CALL: {"id": call.id, "name": call.name, "args": call.arguments}} for call in reply.calls
    ]
    if calls:
        calls[0][SIGNATURE] = base64.b64encode(_MADE + reply.key.encode()).decode()
    return [*parts, *calls]


def _response(reply: FinishedReply, parts: list[Fields], *, last: bool) -> dict[str, Any]:
    candidate: Fields = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if last:
        candidate["finishReason"] = _STOPS[reply.stop]
    return {
        "candidates": [candidate],
        "usageMetadata": _usage(reply.usage),
        "modelVersion": reply.model,
        "responseId": reply.key,
    }


def _usage(usage: Usage) -> dict[str, Any]:
    prompt = usage.input + usage.cache_read + usage.cache_write
    cached = {"cachedContentTokenCount": usage.cache_read} if usage.cache_read else {}
    return {
        "promptTokenCount": prompt,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": prompt + usage.output,
        **cached,
    }
