"""A stored session: the facade in `session.py`, and its parts, one idea a file."""
