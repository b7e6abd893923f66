"""The pure core: values in, values out.

No IO, clock, randomness, logging or await. Its rooms, in the order in which data passes:
log, measure, decide, fold, ledger, checkpoint, view, plan, lab. A room imports only rooms before it.
"""
