"""One compaction from beginning to end: what it may prune, shorten and fold, drafts of it, and hand-offs."""
