"""How fast is the offline counter, beside len() / 4 of the same texts?"""

from __future__ import annotations

from budgets.table import Row, cpu

from foldline.bench.corpus import Talk
from foldline.core.measure.tokens import OFFLINE, Counter

SIZE = 4_000_000  # bytes


class Characters:
    """The estimate of other systems: characters divided by four."""

    name = "chars/4"

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4


def rate(texts: list[str], counter: Counter) -> float:
    """Return the megabytes of UTF-8 that a counter takes in a second."""
    size = sum(len(text.encode()) for text in texts)
    rounds = max(1, SIZE // size)

    def count() -> None:
        for _ in range(rounds):
            for text in texts:
                counter.count(text)

    return size * rounds / cpu(count) / 1e6


def main(*, full: bool = False) -> list[Row]:
    """Measure messages as they come, and long texts."""
    del full
    talk = Talk()
    messages = [text for m in talk.messages(2_000) if isinstance(text := m["content"], str)]
    long = ["\n".join(messages)[:500_000]]
    other = ["日本語のテキストと、русский текст и 中文 " * 5_000]
    characters = Characters()
    return [
        Row("offline counter, messages", rate(messages, OFFLINE), "MB/s"),
        Row("offline counter, a text of 500 kB", rate(long, OFFLINE), "MB/s"),
        Row("offline counter, a text without ASCII", rate(other, OFFLINE), "MB/s"),
        Row("characters / 4, messages", rate(messages, characters), "MB/s"),
    ]
