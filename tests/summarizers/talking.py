"""A session of work for tests of summaries by models, and a good summary of it."""

import json

import msgspec

import foldline
from foldline.core.checkpoint.rules import read
from foldline.core.measure.window import Window
from foldline.providers import Patience
from foldline.summarizers import ModelSummarizer
from foldline.testing import Scripted

POLICY = msgspec.structs.replace(
    foldline.preset("foldline"), enable_pruning=False
)  # so that there is a summary
WINDOW = Window(context=100_000, output=8_000)
QUICK = Patience(attempts=3, first=0.001, longest=0.002, jitter=0.001)
RULE = "Never touch anything under migrations/ without asking me first."
OTHER_RULE = "Always keep the public API backwards compatible."

FIRST = (
    "Please mend the login page, so that sessions survive a restart of the server. "
    f"{RULE} {OTHER_RULE} Tell me what you find in the session store before you change it."
)

GOOD = """\
## Goal
Mend the login page, so that sessions survive a restart of the server.

## Constraints & Preferences
- Never touch anything under migrations/ without asking me first.
- Always keep the public API backwards compatible.

## Progress
### Done
- [x] Read src/login0.py and src/login1.py
### In Progress
- [ ] The session store
### Blocked
- (none)

## Key Decisions
- (none)

## Next Steps
1. Mend the session store

## Critical Context
- The store is in src/login1.py

## Turn in Progress
- src/login3.py is read"""


def tool_messages(number, path, text):
    call = {"name": "read", "arguments": json.dumps({"path": path})}
    return [
        {
            "role": "assistant",
            "content": f"I look at {path}.",
            "tool_calls": [{"id": f"call_{number}", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": f"call_{number}", "content": text},
    ]


def reading_turns(rounds, *, start=0, result="def login(): return session\n" * 160):
    """Turns in which a file is read: request, call, result, report."""
    found = []
    for number in range(start, start + rounds):
        found.append({"role": "user", "content": f"Look at part {number}."})
        found += tool_messages(number, f"src/login{number}.py", f"# part {number}\n{result}")
        found.append({"role": "assistant", "content": f"Part {number} is read; the store is not in it."})
    return found


def coding_session(rounds=6, *, said=(), first=FIRST, **more):
    """A conversation in which the user asks for something, with two rules, and files are read."""
    opening = [{"role": "user", "content": text} for text in (first, *said)]
    return [*opening, *reading_turns(rounds, **more), {"role": "user", "content": "And now?"}]


def make_model(answers, *, dialect="openai-chat", window=WINDOW, **more):
    """A scripted model and a summariser that asks it."""
    options = {name: more.pop(name) for name in ("overflow", "name", "alternation") if name in more}
    served = Scripted(
        answers, window=window, dialect=dialect, model=options.pop("name", "scripted"), **options
    )
    return served, ModelSummarizer(served, window=window, patience=QUICK, **more)


def rules_in(done):
    """The rules in the block that is believed later; the next fold is handed the same."""
    found = [fact.text for fact in read(done.summary)]
    assert found == [fact.text for fact in done.ledger.constraints] == list(done.receipt.constraints.texts)
    return found
