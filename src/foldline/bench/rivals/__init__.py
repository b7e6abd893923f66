"""Other systems, each called as its documentation says."""

from __future__ import annotations

from foldline.bench.rivals import frameworks, libraries, npm
from foldline.bench.rivals.registry import RIVALS

__all__ = ["RIVALS", "frameworks", "libraries", "npm"]
