"""`foldline bench`: systems that fit a conversation into a budget, measured side by side by one command."""
