"""Chats in Markdown."""
