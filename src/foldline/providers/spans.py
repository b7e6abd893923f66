"""The span of one model call, by the gen_ai conventions; no span holds what was said."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from foldline import tracing
from foldline.errors import ProviderError
from foldline.providers.base import Call, Reply
from foldline.tracing import Span


@contextmanager
def chat(package: str, model: str, call: Call, *, stream: bool = False) -> Generator[Span]:
    """Open the span of a call, without children; an exception marks it as failed, by its kind."""
    opened = tracing.started(
        f"chat {model}",
        values={
            tracing.OPERATION: "chat",
            tracing.PROVIDER: package,
            tracing.REQUEST_MODEL: model,
            tracing.REQUEST_MAX_TOKENS: call.max_tokens,
            tracing.REQUEST_STREAM: True if stream else None,
            tracing.MESSAGE_COUNT: len(call.messages),
            **getattr(call.messages, "traced", {}),  # of a session's view
        },
    )
    try:
        yield opened
    except ProviderError as error:
        opened.failed(error.kind)
        raise
    except GeneratorExit:  # the reader of a stream stopped early
        raise
    except BaseException as error:
        opened.failed(type(error).__name__)
        raise
    finally:
        opened.end()


def answered(opened: Span, reply: Reply) -> None:
    """Record the reply in the span: the model, why it stopped, and the usage."""
    usage = reply.usage
    opened.put(
        {
            tracing.RESPONSE_MODEL: reply.model,
            tracing.FINISH_REASONS: [reply.stop],
            tracing.INPUT_TOKENS: usage.total - usage.output if usage else None,
            tracing.CACHE_READ_TOKENS: usage.cache_read if usage else None,
            tracing.CACHE_WRITE_TOKENS: usage.cache_write if usage else None,
            tracing.OUTPUT_TOKENS: usage.output if usage else None,
        }
    )
