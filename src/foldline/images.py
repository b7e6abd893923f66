"""Scale images down, if Pillow is installed: `pip install foldline[images]`."""

from __future__ import annotations

import base64
import binascii
import io

import msgspec

from foldline.core.log.messages import Media

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
MOST = 60_000_000  # pixels: a larger image takes too much memory
QUALITY = 80  # of a JPEG


def scaled(image: Media, size: int) -> Media | None:
    """Return the image with at most `size` pixels on its longer side; unchanged if it is small enough.

    Transparency is kept; of an animation only the first frame is. None if Pillow is not installed or cannot
    read the image, or if the image has more than `MOST` pixels.
    """
    try:
        from PIL import Image, ImageOps  # noqa: PLC0415 - an extra
    except ImportError:
        return None
    try:
        raw = base64.b64decode(image.data or "", validate=True)
        with Image.open(io.BytesIO(raw), formats=FORMATS) as opened:
            if max(opened.size) <= size:
                return image
            if opened.width * opened.height > MOST:
                return None
            picture = ImageOps.exif_transpose(opened)
        transparent = picture.has_transparency_data
        picture = picture.convert("RGBA" if transparent else "RGB")
        picture.thumbnail((size, size))
        out = io.BytesIO()
        picture.save(out, "PNG" if transparent else "JPEG", **({} if transparent else {"quality": QUALITY}))
    except (binascii.Error, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    data = base64.b64encode(out.getvalue()).decode()
    return msgspec.structs.replace(image, mime="image/png" if transparent else "image/jpeg", data=data)
