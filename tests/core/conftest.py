"""The dialects state their properties (`core/log/dialects.py`) while they are imported."""

import foldline.dialects  # noqa: F401
