"""Text into sentences, words, names and commands, and whose words they are."""
