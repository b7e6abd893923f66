"""Sessions with sizes that are easy to check by hand, and usage as a provider reports it."""

from collections.abc import Iterable

from tests.support import talk

from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Usage
from foldline.core.measure.tokens import message_tokens


class Quarter:
    """A token counter that is easy to check by hand: four characters are a token."""

    name = "quarter"

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4


LETTERS = Quarter()


def usage(total):
    return Usage(input=total - 10, output=10)


def entries(messages: Iterable[Message | tuple[Message, int]]) -> list[Said]:
    """Chain messages into entries; a pair sets the tokens of its entry, all others are counted."""
    sized = [item if isinstance(item, tuple) else (item, message_tokens(item, LETTERS)) for item in messages]
    return talk.entries(*(message for message, _ in sized), tokens=[tokens for _, tokens in sized])
