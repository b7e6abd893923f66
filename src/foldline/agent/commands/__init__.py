"""Slash commands, one file per subject; the same for `chat`, `run` and `rpc`."""
