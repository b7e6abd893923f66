"""Export of spans: as JSON lines to the file in FOLDLINE_TRACE_FILE, and by OTLP to a collector.

OpenTelemetry's own OTEL_EXPORTER_OTLP_ENDPOINT sets the collector (Langfuse, Phoenix, Jaeger).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from foldline.errors import InputError
from foldline.files import append_private

log = logging.getLogger("foldline")

VARIABLE: Final = "FOLDLINE_TRACE_FILE"
COLLECTOR: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
SERVICE: Final = "OTEL_SERVICE_NAME"


@contextmanager
def traced() -> Generator[None]:
    """Export every span of the block to the targets that the environment variables name."""
    name = os.environ.get(VARIABLE)
    with ExitStack() as stack:
        processors = [_to_file(name, stack)] if name else []
        if any(map(os.environ.get, COLLECTOR)) and (processor := _to_collector()) is not None:
            processors.append(processor)
        if processors:
            _install(processors, stack)
        yield


def _install(processors: list[Any], stack: ExitStack) -> None:
    from opentelemetry import trace  # noqa: PLC0415  an optional extra
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415

    resource = Resource.create({"service.name": os.environ.get(SERVICE, "foldline")})
    provider = TracerProvider(resource=resource)
    for processor in processors:
        provider.add_span_processor(processor)
    trace.set_tracer_provider(provider)
    stack.callback(provider.shutdown)


def _to_file(name: str, stack: ExitStack) -> Any:
    """Return a processor that writes spans to a file, one JSON object per line."""
    try:
        from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise InputError(f"{VARIABLE} needs OpenTelemetry: pip install 'foldline[otel]'") from error
    try:
        opened = append_private(Path(name))
    except OSError as error:
        raise InputError(f"{VARIABLE}: {name} cannot be written: {error.strerror or error}") from error
    file = stack.enter_context(TextIOWrapper(opened, encoding="utf-8"))
    return SimpleSpanProcessor(ConsoleSpanExporter(out=file, formatter=_line))


def _to_collector() -> Any:
    """Return a processor that sends spans by OTLP over HTTP; None, with a warning, if it is not installed."""
    try:
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415

        exporter: Any = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ModuleNotFoundError:
        needed = "pip install 'foldline[otel]' opentelemetry-exporter-otlp-proto-http"
        log.warning("%s is set, but no spans are sent: %s", COLLECTOR[0], needed)
        return None
    return BatchSpanProcessor(exporter.OTLPSpanExporter())


def _line(span: Any) -> str:
    text: str = span.to_json(indent=None)
    return f"{text}\n"
