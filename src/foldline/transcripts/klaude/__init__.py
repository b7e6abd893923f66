"""klaude-code's session files."""
