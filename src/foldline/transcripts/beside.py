"""Small JSON files that an agent keeps beside a session file: a title, a model, the last compaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from foldline.errors import FormatError
from foldline.transcripts.base import Warned
from foldline.transcripts.lines import whole
from foldline.transcripts.values import mapping


def beside(path: Path) -> dict[str, Any] | Warned:
    """Read the JSON object in a file ({}: there is no such file); what cannot be read is a warning that names it."""
    try:
        with path.open("rb") as stream:
            value, note = whole(stream, str(path))
    except FileNotFoundError:
        return {}
    except OSError as error:
        return Warned(0, f"{path} beside it cannot be read: {error.strerror or error}")
    except FormatError as error:
        return Warned(0, f"beside it, {error} (left out)")
    if note:
        return Warned(0, f"{path} beside it is damaged: {note} (left out)")
    if not isinstance(value, dict):
        return Warned(0, f"{path} beside it holds no JSON object (left out)")
    return mapping(value)
