"""OpenTelemetry spans; without opentelemetry-api (extra `otel`) every call does nothing.

The attribute names of the gen_ai conventions are constants, because the conventions still change.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

LIBRARY: Final = "foldline"

# Names from github.com/open-telemetry/semantic-conventions-genai, as `opentelemetry-util-genai` emits them.
# The constants in `opentelemetry-semantic-conventions` are outdated.
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
CONVERSATION: Final = "gen_ai.conversation.id"
COMPACTED: Final = "gen_ai.conversation.compacted"  # only ever set to true
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"  # cached ones included
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
ERROR_TYPE: Final = "error.type"
KIND: Final = "openinference.span.kind"  # Phoenix and Langfuse use it to show steps without a model call
MESSAGE_COUNT: Final = "foldline.message_count"  # of native messages in the request

Value = str | bool | int | float | list[str]


class Span:
    """One span; does nothing without OpenTelemetry."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    @property
    def recording(self) -> bool:
        """Whether attributes are recorded; skip expensive ones otherwise."""
        return self._span is not None and self._span.is_recording()

    def put(self, values: Mapping[str, Value | None]) -> None:
        """Set attributes, skipping None values."""
        if self._span is not None:
            self._span.set_attributes(_present(values))

    def event(self, name: str, values: Mapping[str, Value | None]) -> None:
        """Add an event with attributes, skipping None values."""
        if self._span is not None:
            self._span.add_event(name, _present(values))

    def failed(self, kind: str, text: str = "") -> None:
        """Mark the span as failed; `kind` is an error class, never a message, which could hold a secret."""
        if self._span is not None:
            trace = _trace()
            self._span.set_attributes({ERROR_TYPE: kind})
            self._span.set_status(trace.Status(trace.StatusCode.ERROR, text or kind))

    def end(self) -> None:
        """End a span that `started` returned."""
        if self._span is not None:
            self._span.end()


@contextmanager
def span(name: str, values: Mapping[str, Value | None] | None = None) -> Generator[Span]:
    """Open a span and make it the current one; an exception marks it as failed with its class name."""
    trace = _trace()
    if trace is None:
        yield Span()
        return
    tracer = trace.get_tracer(LIBRARY)
    with tracer.start_as_current_span(
        name,
        attributes=_present({KIND: "CHAIN", **(values or {})}),
        record_exception=False,
        set_status_on_exception=False,
    ) as opened:
        current = Span(opened)
        try:
            yield current
        except BaseException as error:
            current.failed(type(error).__name__)
            raise


def started(name: str, values: Mapping[str, Value | None], *, ago: float = 0.0) -> Span:
    """Start a span of a call that the caller ends, such as for a stream; it does not become the current span.

    Its start time is `ago` seconds in the past.
    """
    trace = _trace()
    if trace is None:
        return Span()
    tracer, start = trace.get_tracer(LIBRARY), time.time_ns() - int(ago * 1e9)
    client = trace.SpanKind.CLIENT
    return Span(tracer.start_span(name, kind=client, attributes=_present(values), start_time=start))


@cache
def _trace() -> Any:
    if importlib.util.find_spec("opentelemetry") is None:
        return None
    try:
        return importlib.import_module("opentelemetry.trace")
    except ImportError:
        return None


def _present(values: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if value is not None}
