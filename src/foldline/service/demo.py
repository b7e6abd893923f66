"""The demonstration: a scripted model, and a store with the example session. Both are gone when it ends."""

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
WINDOW: Final = 60_000  # tokens: the example session is just about to fill it
SAID: Final = (
    "This is a scripted answer: no model was asked. With `--model` a real one answers here.\n\n"
    "The history shows all that was said; folding deletes nothing. What the model is sent is in the panel, "
    "under Sent. When that no longer fits the window, the older part is folded into a checkpoint: what was "
    "asked, what was done to which file, what failed, which rules of yours hold. Folded messages are dimmed; "
    "they can be searched, sent again by Undo, or kept word for word by a pin. Say a rule such as "
    '"Never push to main." and look at Rules.'
)


@contextmanager
def demonstration(serve: ServeSettings) -> Generator[ServeSettings]:
    """Return settings for the demonstration, which lasts as long as the block."""
    model = Scripted(_reply, window=WINDOW)
    with tempfile.TemporaryDirectory(prefix="foldline-demo-") as folder, serve_in_thread(model) as url:
        store = f"sqlite:///{folder}/sessions.db"
        asyncio.run(_filled(store))
        yield msgspec.structs.replace(
            serve,
            store=store,
            model=f"openai-compatible:demonstration@{url}/v1",
            window=WINDOW,
            summaries="offline",
            openai_upstream=url,
            anthropic_upstream=url,
        )


async def _filled(url: str) -> None:
    content = (resources.files("foldline") / EXAMPLE).read_bytes()
    loaded = from_stream(BytesIO(content), EXAMPLE)
    log = with_notes(loaded)
    store = open_store(url)
    try:
        await restore(store, NAME, log, log[-1].id)
    finally:
        await store.close()


def _reply(asked: Asked) -> str:
    return f"{SAID}\n\nThis was request {asked.index + 1} to this service."
