"""Which old images leave a view or get smaller, at a boundary: the newest stay as they are.

An image stands in a message of the user's or in a result. What no reply has seen yet counts, and stays. Of
the others those beyond the newest `images` of the policy are made smaller, where the caller can and the
policy says how small, else a note says that an image stood there; so do the oldest beyond `image_bytes`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

import msgspec

from foldline.core.cut.edits import EditsOf
from foldline.core.cut.notes import IMAGE_LEFT_OUT
from foldline.core.decide.policy import Policy
from foldline.core.log.entries import Edit, Said
from foldline.core.log.messages import Media, Part, Text, ToolResult
from foldline.core.log.steps import last_step
from foldline.core.measure.media import IMAGE_TOKENS, media_label
from foldline.core.measure.tokens import Counter, part_tokens
from foldline.core.secrets.redact import redact

Scale = Callable[[Media, int], Media | None]
"""Returns an image with at most so many pixels on its longer side; None where that cannot be made."""

REDUCED: Final = "reduced"  # the kind of an edit that is made here
PIXELS_A_TOKEN: Final = 750  # Anthropic's; others charge a small image about the same


def reduced(
    kept: Sequence[Said],
    policy: Policy,
    counter: Counter,
    *,
    edits: EditsOf,
    spare: Collection[str] = (),
    scale: Scale | None = None,
    date: str,
) -> list[Edit]:
    """Return the edits of old images in a view's entries, the newest first.

    There are none where the policy has no limit. `edits` are those made before; a part that another kind of
    edit changed is left alone, as are the entries of `spare`. `date` is what notes say (YYYY-MM-DD).
    """
    if policy.images is None and policy.image_bytes is None:
        return []
    count = size = 0
    found: list[Edit] = []
    for entry, seen in _newest_first(kept):
        older = {edit.part: edit for edit in edits.get(entry.id, ())}
        for at in range(len(entry.message.parts) - 1, -1, -1):
            original, edit = entry.message.parts[at], older.get(at)
            part = edit.replacement if edit is not None else original
            fixed = at >= seen or entry.id in spare or (edit is not None and edit.kind != REDUCED)
            fixed = fixed or (entry.message.role == "assistant" and not isinstance(original, ToolResult))
            smaller: dict[int, Media | Text] = {}
            for place, image in _images(part):
                count += 1
                now: Media | Text = image
                if not fixed and policy.images is not None and count > policy.images:
                    now = _scaled(image, policy, scale) or _note(image, date)
                if isinstance(now, Media):
                    size += _bytes(now)
                    if not fixed and policy.image_bytes is not None and size > policy.image_bytes:
                        size -= _bytes(now)
                        now = _note(image, date)
                if now != image:
                    smaller[place] = now
            if part is not None and smaller:
                new = _with(part, smaller)
                found.append(Edit(entry.id, at, REDUCED, new, _saved(original, new, policy, counter)))
    return found


def _newest_first(kept: Sequence[Said]) -> Iterator[tuple[Said, int]]:
    """Yield the entries, the newest first, each with the number of its parts that a reply has seen."""
    newest = max((i for i, entry in enumerate(kept) if entry.message.role == "assistant"), default=-1)
    for index in range(len(kept) - 1, -1, -1):
        message = kept[index].message
        seen = len(message.parts) if index < newest else last_step(message) if index == newest else 0
        yield kept[index], seen


def _images(part: Part | None) -> Iterator[tuple[int, Media]]:
    """Yield the images of a part, the last first, each with its place in a result."""
    content = part.content if isinstance(part, ToolResult) else (part,)
    for place in range(len(content) - 1, -1, -1):
        one = content[place]
        if isinstance(one, Media) and (one.kind == "image" or one.mime.startswith("image/")):
            yield place, one


def _bytes(image: Media) -> int:
    return len(image.data or "") * 3 // 4


def _scaled(image: Media, policy: Policy, scale: Scale | None) -> Media | None:
    return scale(image, policy.image_size) if scale and policy.image_size and image.data else None


def _note(image: Media, date: str) -> Text:
    label = redact(media_label(image)).strip("[]").replace("]", ")")
    return Text(f"{IMAGE_LEFT_OUT}{date}: {label}]")


def _with(part: Part, smaller: dict[int, Media | Text]) -> Part:
    if not isinstance(part, ToolResult):
        return smaller[0]
    content = tuple(smaller.get(place, one) for place, one in enumerate(part.content))
    return msgspec.structs.replace(part, content=content)


def _saved(original: Part, new: Part, policy: Policy, counter: Counter) -> int:
    """Return the tokens that an edit saves; an image that was made smaller takes what its pixels cost."""
    size = policy.image_size or 0
    least = min(IMAGE_TOKENS, size * size // PIXELS_A_TOKEN + 1)
    before = [image for _, image in _images(original)]
    small = sum(image not in before for _, image in _images(new))
    return part_tokens(original, counter) - part_tokens(new, counter) + small * (IMAGE_TOKENS - least)
