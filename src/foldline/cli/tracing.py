"""Spans as JSON lines in the file that FOLDLINE_TRACE_FILE names."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from foldline.errors import InputError
from foldline.files import append_private

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
    try:
        opened = append_private(Path(name))
    except OSError as error:
        raise InputError(f"{VARIABLE}: {name} cannot be written: {error.strerror or error}") from error
    with TextIOWrapper(opened, encoding="utf-8") as file:
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
