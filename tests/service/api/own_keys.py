"""A hook of schemathesis: no two requests share an Idempotency-Key.

With one key the second answer is the first one again, also where what was made has been deleted since.
"""

from __future__ import annotations

import itertools

import schemathesis

_counted = itertools.count()


@schemathesis.hook
def before_call(_context, case, _kwargs):
    if "Idempotency-Key" in (case.headers or {}):
        case.headers["Idempotency-Key"] = f"key-{next(_counted)}"
