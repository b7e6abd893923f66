"""The properties of dialects that the core needs.

The core names no dialect. The packages in `foldline/dialects/` register their properties when they are
imported; an unregistered dialect has the defaults.
"""

from __future__ import annotations

import msgspec

from foldline.core.log.messages import Message


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """How a dialect writes messages.

    `splits_replies`: one reply of the model may be several messages in a row. `unique_ids`: call ids are
    unique in the whole list and not only in a reply. `own_results`: an assistant message may hold the results
    of its own calls.
    """

    splits_replies: bool = False
    unique_ids: bool = True
    own_results: bool = True


_DEFAULT = Traits()
_stated: dict[str, Traits] = {}


def state(dialect: str, traits: Traits) -> None:
    """Register the properties of a dialect when it is defined."""
    _stated[dialect] = traits


def traits_of(message: Message) -> Traits:
    """Return the properties of a message's dialect; a message without a native has the defaults."""
    return _stated.get(message.native.dialect, _DEFAULT) if message.native is not None else _DEFAULT
