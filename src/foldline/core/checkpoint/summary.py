"""The request for a summary, and the text of it that a model reads."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.checkpoint import prompts
from foldline.core.checkpoint.files import without_file_lists
from foldline.core.checkpoint.language import spoken_by_user
from foldline.core.checkpoint.request import RequestKind, SummaryRequest
from foldline.core.checkpoint.serialize import serialize, shorten
from foldline.core.decide.policy import Policy
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.entries import Said
from foldline.core.measure.tokens import Counter
from foldline.core.secrets.redact import redact

LEAST_CAP = 100  # characters to which results are shortened before the transcript loses its middle


def request(
    policy: Policy,
    *,
    kind: RequestKind,
    folded: Sequence[Said],
    previous: str | None,
    ledger: Ledger,
    tokens: int,
    instructions: str | None = None,
    goal: str | None = None,
    kept: Sequence[Said] = (),
) -> SummaryRequest:
    """Ask for the summary of `folded`, of at most `tokens` tokens. Costs nothing: `worded` writes the text.

    A hand-off without a goal is for the newest request of the user's.
    """
    if kind == "handoff" and not goal:
        goal = ledger.newest_request or None
    return SummaryRequest(
        kind=kind,
        system="",
        prompt="",
        folded=tuple(folded),
        previous=previous,
        ledger=ledger,
        tokens=tokens,
        instructions=instructions,
        goal=goal,
        kept=tuple(kept),
        family=policy.summary_prompt,
        result_cap=policy.result_cap,
        thinking=policy.thinking_in_transcript,
    )


def worded(
    request: SummaryRequest, *, limit: int | None = None, counter: Counter | None = None
) -> SummaryRequest:
    """Return the request with the text that a model reads, without secrets.

    With a `limit` in tokens, as `counter` counts them, results are shortened further, and at last the middle
    of the conversation is left out, until system and prompt fit. A limit that the request's own words and the
    previous summary exceed cannot be met; then the conversation is empty.
    """
    request = in_language(request)
    cap, most = request.result_cap, None
    worded_request = _worded(request, cap, most)
    while limit is not None and counter is not None:
        size = counter.count(worded_request.system) + counter.count(worded_request.prompt)
        if size <= limit or most == 0:
            break
        if cap > LEAST_CAP:
            cap = max(cap // 2, LEAST_CAP)
        else:
            length = most if most is not None else len(_transcript(request, cap, None))
            most = min(int(length * limit / size), length * 9 // 10) if length > 200 else 0
        worded_request = _worded(request, cap, most)
    return worded_request


def in_language(request: SummaryRequest) -> SummaryRequest:
    """Return the request with the languages that the user writes in; the main one where that is clear."""
    if request.languages is not None:
        return request
    ledger = request.ledger
    earlier = [
        *(item.text for item in ledger.items if item.kind == "user"),
        *(fact.text for fact in ledger.constraints),
    ]
    spoken = spoken_by_user([*request.folded, *request.kept], earlier)
    language = request.language or spoken.main
    return msgspec.structs.replace(request, language=language, languages=spoken.every)


def _worded(request: SummaryRequest, cap: int, most: int | None) -> SummaryRequest:
    previous = without_file_lists(redact(request.previous)) if request.previous else ""
    blocks = [
        _transcript(request, cap, most),
        prompts.between("previous-summary", previous) if previous else "",
        prompts.constraints([redact(fact.text) for fact in request.ledger.constraints]),
        prompts.ask(
            request.family,
            request.kind,
            tokens=request.story_tokens,
            has_previous=bool(previous),
            instructions=redact(request.instructions or ""),
            goal=redact(request.goal or ""),
            language=request.language,
            rejected=request.rejected,
        ),
    ]
    return msgspec.structs.replace(
        request, system=prompts.SYSTEM, prompt="\n\n".join(block for block in blocks if block)
    )


def _transcript(request: SummaryRequest, cap: int, most: int | None) -> str:
    text = serialize(request.folded, result_cap=cap, thinking=request.thinking)
    if most is None:
        return text
    body = text.removeprefix("<conversation>").removesuffix("</conversation>")
    return f"<conversation>\n\n{shorten(body.strip(), most)}\n\n</conversation>"
