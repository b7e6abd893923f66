"""Foldline in agent frameworks: one file each, each one line for its user. `docs/adapters.md` shows them."""
