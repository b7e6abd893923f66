"""Read message lists and session files into entries that can be folded or stored."""

from foldline.loading.chain import Loaded
from foldline.loading.lists import from_messages
from foldline.loading.records import as_recorded, from_records, index_of
from foldline.loading.restore import agents_of, restore
from foldline.loading.stream import from_entries, from_own, from_stream, with_notes

__all__ = [
    "Loaded",
    "agents_of",
    "as_recorded",
    "from_entries",
    "from_messages",
    "from_own",
    "from_records",
    "from_stream",
    "index_of",
    "restore",
    "with_notes",
]
