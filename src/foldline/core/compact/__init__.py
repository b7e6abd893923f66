"""One compaction, planned from its limits to its boundary; nothing here does anything itself."""
