"""An entry as bytes.

MessagePack, in which native payloads stay bytes; escaped JSON for texts and numbers that do not fit it (lone
surrogates, integers over 64 bits). The first byte tells them apart: JSON starts with `{`.
"""

from __future__ import annotations

import json

import msgspec

from foldline.core.log.entries import Entry
from foldline.errors import StoreCorrupt, StoreError

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Entry)


def pack(entry: Entry) -> bytes:
    """Serialise an entry and check that it can be read back; raises StoreError if it cannot."""
    try:
        payload = _packed(entry)
        _unpacked(payload)
    except (TypeError, ValueError, OverflowError) as error:
        raise StoreError(f"entry {entry.id} cannot be stored: {error}") from error
    except RecursionError as error:
        raise StoreError(f"entry {entry.id} cannot be stored: it is nested too deeply") from error
    return payload


def unpack(payload: bytes) -> Entry:
    """Read what `pack` wrote; raises StoreCorrupt for anything else."""
    try:
        return _unpacked(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreCorrupt(f"a stored entry cannot be read: {error}") from error


def is_escaped(payload: bytes) -> bool:
    """Return whether the texts in a payload are escaped, so that their bytes cannot be searched."""
    return payload[:1] == b"{"


def _packed(entry: Entry) -> bytes:
    try:
        return _encoder.encode(entry)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(msgspec.to_builtins(entry), separators=(",", ":")).encode("ascii")


def _unpacked(payload: bytes) -> Entry:
    if is_escaped(payload):
        return msgspec.convert(json.loads(payload), Entry)
    return _decoder.decode(payload)
