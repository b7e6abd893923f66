"""Replays of recorded sessions under policies: the lab reads files, compacts, measures and draws."""
