"""Scale down or leave out old images at a boundary; the newest stay as they are.

Images come in user messages and in results. Those that no reply has seen count, but always stay. Older ones
beyond the policy's newest `images` are scaled down if the caller can and the policy has an `image_size`, else
replaced by a note. The oldest beyond `image_bytes` become notes too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

import msgspec

from foldline.core.cut.edits import EditsOf
from foldline.core.cut.notes import IMAGE_LEFT_OUT
from foldline.core.cut.pairing import parts_seen
from foldline.core.decide.policy import Policy
from foldline.core.log.entries import Edit, Said
from foldline.core.log.messages import Media, Part, Text, ToolResult
from foldline.core.measure.media import IMAGE_TOKENS, media_label
from foldline.core.measure.tokens import Counter, part_tokens
from foldline.core.secrets.redact import redact

Scale = Callable[[Media, int], Media | None]
"""Returns an image with at most so many pixels on its longer side; None if it cannot be scaled."""

REDUCED: Final = "reduced"  # the kind of the edits made here
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
    """Return the edits of old images in a view's entries, the newest first; none without a limit.

    `edits` are the earlier ones. Parts with another kind of edit and entries in `spare` are left alone.
    `date` (YYYY-MM-DD) is written into the notes.
    """
    if policy.images is None and policy.image_bytes is None:
        return []
    count = total_bytes = 0
    result: list[Edit] = []
    seen_in = parts_seen([entry.message for entry in kept])
    for entry, seen in zip(reversed(kept), reversed(seen_in), strict=True):
        edits_by_part = {edit.part: edit for edit in edits.get(entry.id, ())}
        for at in range(len(entry.message.parts) - 1, -1, -1):
            original, edit = entry.message.parts[at], edits_by_part.get(at)
            part = edit.replacement if edit is not None else original
            stays = at >= seen or entry.id in spare or (edit is not None and edit.kind != REDUCED)
            stays = stays or (entry.message.role == "assistant" and not isinstance(original, ToolResult))
            replaced: dict[int, Media | Text] = {}
            for place, image in _images(part):
                count += 1
                new: Media | Text | None = image
                if not stays and policy.images is not None and count > policy.images:
                    new = None
                    if scale is not None and policy.image_size and image.data:
                        new = scale(image, policy.image_size)
                    new = new or _note(image, date)
                if isinstance(new, Media):
                    total_bytes += _bytes(new)
                    if not stays and policy.image_bytes is not None and total_bytes > policy.image_bytes:
                        total_bytes -= _bytes(new)
                        new = _note(image, date)
                if new != image:
                    replaced[place] = new
            if part is not None and replaced:
                smaller = _with(part, replaced)
                result.append(
                    Edit(entry.id, at, REDUCED, smaller, _saved(original, smaller, policy, counter))
                )
    return result


def _images(part: Part | None) -> Iterator[tuple[int, Media]]:
    """Yield the images of a part, last first, each with its index in the content of a result."""
    content = part.content if isinstance(part, ToolResult) else (part,)
    for place in range(len(content) - 1, -1, -1):
        inner = content[place]
        if isinstance(inner, Media) and (inner.kind == "image" or inner.mime.startswith("image/")):
            yield place, inner


def _bytes(image: Media) -> int:
    return len(image.data or "") * 3 // 4


def _note(image: Media, date: str) -> Text:
    label = redact(media_label(image)).strip("[]").replace("]", ")")
    return Text(f"{IMAGE_LEFT_OUT}{date}: {label}]")


def _with(part: Part, replaced: dict[int, Media | Text]) -> Part:
    if not isinstance(part, ToolResult):
        return replaced[0]
    content = tuple(replaced.get(place, inner) for place, inner in enumerate(part.content))
    return msgspec.structs.replace(part, content=content)


def _saved(original: Part, new: Part, policy: Policy, counter: Counter) -> int:
    """Return the tokens that an edit saves; a scaled image costs what its pixels cost."""
    size = policy.image_size or 0
    least = min(IMAGE_TOKENS, size * size // PIXELS_A_TOKEN + 1)
    before = [image for _, image in _images(original)]
    small = sum(image not in before for _, image in _images(new))
    return part_tokens(original, counter) - part_tokens(new, counter) + small * (IMAGE_TOKENS - least)
