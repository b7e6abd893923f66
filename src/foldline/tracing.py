"""OpenTelemetry spans, if opentelemetry-api is installed (extra `otel`); otherwise nothing happens.

The names of the gen_ai conventions are constants here, because the conventions still change.
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

# As github.com/open-telemetry/semantic-conventions-genai has them, and `opentelemetry-util-genai` emits them.
# The constants of `opentelemetry-semantic-conventions` are those from before they moved there.
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
CONVERSATION: Final = "gen_ai.conversation.id"
COMPACTED: Final = "gen_ai.conversation.compacted"  # set where it is so, and never to false
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
RESPONSE_MODEL: Final = "gen_ai.response.model"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"  # cached ones included
CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS: Final = "gen_ai.usage.cache_write.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
ERROR_TYPE: Final = "error.type"
KIND: Final = (
    "openinference.span.kind"  # by which Phoenix and Langfuse show a step that is no call of a model
)
MESSAGE_COUNT: Final = "foldline.message_count"  # native messages of the request

Value = str | bool | int | float | list[str]


class Span:
    """One span; without OpenTelemetry it does nothing."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    @property
    def recording(self) -> bool:
        """Whether anybody sees what is put here; figures that cost time are only made then."""
        return self._span is not None and self._span.is_recording()

    def put(self, values: Mapping[str, Value | None]) -> None:
        """Set attributes; those of None are left out."""
        if self._span is not None:
            self._span.set_attributes(_present(values))

    def event(self, name: str, values: Mapping[str, Value | None]) -> None:
        """Add an event with its attributes; those of None are left out."""
        if self._span is not None:
            self._span.add_event(name, _present(values))

    def failed(self, kind: str, text: str = "") -> None:
        """Mark the span as failed; `kind` is a word, never a message that could hold a secret."""
        if self._span is not None:
            trace = _trace()
            self._span.set_attributes({ERROR_TYPE: kind})
            self._span.set_status(trace.Status(trace.StatusCode.ERROR, text or kind))

    def end(self) -> None:
        """End the span."""
        if self._span is not None:
            self._span.end()


@contextmanager
def span(name: str, values: Mapping[str, Value | None] | None = None) -> Generator[Span]:
    """Open a span, the parent of those opened inside; an exception marks it as failed, by its class."""
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
        made = Span(opened)
        try:
            yield made
        except BaseException as error:
            made.failed(type(error).__name__)
            raise


def started(
    name: str, kind: str = "client", values: Mapping[str, Value | None] | None = None, *, ago: float = 0.0
) -> Span:
    """Start a span without children, ended by the caller: for a stream, whose reader may be anywhere.

    It began so many seconds `ago`.
    """
    trace = _trace()
    if trace is None:
        return Span()
    tracer = trace.get_tracer(LIBRARY)
    kinds = trace.SpanKind
    found = kinds.CLIENT if kind == "client" else kinds.INTERNAL
    began = time.time_ns() - int(ago * 1e9)
    return Span(tracer.start_span(name, kind=found, attributes=_present(values or {}), start_time=began))


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
