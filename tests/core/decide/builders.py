"""Small sessions for the tests of decide, accounting, prune and elide."""

from collections.abc import Iterable

from foldline.core.log.entries import Said
from foldline.core.log.log import said
from foldline.core.log.messages import Message, Part, Text, ToolCall, ToolResult, Usage


class Letters:
    """A counter that anybody can check by hand: four letters are a token."""

    name = "letters"

    def count(self, text: str) -> int:
        return (len(text) + 3) // 4


LETTERS = Letters()


def user(text="hello", **more):
    return Message("user", (Text(text),), **more)


def assistant(text="", *calls: ToolCall, **more):
    parts: tuple[Part, ...] = (Text(text),) if text else ()
    return Message("assistant", (*parts, *calls), **more)


def call(call_id, name="read", **arguments):
    return ToolCall(call_id, name, arguments)


def result(call_id, text, *, is_error=False):
    return ToolResult(call_id, (Text(text),), is_error=is_error)


def tool(call_id, text, *, is_error=False):
    """A result in the form of OpenAI: a message of its own."""
    return Message("tool", (result(call_id, text, is_error=is_error),))


def usage(total):
    return Usage(input=total - 10, output=10)


def entries(messages: Iterable[Message | tuple[Message, int]]) -> list[Said]:
    """Chain messages into entries; a pair gives the tokens, else they are counted by letters."""
    made: list[Said] = []
    for item in messages:
        message, tokens = item if isinstance(item, tuple) else (item, _tokens(item))
        before = made[-1] if made else None
        made.append(
            said(
                message,
                parent=before.id if before else None,
                said_key=before.said_key if before else "",
                tokens=tokens,
            )
        )
    return made


def _tokens(message: Message) -> int:
    from foldline.core.measure.tokens import message_tokens

    return message_tokens(message, LETTERS)
