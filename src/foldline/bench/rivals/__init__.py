"""Other systems, each called as in its documentation."""

from __future__ import annotations

from foldline.bench.rivals import frameworks, libraries, npm
from foldline.bench.rivals.registry import RIVALS

__all__ = ["RIVALS", "frameworks", "libraries", "npm"]
