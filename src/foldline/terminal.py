"""Make text from sessions, file names and errors safe for a terminal."""

from __future__ import annotations

import re

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1: cursor, colours, titles, links (CSI, OSC, DCS)
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb"  # direction, invisible ones
    "\ud800-\udfff\U000e0000-\U000e007f]"  # lone surrogates, tags
)


def clean(text: str) -> str:
    r"""Return text with an escape (\x1b, \u202e) in place of each character that could steer a terminal."""
    return _STEERING.sub(_escaped, text.replace("\r\n", "\n"))


def clean_json(document: bytes) -> bytes:
    """Return a JSON document with the same value, without characters that could steer a terminal."""
    return _STEERING.sub(_json_escaped, document.decode()).encode()


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xD800 <= code < 0xE000:
        return "\ufffd"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _json_escaped(found: re.Match[str]) -> str:
    raw = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{raw[start : start + 4]}" for start in range(0, len(raw), 4))
