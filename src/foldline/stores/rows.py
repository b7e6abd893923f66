"""An entry as bytes.

The format is MessagePack, in which native payloads stay bytes, or escaped JSON for values that MessagePack
cannot hold (lone surrogates, integers over 64 bits). Long payloads are compressed with zlib, since they hold
each message twice: as received, and as decoded. The first byte is `{` for JSON and `x` for zlib.
"""

from __future__ import annotations

import json
import zlib
from typing import Final

import msgspec

from foldline.core.log.entries import Entry
from foldline.errors import StoreCorrupt, StoreError

LONG: Final = 1_024  # bytes of a payload from which it is compressed
_LEVEL: Final = 1  # the fastest: higher levels take twice as long and save a tenth
_ESCAPED: Final = b"{"
_COMPRESSED: Final = b"x"

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Entry)


def pack(entry: Entry) -> bytes:
    """Serialise an entry, and check that it can be read back; raises StoreError otherwise."""
    try:
        plain = _packed(entry)
        _unpacked(plain)
    except (TypeError, ValueError, OverflowError) as error:
        raise StoreError(f"entry {entry.id} cannot be stored: {error}") from error
    except RecursionError as error:
        raise StoreError(f"entry {entry.id} cannot be stored: it is nested too deeply") from error
    return plain if len(plain) < LONG else zlib.compress(plain, _LEVEL)


def unpack(payload: bytes) -> Entry:
    """Read an entry that `pack` wrote; raises StoreCorrupt for other bytes."""
    try:
        return _unpacked(_plain(payload))
    except (TypeError, ValueError, RecursionError, zlib.error) as error:
        raise StoreCorrupt(f"a stored entry cannot be read: {error}") from error


def searchable_bytes(payload: bytes) -> bytes | None:
    """Return the bytes of a payload in which its texts can be searched; None if they are escaped.

    A damaged payload is returned unchanged.
    """
    try:
        plain = _plain(payload)
    except zlib.error:
        return payload
    return None if plain[:1] == _ESCAPED else plain


def _plain(payload: bytes) -> bytes:
    return zlib.decompress(payload) if payload[:1] == _COMPRESSED else payload


def _packed(entry: Entry) -> bytes:
    try:
        return _encoder.encode(entry)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(msgspec.to_builtins(entry), separators=(",", ":")).encode("ascii")


def _unpacked(plain: bytes) -> Entry:
    if plain[:1] == _ESCAPED:
        return msgspec.convert(json.loads(plain), Entry)
    return _decoder.decode(plain)
