"""Values that later versions may add to a log: such entries are read, and their sessions still fold."""

import msgspec
from tests.support.logs import add, add_entry, ask_for, view_of
from tests.support.talk import assistant, log_of, repeat, user

from foldline.core.compact.compaction_input import CompactionInput
from foldline.core.compact.plan import plan
from foldline.core.log.codec import decode, encode
from foldline.core.log.entries import Compacted, Entry
from foldline.core.measure.tokens import OFFLINE
from foldline.executor import execute, run_sync
from foldline.summarizers.offline import OfflineSummarizer


def folded(log):
    found = run_sync(
        execute(plan(CompactionInput(view_of(log), ask_for(context=1_500), OFFLINE)), OfflineSummarizer())
    )
    assert isinstance(found, Compacted), found
    return found


def talked(log):
    for number in range(8):
        add(log, assistant(repeat(f"I looked at part {number}", 40)))
        add(log, user(repeat(f"Go on with part {number}", 40)))
    return log


def stored(entry):
    return msgspec.convert(decode(encode(entry)), Entry)


def test_a_stop_reason_that_nobody_knows_is_read_and_kept():
    log = log_of(user("Look."))
    entry = add(log, msgspec.structs.replace(assistant("Looked."), stop="paused_for_lunch"))
    assert stored(entry) == entry


def test_kinds_of_facts_that_nobody_knows_are_read_and_fold_on():
    log = talked(log_of(user("Mend the login page.")))
    boundary = folded(log)
    ledger = {
        "files": [{"path": "src/login.py", "status": "renamed"}],
        "open": [{"text": "Ask the reviewers", "kind": "dream"}],
        "excerpts": [{"text": "The login page is slow.", "kind": "sung"}],
    }
    changed = msgspec.structs.replace(boundary, ledger=ledger)
    add_entry(log, stored(changed))
    assert view_of(log).boundary.ledger == ledger
    assert isinstance(folded(talked(log)), Compacted)
