"""The demonstration: a scripted model and a store with the example session, both removed at its end."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib import resources
from io import BytesIO
from typing import Final

import msgspec

from foldline.config import ServeSettings
from foldline.loading import from_stream, restore, with_notes
from foldline.stores import open_store
from foldline.testing import Asked, Scripted, serve_in_thread

EXAMPLE: Final = "example.jsonl"  # in the package
NAME: Final = "example"
WINDOW: Final = 60_000  # tokens: the example session almost fills it
ANSWER: Final = (
    "This is a scripted answer; no model was called. Start with `--model` to get answers of a real one.\n\n"
    "The history shows the whole conversation: folding deletes nothing. Sent, in the panel, shows what the "
    "model receives. When that no longer fits the window, the older part is folded into a checkpoint: your "
    "requests, the changes to each file, failures, your rules. Folded messages are dimmed; you can search "
    "them, restore them with Undo, or keep one word for word with a pin. State a rule such as "
    '"Never push to main." and look at Rules.'
)


@contextmanager
def demonstration(serve: ServeSettings) -> Generator[ServeSettings]:
    """Yield the settings of the demonstration, which ends with the block."""
    model = Scripted(_reply, window=WINDOW)
    with tempfile.TemporaryDirectory(prefix="foldline-demo-") as folder, serve_in_thread(model) as url:
        store = f"sqlite:///{folder}/sessions.db"
        asyncio.run(_load_example(store))
        yield msgspec.structs.replace(
            serve,
            store=store,
            model=f"openai-compatible:demonstration@{url}/v1",
            window=WINDOW,
            summaries="offline",
            openai_upstream=url,
            anthropic_upstream=url,
        )


async def _load_example(url: str) -> None:
    content = (resources.files("foldline") / EXAMPLE).read_bytes()
    loaded = from_stream(BytesIO(content), EXAMPLE)
    log = with_notes(loaded)
    store = open_store(url)
    try:
        await restore(store, NAME, log, log[-1].id)
    finally:
        await store.close()


def _reply(request: Asked) -> str:
    return f"{ANSWER}\n\nThis was request {request.index + 1} to this service."
