"""Where a list of messages may be cut, and what of it is blanked, elided or repaired."""
