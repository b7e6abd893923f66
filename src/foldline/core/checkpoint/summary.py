"""From what is folded to a request for its summary, and from a reply to a summary, or why it is none."""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from foldline.core.checkpoint import prompts
from foldline.core.checkpoint.files import without_file_lists
from foldline.core.checkpoint.language import language_of, users_language
from foldline.core.checkpoint.redact import redact
from foldline.core.checkpoint.request import RequestKind, SummaryReply, SummaryRequest
from foldline.core.checkpoint.serialize import serialize, shorten
from foldline.core.decide.policy import Policy
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.entries import Said
from foldline.core.log.messages import ToolCall, ToolResult, texts
from foldline.core.measure.tokens import Counter

LEAST_CAP = (
    100  # characters below which results are not shortened further: then the transcript loses its middle
)
PREAMBLE = 400  # characters before the first heading that are dropped; more of them is no summary
COPIED = 0.8  # share of a reply that may be lines of the conversation as they stand there


class Accepted(msgspec.Struct, frozen=True):
    """A reply that is a summary; `text` is what of it is stored."""

    text: str


class Rejected(msgspec.Struct, frozen=True):
    """A reply that is no summary, and why."""

    why: str


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
    if kind == "handoff" and not goal and ledger.requests:
        goal = ledger.requests[-1].text
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
    """Return the request with the language that the user writes in, where that is beyond doubt."""
    if request.language:
        return request
    return msgspec.structs.replace(request, language=users_language([*request.folded, *request.kept]))


def _worded(request: SummaryRequest, cap: int, most: int | None) -> SummaryRequest:
    previous = without_file_lists(redact(request.previous)) if request.previous else ""
    blocks = [
        _transcript(request, cap, most),
        prompts.between("previous-summary", previous) if previous else "",
        prompts.constraints([redact(fact.text) for fact in request.ledger.constraints]),
        prompts.ask(
            request.family,
            request.kind,
            tokens=request.tokens,
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


def check(
    reply: SummaryReply, request: SummaryRequest, headings: Sequence[str] | None = None, *, counter: Counter
) -> Accepted | Rejected:
    """Say whether a reply may be stored (invariant 7), and as what text.

    `headings` (default: those of the request's family and kind) must all stand in it. Wrappers such as code
    fences, `<summary>` and `<analysis>`, and a short remark before the first heading, are taken off.
    """
    wanted = prompts.headings(request.family, request.kind) if headings is None else tuple(headings)
    if reply.stop not in ("end", ""):
        return Rejected(_STOPS.get(reply.stop, f"the model stopped with {reply.stop!r}"))
    whole = unwrapped(redact(reply.text))
    text = _from_first_heading(whole, wanted)
    why = (
        ("a continuation of the conversation" if _MARKER.search(whole) else "")
        or _not_a_summary(text, wanted)
        or _wrong_size(text, request, counter)
        or _copied(text, request.folded)
        or _repeating(text)
        or _other_language(text, in_language(request))
    )
    return Rejected(why) if why else Accepted(text)


_STOPS = {
    "length": "cut off by the output limit",
    "tools": "the model called a tool instead of writing a summary",
    "error": "the model's reply broke off with an error",
    "aborted": "the reply was cancelled",
}
_ASIDE = re.compile(
    r"<(analysis|think|thinking|scratchpad)>.*?(?:</\1>|(?=<summary>))", re.DOTALL | re.IGNORECASE
)
_WRAPPER = re.compile(r"<(summary|checkpoint)>\s*\n?(.*?)\n?\s*(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A\s*(`{3,}|~{3,})[ \t]*(?:markdown|md|text|txt|xml)?[ \t]*\n(.*)\n\1\s*\Z", re.DOTALL)


def unwrapped(text: str) -> str:
    """Take off what models wrap a summary in: reasoning asides, a code fence round the whole, summary tags."""
    text = _ASIDE.sub("", text)
    for _ in range(3):
        before = text
        text = text.strip()
        if fence := _FENCE.match(text):
            text = fence[2]
        wrapper = _WRAPPER.search(text)
        if wrapper and len(text[: wrapper.start()].strip()) <= PREAMBLE:
            text = wrapper[2]
        if text == before:
            break
    return text.strip()


_DECORATION = re.compile(r"^[\s>#*_\d.)\-]+|[\s:*_]+$")


def _plain_heading(line: str) -> str:
    return " ".join(_DECORATION.sub("", line).casefold().replace("&", "and").split())


def _heading_lines(text: str) -> list[tuple[int, str, bool]]:
    """Where each line that may be a heading starts, what it says, and whether it is marked as one."""
    lines = text.split("\n")
    starts = accumulate((len(line) + 1 for line in lines), initial=0)
    return [
        (start, _plain_heading(line), line.lstrip().startswith("#"))
        for start, line in zip(starts, lines, strict=False)
        if line.strip() and len(line) <= 120
    ]


def _standing(text: str, wanted: Sequence[str]) -> dict[str, int]:
    """The wanted headings that stand in a text, and where each first does."""
    found: dict[str, int] = {}
    lines = _heading_lines(text)
    for heading in wanted:
        plain = _plain_heading(heading)
        for start, said, marked in lines:
            if said == plain or (marked and said.startswith(plain + " ")):
                found[heading] = start
                break
    return found


def _from_first_heading(text: str, wanted: Sequence[str]) -> str:
    first = min(_standing(text, wanted).values(), default=0)
    return text[first:].strip() if len(text[:first].strip()) <= PREAMBLE else text


_REFUSAL = re.compile(
    r"(?:i['\u2019]?m|i am) (?:sorry|unable|not able)|i (?:can(?:['\u2019]t|not)|won['\u2019]t|will not) |sorry\b|"
    r"as an ai\b|there is no conversation|no conversation (?:was|has been) ",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"(?:sure|okay|ok|great|certainly|of course|got it|understood)\b[,.!]|(?:i['\u2019]ll|i will|let me|let['\u2019]s|now i|next,? i)\b",
    re.IGNORECASE,
)
_MARKER = re.compile(
    r"^\[(?:user|assistant(?: thinking)?|harness|tool call|tool result)\]:|<\|[a-z_]{2,30}\|>|"
    r"^\s*<(?:tool_call|function_calls?|tool_use|invoke)\b",
    re.IGNORECASE | re.MULTILINE,
)
_SPEAKER = re.compile(r"^(human|user|assistant|ai):\s", re.IGNORECASE | re.MULTILINE)


def _not_a_summary(text: str, wanted: Sequence[str]) -> str:
    """Why a text is no summary by its form; "" if it is one."""
    if not re.search(r"\w", text):
        return "empty"
    found = _standing(text, wanted)
    missing = [heading for heading in wanted if heading not in found]
    if (missing or not wanted) and _REFUSAL.match(text):
        return "a refusal"
    speakers = {name.lower() for name in _SPEAKER.findall(text)}
    both = bool(speakers & {"human", "user"} and speakers & {"assistant", "ai"})
    if both or ((missing or not wanted) and _ANSWER.match(text)):
        return "a continuation of the conversation"
    if missing:
        return f"without the headings {', '.join(missing)}"
    if wanted and len(text[: min(found.values())].strip()) > PREAMBLE:
        return "a continuation of the conversation"
    bare = re.sub(r"(?m)^\s*#.*$|\(none\)|\W", "", text, flags=re.IGNORECASE)
    return "empty under its headings" if wanted and not bare else ""


def _wrong_size(text: str, request: SummaryRequest, counter: Counter) -> str:
    """Why a text is too large; "" if it is not."""
    tokens = counter.count(text)
    if tokens > request.tokens:
        return f"{tokens:,} tokens where {request.tokens:,} were asked for"
    given = sum(entry.tokens for entry in request.folded)
    if not given:
        given = sum(counter.count(said) for entry in request.folded for said in texts(entry.message))
    given += counter.count(request.previous) if request.previous else 0
    return f"larger than its input ({tokens:,} tokens of {given:,})" if tokens > given else ""


def _copied(text: str, folded: Sequence[Said]) -> str:
    """Why a text is a copy of what it should sum up; "" if it is not. Short texts may quote all they need."""
    if len(text) < 4 * PREAMBLE:
        return ""
    lines = [line.strip() for line in text.split("\n")]
    source = {line.strip() for entry in folded for said in texts(entry.message) for line in said.split("\n")}
    copied = sum(len(line) for line in lines if len(line) >= 12 and line in source)
    return "a copy of the conversation" if copied > COPIED * sum(map(len, lines)) else ""


def _repeating(text: str) -> str:
    """Why a text has run into a loop; "" if it has not."""
    lines = [line.strip() for line in text.split("\n") if len(line.strip()) >= 12]
    most = Tally(lines).most_common(1)
    return "one line over and over" if most and most[0][1] >= 8 and most[0][1] * 3 > len(lines) else ""


def _other_language(text: str, request: SummaryRequest) -> str:
    """Why a text is in the wrong language; "" where it is not, or where either language is in doubt."""
    rules = [
        fact.text for fact in request.ledger.constraints
    ]  # they stand in the user's words, whatever the rest is in
    rest = [line for line in text.split("\n") if not any(rule in line for rule in rules)]
    written = language_of("\n".join(rest)) if request.language else ""
    wished = written.casefold() in (request.instructions or "").casefold()
    if not written or written == request.language or wished:
        return ""
    return f"written in {written}, where the user writes in {request.language}"


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
    """For each entry, whether a call at or before it has its result behind it."""
    edges = [0] * (len(folded) + 1)
    newest: dict[str, int] = {}
    for index, entry in enumerate(folded):
        for part in entry.message.parts:
            if isinstance(part, ToolCall):
                newest[part.id] = index
            elif isinstance(part, ToolResult) and part.call_id in newest:
                edges[newest[part.call_id]] += 1
                edges[index] -= 1
    return [depth > 0 for depth in accumulate(edges[:-1])]
