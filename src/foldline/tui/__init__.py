"""The screen of `foldline chat`; needs the extra `chat`."""
