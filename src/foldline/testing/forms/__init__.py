"""A reply or a refusal in the form of each API."""
