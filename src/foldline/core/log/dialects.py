"""What the core has to know of a dialect: a few properties, which each dialect states of itself.

The core names no dialect. The folders of `foldline/dialects/` state their properties while they are imported,
and nothing reads or renders a native message without them. A dialect that stated nothing has the defaults.
"""

from __future__ import annotations

import msgspec

from foldline.core.log.messages import Message


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """How a dialect writes messages.

    `splits_replies`: one reply of the model may be several messages in a row. `unique_ids`: the id of a call
    stands once in the whole list, not once in a reply. `own_results`: an assistant's message may hold the
    results of its own calls.
    """

    splits_replies: bool = False
    unique_ids: bool = True
    own_results: bool = True


_DEFAULT = Traits()
_stated: dict[str, Traits] = {}


def state(dialect: str, traits: Traits) -> None:
    """State the properties of a dialect, once, when it is defined."""
    _stated[dialect] = traits


def traits_of(message: Message) -> Traits:
    """Return the properties of the dialect of a message; a made message has the defaults."""
    return _stated.get(message.native.dialect, _DEFAULT) if message.native is not None else _DEFAULT
