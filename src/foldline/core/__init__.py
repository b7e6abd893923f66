"""The pure core: values in, values out.

No IO, clock, randomness, logging or await. ARCHITECTURE.md lists its rooms and what each may import.
"""
