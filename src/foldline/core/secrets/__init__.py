"""Secrets: found by shape, place or name in every text that something new is made from, and taken out."""
