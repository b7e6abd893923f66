"""Spans as JSON lines in the file that FOLDLINE_TRACE_FILE names."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from foldline.errors import InputError

VARIABLE: Final = "FOLDLINE_TRACE_FILE"


@contextmanager
def traced() -> Generator[None]:
    """Write every span of the block to the file, one JSON object a line; nothing without the variable."""
    name = os.environ.get(VARIABLE)
    if not name:
        yield
        return
    try:
        from opentelemetry import trace  # noqa: PLC0415  an optional extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InputError(f"{VARIABLE} needs OpenTelemetry: pip install 'foldline[otel]'") from error
    with open(name, "a", encoding="utf-8") as file:  # noqa: PTH123 - the name as it was given
        provider = TracerProvider()
        exporter = ConsoleSpanExporter(out=file, formatter=_line)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
        try:
            yield
        finally:
            provider.shutdown()


def _line(span: Any) -> str:
    text: str = span.to_json(indent=None)
    return f"{text}\n"
