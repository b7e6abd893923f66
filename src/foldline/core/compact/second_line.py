"""The second line against secrets: what stood in the view is taken out of all that a boundary says."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from foldline.core.checkpoint.checkpoint import as_message
from foldline.core.compact.job import CompactionInput
from foldline.core.log.entries import Compacted, Pruned, Receipt
from foldline.core.measure.tokens import message_tokens
from foldline.core.secrets.derived import Sweep

T = TypeVar("T", bound=Compacted | Pruned | Receipt)


def scrub_secrets(made: T, job: CompactionInput) -> T:
    """Return a boundary or a receipt that says none of the secrets of the view, its tokens counted again."""
    state = job.state
    state.clean((*state.leading, *state.quoted, *state.kept))  # each entry is looked at once
    clean = Sweep(state.clean.secrets).struct(made)
    if clean is made or not isinstance(clean, Compacted):
        return clean
    point = clean.checkpoint
    tokens = message_tokens(as_message(point.text, point.role), job.counter)
    return msgspec.structs.replace(clean, checkpoint=msgspec.structs.replace(point, tokens=tokens))
