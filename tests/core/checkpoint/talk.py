"""Small conversations for the tests of this room."""

from foldline.core.log.log import said
from foldline.core.log.messages import Media, Message, Text, Thinking, ToolCall, ToolResult


def entries(*messages, tokens=10):
    """The messages as a chain of entries."""
    chain, parent, key = [], None, ""
    for message in messages:
        entry = said(message, parent=parent, said_key=key, tokens=tokens)
        chain.append(entry)
        parent, key = entry.id, entry.said_key
    return tuple(chain)


def user(text, **more):
    return Message(role="user", parts=(Text(text),), **more)


def assistant(text="", *calls, thinking=""):
    parts = [*([Thinking(thinking)] if thinking else []), *([Text(text)] if text else []), *calls]
    return Message(role="assistant", parts=tuple(parts))


def call(id_, name, arguments=None, **more):
    return ToolCall(id_, name, arguments if arguments is not None else more)


def result(id_, text, *, is_error=False):
    return Message(role="tool", parts=(ToolResult(id_, (Text(text),), is_error),))


def results(*pairs, text=""):
    """Several results in one user message, as Anthropic has them, and what the user said with them."""
    parts = [ToolResult(id_, (Text(content),)) for id_, content in pairs]
    return Message(role="user", parts=(*parts, *([Text(text)] if text else [])))


def picture(name=None):
    return Media(kind="image", mime="image/png", data="iVBORw0KGgo=", name=name)
