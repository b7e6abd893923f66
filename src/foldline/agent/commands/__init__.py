"""What a user types after a slash; one file a subject, the same for the screen, for `run` and for `rpc`."""
