"""Images made smaller, where Pillow is installed: `pip install foldline[images]`."""

from __future__ import annotations

import base64
import binascii
import io

import msgspec

from foldline.core.log.messages import Media

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
MOST = 60_000_000  # pixels of an image that is opened: a larger one takes too much memory
QUALITY = 80  # of a JPEG


def scaled(image: Media, size: int) -> Media | None:
    """Return an image whose longer side has at most `size` pixels, itself if it has.

    None where Pillow is not installed, or cannot read the image. What can be seen through stays so, of a
    moving image the first picture stays.
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
        clear = picture.has_transparency_data
        picture = picture.convert("RGBA" if clear else "RGB")
        picture.thumbnail((size, size))
        out = io.BytesIO()
        picture.save(out, "PNG" if clear else "JPEG", **({} if clear else {"quality": QUALITY}))
    except (binascii.Error, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    data = base64.b64encode(out.getvalue()).decode()
    return msgspec.structs.replace(image, mime="image/png" if clear else "image/jpeg", data=data)
