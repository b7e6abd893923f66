"""OpenCode's exports."""
