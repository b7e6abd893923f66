"""The screen of `foldline chat`, one file a widget; needs the extra `chat`."""
