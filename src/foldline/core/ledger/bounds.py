"""What of a ledger is carried on to the next fold: it is bounded, however long the session is."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from foldline.core.ledger import work_log
from foldline.core.ledger.facts import (
    commands,
    decisions,
    errors,
    files,
    open_work,
    reports,
    requests,
    values,
)
from foldline.core.ledger.facts.kinds import Excerpt, Ledger
from foldline.core.ledger.worth import excerpts


def bounded(ledger: Ledger, picked: Sequence[Excerpt] = ()) -> Ledger:
    """Bound a ledger that is carried on: the newest facts, and the excerpts that were written (`picked`)."""
    return msgspec.structs.replace(
        ledger,
        requests=requests.bound(ledger.requests),
        files=files.bound(ledger.files),
        commands=commands.bound(ledger.commands),
        errors=errors.bound(ledger.errors),
        decisions=decisions.bound(ledger.decisions),
        values=values.bound(ledger.values),
        open=open_work.bound(ledger.open),
        reports=reports.bound(ledger.reports),
        work=work_log.bound(ledger.work),
        excerpts=excerpts.bound(ledger.excerpts, picked),
    )
