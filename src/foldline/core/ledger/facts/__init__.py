"""The facts, one kind a file; how they are collected, merged and bounded."""
