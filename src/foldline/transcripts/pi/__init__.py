"""pi's session files."""
