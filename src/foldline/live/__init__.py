"""The parts of a live session, one idea a file; `session.py` is the shell that calls them."""
