"""The checkpoint as a page: each section's writer and reader."""
