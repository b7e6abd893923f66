"""Session files written by hand for formats of which no real file is public."""

from __future__ import annotations

from pathlib import Path

SYNTHETIC = Path(__file__).parents[1] / "data" / "transcripts" / "synthetic"
