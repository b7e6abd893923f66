"""Read provider errors: a request that did not fit, with its sizes, or wrong roles.

Providers have no common error code, so the text decides. The phrases come from the providers' documentation
and from error reports of public agents (2026). They are tried in this order: one request above a rate limit,
other texts on rates and load (never an overflow), texts with sizes in tokens, texts on the size of an image
or file (never an overflow), texts without sizes.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from foldline.core.log.messages import Message, ToolCall, Usage
from foldline.core.measure.window import Window

# An empty reply that stopped for length with this share of the window used had no room (MiMo).
STARVED_SHARE: Final = 0.99
# A reply shorter than this is not worth a retry with a smaller `max_tokens`.
LEAST_REPLY: Final = 1_024
# The share of a refused request to try next if the error names no size. A guess: two tries halve it.
NEXT_TRY: Final = 0.7
# Statuses for permissions and rates, not sizes.
_OTHER_STATUS: Final = frozenset({401, 402, 403, 404, 429, 503, 529})
# No message is longer; of an HTML page only the beginning is read.
_READ_CHARS: Final = 20_000


class Overflow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A request that did not fit. Sizes are in the provider's tokens, None if the error has none.

    `limit` is the most that fits and `asked` the size of the input. `max_tokens` is the reply's reserve if
    the provider added it to the input and refused the sum; then a smaller one may fit (`fits_with`).
    """

    limit: int | None = None
    asked: int | None = None
    max_tokens: int | None = None


_NUMBER: Final = r"\d{1,12}(?:[,._\u00a0\u202f ]\d{3}){0,4}"
_LIMIT: Final = rf"(?P<limit>{_NUMBER})"
_ASKED: Final = rf"(?P<asked>{_NUMBER})"
_TOTAL: Final = rf"(?P<total>{_NUMBER})"
_REPLY: Final = rf"(?P<reply>{_NUMBER})"
_ABOUT: Final = r"(?:about |at least |approximately )?"


def _all(*patterns: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in patterns)


_RATE: Final = re.compile(
    r"\brate[ _-]?limit|too many requests|throttl|service[ _]?unavailable|\boverloaded|at capacity"
    r"|insufficient[ _]quota|exceeded your current quota|credit balance"
    r"|\b(?:tokens?|requests?)\s*(?:per|/)\s*(?:second|sec|minute|min|hour|day|month)\b|\b[RT]P[MD]\b",
    re.IGNORECASE,
)

_MEDIA: Final = re.compile(
    r"\b(?:images?|files?|pdfs?|documents?|videos?|audio|attachments?|uploads?|media|photos?)\b[^\n]{0,80}?"
    r"(?:exceed|too (?:large|big|long|many)|larger than|longer than|limit of|maximum|at most)"
    r"|exceeds?[^\n]{0,60}?\d\s*(?:bytes|[KMG]i?B|pixels|pages)\b"
    r"|maximum of \d+ (?:pdf )?pages",
    re.IGNORECASE,
)

# Anthropic accepts 100 images and documents in a request, OpenAI 2,048 messages; a fold removes the older
# ones. Source: platform.claude.com/docs/en/build-with-claude/vision
_TOO_MANY: Final = re.compile(
    r"\btoo many images(?: and documents)?\b[^\n]{0,20}?\d|\binvalid '(?:messages|input)': array too long",
    re.IGNORECASE,
)

# Groq and OpenAI: one request above the tokens per minute never passes. The requested size includes the
# reply's reserve, which is not named.
_ALONE: Final = re.compile(
    rf"\brequest too large for [^\n]{{1,200}}?\(TPM\): Limit {_LIMIT}, Requested", re.IGNORECASE
)

# Texts with a reply's reserve come first, since they also match later patterns.
_SIZED: Final = _all(
    # Anthropic
    rf"input length and \W*max_tokens\W* exceed context limit: {_ASKED} \+ {_REPLY} > {_LIMIT}",
    rf"prompt is too long:? {_ASKED} tokens? > {_LIMIT}",
    # vLLM
    rf"maximum context length is {_LIMIT} tokens?.{{0,40}}you requested {_REPLY} output tokens"
    rf".{{0,30}}prompt contains {_ABOUT}{_ASKED} input tokens",
    rf"maximum context length is {_LIMIT} tokens?.{{0,20}}request has {_ASKED} input tokens \({_REPLY} > ",
    rf"prompt \(length {_ASKED}\) is longer than the maximum model length of {_LIMIT}",
    # OpenAI, Azure, DeepSeek, OpenRouter, vLLM before
    rf"maximum context length is {_LIMIT} tokens?.{{0,40}}requested {_ABOUT}{_TOTAL} tokens"
    rf"[^)]{{0,120}}?{_REPLY} (?:in|for) the (?:completion|output)",
    rf"maximum context length is {_LIMIT} tokens?.{{0,40}}(?:resulted in|requested|contains?|has) "
    rf"{_ABOUT}{_ASKED} tokens",
    rf"input tokens exceed the configured limit of {_LIMIT} tokens?.{{0,40}}resulted in {_ASKED} tokens",
    # text-generation-inference
    rf"inputs\W* tokens \+ \W*max_new_tokens\W* must be <= {_LIMIT}\. Given: {_ASKED} \W*inputs\W* tokens "
    rf"and {_REPLY}",
    # Bedrock Mantle, LiteLLM, Gemini, xAI, Together and SGLang
    rf"prompt tokens \({_ASKED}\) exceed model maximum(?:[^\d\n]{{0,20}}{_LIMIT})?",
    rf"{_ASKED}(?: tokens?)?\)? exceeds? (?:the )?(?:model\S{{0,7}}s )?maximum context length(?: of "
    rf"|\s*\(){_LIMIT}",
    rf"exceeds? (?:the )?(?:model\S{{0,7}}s )?maximum context length(?: of |\s*\(){_LIMIT}",
    rf"input token count\s*\(?{_ASKED}\)? exceeds the maximum number of tokens allowed\s*\(?{_LIMIT}",
    rf"maximum prompt length is {_LIMIT}(?:.{{0,30}}request contains {_ASKED} tokens)?",
    rf"input \({_ASKED} tokens?\) is longer than the model\S{{0,7}}s context length \({_LIMIT} tokens?\)",
    # Poolside, Copilot, llama.cpp, Kimi, Mistral, DS4, Fireworks, Cohere, GitHub Models, DashScope, LM Studio
    rf"exceeds (?:the )?maximum allowed input length of {_LIMIT} tokens?",
    rf"token count of {_ASKED} exceeds the limit of {_LIMIT}",
    rf"request \({_ASKED}(?: tokens?)?\) exceeds (?:the )?(?:available )?context(?: size| window| length)? "
    rf"\({_LIMIT}",
    rf"n_prompt_tokens\W+{_ASKED}.{{0,40}}n_ctx\W+{_LIMIT}",
    rf"exceeded model token limit:? {_LIMIT}(?: \(requested:? {_ASKED}\))?",
    rf"prompt contains {_ASKED} tokens.{{0,60}}too large for model with {_LIMIT} maximum context length",
    rf"prompt has {_ASKED} tokens?, but the configured context size is {_LIMIT} tokens?",
    rf"prompt is too long: {_ASKED}, model maximum context length: {_LIMIT}",
    rf"tokens in the prompt cannot exceed {_LIMIT} - received {_ASKED}",
    rf"too large for \S+ model\. max size: {_LIMIT} tokens",
    rf"range of input length should be \[\d+, ?{_LIMIT}\]",
    rf"keep the first {_ASKED} tokens when context.{{0,60}}context length of only {_LIMIT} tokens",
    # OpenAI and OpenRouter, the limit alone
    rf"maximum context length is {_LIMIT} tokens?",
)

_NAMED: Final = _all(
    r"(?:prompt|input) is too long|prompt[_ ]too[_ ]long|prompt too long; exceeded (?:max )?context length",
    r"request[_ ]too[_ ]large|(?:request entity|payload|content) too large",
    r"exceeds?(?: the| this)?(?: model\S{0,7}s)?(?: available| maximum)? context(?: window| length| size|\b)",
    r"input token count.{0,80}exceeds the maximum",
    rf"exceeds the limit of {_LIMIT}",
    r"greater than the context length|context window exceeds limit|exceed_context_size",
    r"too large for model with \d+ maximum context length",
    r"input length and \W*max_tokens\W* exceed|tokens exceed context limit",
    r"context[_ ](?:length|window|limit|size)[_ ](?:was |is |has been "
    r")?exceeded|model_context_window_exceeded",
    r"context[_ ](?:too[_ ]large|overflow(?:ed)?\b)|ContextWindowExceeded",
    r"reduce the length of the (?:messages|input|prompt)|range of input length should be",
    r"requested \d+ output tokens.{0,120}for a total of.{0,20}\d+ tokens",
    r"too many tokens|token limit exceeded|tokens_limit_reached|input tokens exceed",
)

# Cerebras answers an overflow with a bare status.
_BARE: Final = re.compile(
    r"\s*+(?:error:?\s*+)?4(?:00|13)\s*+(?:status code)?\s*+\(no body\)\s*", re.IGNORECASE
)


def _sizes(match: re.Match[str]) -> Overflow:
    sizes = {name: int(re.sub(r"\D", "", text)) for name, text in match.groupdict().items() if text}
    limit, asked, total, reply = map(sizes.get, ("limit", "asked", "total", "reply"))
    if asked is None and total is not None and reply is not None:
        asked = total - reply
    return Overflow(limit=limit, asked=asked, max_tokens=reply)


def _first(patterns: tuple[re.Pattern[str], ...], text: str) -> Overflow | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match:
            return _sizes(match)
    return None


def overflow(text: str, status: int | None = None) -> Overflow | None:
    """Return the sizes of an overflow from a provider's error; None for any other error.

    `text` is the error's message or body (raw JSON works too), `status` the HTTP status if known. Rate
    limits, throttling, load, and the sizes of images and files are not overflows. Too many images or messages
    in one request are overflows, and so are a single request above a rate limit and an empty body with status
    400 or 413 (Cerebras).
    """
    text = text[:_READ_CHARS]
    if alone := _ALONE.search(text):
        return _sizes(alone)
    if status in _OTHER_STATUS or _RATE.search(text):
        return None
    if _BARE.fullmatch(text) or (status in (400, 413) and not text.strip()):
        return Overflow()
    if _TOO_MANY.search(text):
        return Overflow()
    sized = _first(_SIZED, text)
    if sized or _MEDIA.search(text):
        return sized
    return _first(_NAMED, text)


def silent(usage: Usage | None, stop: str | None, window: Window) -> Overflow | None:
    """Recognise an overflow in an ordinary reply, by its usage and stop reason.

    Either the input exceeds the window (z.ai), or an empty reply stopped for length while the input filled
    the window (MiMo). Aborted and errored replies and all-zero usage are ignored.
    """
    if usage is None or stop in ("aborted", "error"):
        return None
    asked = usage.input + usage.cache_read + usage.cache_write
    starved = stop == "length" and usage.output == 0 and asked >= STARVED_SHARE * window.context
    if asked and (asked > window.context or starved):
        return Overflow(limit=window.context, asked=asked)
    return None


def cut_short(usage: Usage | None, stop: str | None, max_tokens: int) -> bool:
    """Return whether a reply stopped for length before its `max_tokens`, because the window ran out."""
    return usage is not None and stop == "length" and 0 < usage.output < max_tokens


def cut_call(message: Message) -> bool:
    """Return whether a reply stopped for length inside a tool call, so that its arguments do not parse."""
    last = message.parts[-1] if message.parts else None
    return message.stop == "length" and isinstance(last, ToolCall) and isinstance(last.arguments, str)


def fits_with(limit: int | None, asked: int | None, max_tokens: int | None) -> int | None:
    """Return the largest smaller `max_tokens` with which the same input fits, or None.

    All in the provider's tokens, as in an `Overflow`: 200,000 and 188,240 leave 11,760. None if less than
    `LEAST_REPLY` is left, `max_tokens` was not the cause, or a size is unknown.
    """
    if limit is None or asked is None or max_tokens is None:
        return None
    room = limit - asked
    return room if LEAST_REPLY <= room < max_tokens else None


def fitting_output(size: int, window: Window, wanted: int) -> int | None:
    """Return a smaller `max_tokens` with which a request of `size` tokens fits, or None.

    Tried first on an overflow, since providers count the requested output against the context.
    """
    return fits_with(window.context, size, wanted) if size <= window.input_limit else None


# From the templates of Mistral, Gemma, Llama and Qwen (as passed on by llama.cpp and vLLM), Mistral's API,
# and servers that imitate Anthropic's.
_ROLES_REFUSED: Final = re.compile(
    r"\broles? must alternate\b|\bmust alternate between\b|\bunexpected role '?\w+'? after role\b"
    r"|\bsystem message must be (?:at the beginning|the first|first)\b"
    r"|\bonly (?:system, )?user,? (?:and |, )?assistant[\w, ]{0,80} roles are supported\b",
    re.IGNORECASE,
)


def refuses_roles(text: str) -> bool:
    """Return whether an error says that roles must alternate, or that system messages must come first."""
    return bool(_ROLES_REFUSED.search(text[:_READ_CHARS]))
