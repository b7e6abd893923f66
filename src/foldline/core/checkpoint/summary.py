"""The request for a summary, the text of it that a model reads, and a range that is too large in runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import msgspec

from foldline.core.checkpoint import listing, prompts
from foldline.core.checkpoint.request import RequestKind, SummaryRequest
from foldline.core.checkpoint.serialize import serialize, shorten
from foldline.core.cut.pairing import calls_answered
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
    project: str = "",
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
        always=policy.summary_instructions if kind != "display" else "",
        project=project,
    )


def worded(
    request: SummaryRequest, *, limit: int | None = None, counter: Counter | None = None
) -> SummaryRequest:
    """Return the request with the text that a model reads, without secrets.

    With a `limit` in tokens, as `counter` counts them, results are shortened further, and at last the middle
    of the conversation is left out, until system and prompt fit. A limit that the request's own words and the
    previous summary exceed cannot be met; then the conversation is empty.
    """
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


def _worded(request: SummaryRequest, cap: int, most: int | None) -> SummaryRequest:
    previous = listing.without(redact(request.previous)) if request.previous else ""
    blocks = [
        _transcript(request, cap, most),
        prompts.between("previous-summary", previous) if previous else "",
        prompts.constraints([redact(fact.text) for fact in request.ledger.constraints]),
        prompts.ask(request, has_previous=bool(previous)),
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


def chunks(
    folded: Sequence[Said],
    limit_tokens: int,
    counter: Counter,
    *,
    result_cap: int = 2_000,
    thinking: bool = True,
) -> list[tuple[Said, ...]]:
    """Split a range into runs whose transcripts take at most `limit_tokens`, oldest first.

    A call is never split from its result, so one run may still be too large; `worded` shortens it.
    """
    joined = _spans(folded)
    runs: list[tuple[Said, ...]] = []
    run: list[Said] = []
    unit: list[Said] = []
    run_tokens = unit_tokens = 0
    for index, entry in enumerate(folded):
        unit.append(entry)
        unit_tokens += counter.count(serialize([entry], result_cap=result_cap, thinking=thinking))
        if joined[index]:
            continue
        if run and run_tokens + unit_tokens > limit_tokens:
            runs.append(tuple(run))
            run, run_tokens = [], 0
        run += unit
        run_tokens += unit_tokens
        unit, unit_tokens = [], 0
    return [*runs, tuple(run)] if run else runs


def _spans(folded: Sequence[Said]) -> list[bool]:
    """For each entry, whether a call at or before it has its result after it."""
    edges = [0] * (len(folded) + 1)
    for result, call in calls_answered(entry.message for entry in folded).items():
        edges[call[0]] += 1
        edges[result[0]] -= 1
    return [depth > 0 for depth in accumulate(edges[:-1])]
