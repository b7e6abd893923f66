"""Facts that code takes from entries, and the checkpoint that is written from them."""
