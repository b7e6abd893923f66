"""Import the dialects: each registers its properties (`core/log/dialects.py`) on import."""

import foldline.dialects  # noqa: F401
