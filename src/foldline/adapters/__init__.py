"""Adapters for agent frameworks, one file each; a user adds one line. See `docs/adapters.md`."""
