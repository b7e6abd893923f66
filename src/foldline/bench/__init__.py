"""`foldline bench`: compare systems that fit a conversation into a budget."""
