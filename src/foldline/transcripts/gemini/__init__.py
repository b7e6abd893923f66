"""Gemini CLI's session files."""
