"""References to what a provider keeps: where one stands, the call of a result may not be in the log.

OpenAI's Responses API takes an item that it stored by its id alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from foldline.core.log.messages import Message, Opaque, Part

REFERENCE = "item_reference"  # the kind of an Opaque part that names a stored item
# How the ids of OpenAI's items begin, by their kind; an id that begins otherwise may be a call's.
_CALLS = ("fc_", "ctc_", "cu_", "lsh_", "sh_", "apc_", "tsc_", "mcpr_")
_OTHERS = ("rs_", "msg_", "ws_", "fs_", "ci_", "ig_", "mcp_", "mcpl_", "cmp_")


def names_call(item_id: str) -> bool | None:
    """Return whether a stored item's id is that of a call; None where it cannot be told."""
    if item_id.startswith(_CALLS):
        return True
    return False if item_id.startswith(_OTHERS) else None


def is_reference(part: Part) -> bool:
    """Return whether a part names an item that its provider keeps."""
    return isinstance(part, Opaque) and part.kind == REFERENCE


def stored_calls(message: Message) -> int:
    """Return how many calls a message may stand for that only its provider knows: each takes one result."""
    if message.role != "assistant":
        return 0
    named = (_id(part.data) for part in message.parts if isinstance(part, Opaque) and is_reference(part))
    return sum(names_call(item_id) is not False for item_id in named)


def _id(data: Any) -> str:
    item_id = cast("Mapping[str, Any]", data).get("id") if isinstance(data, Mapping) else None
    return item_id if isinstance(item_id, str) else ""
