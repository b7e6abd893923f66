"""Session compaction for LLM agents: an append-only log, a view folded from it, nothing lost."""
