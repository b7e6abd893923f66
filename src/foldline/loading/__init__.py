"""From what callers and files hold to entries that can be folded or stored."""

from foldline.loading.lists import from_messages
from foldline.loading.loaded import Loaded
from foldline.loading.own import from_entries, from_own, with_notes
from foldline.loading.records import as_recorded, from_records, index_of

__all__ = [
    "Loaded",
    "as_recorded",
    "from_entries",
    "from_messages",
    "from_own",
    "from_records",
    "index_of",
    "with_notes",
]
