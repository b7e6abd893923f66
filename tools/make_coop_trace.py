"""Write examples/coop-trace.jsonl: the nine turns of coop's published trace, rebuilt from its table of sizes.

    python tools/make_coop_trace.py

Published are the context of each turn's first call, the thirteen calls of turn 3 from 58k to 77k, and 4.25 M input
tokens in all. The words are made up; every call sends as many tokens, by the offline counter, as `SIZES` says.
coop looks at turn start whether the last input exceeds context - 30,000. Turns 1 and 2 are sent whole, so the
threshold is above 20,264; from turn 3 on every turn is back at about 22,000, so it is not above what a turn adds to that:
22,500, a window of 52,500. The requests of turn 2 fit into it up to the last one, 51,800.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import count, cycle
from pathlib import Path
from typing import Any

from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.dialects import get
from foldline.folding import overhead_of

TARGET = Path(__file__).parents[1] / "examples" / "coop-trace.jsonl"
TOTAL = 4_250_000
WINDOW = 52_500
MODEL = "claude-opus-4-1"
BASELINES = (20_264, 22_565, 58_884, 77_702, 77_875, 78_703, 81_427, 89_910, 90_212)


def steps(first: int, last: int, calls: int) -> list[int]:
    """Return that many sizes, evenly from the first to the last."""
    return [first + (last - first) * step // max(calls - 1, 1) for step in range(calls)]


# The size of every call of a turn. Published are the first of each turn and both ends of turn 3; the others were
# chosen so that they add up to 4.25 M.
SIZES = [
    [20_264],
    [22_565, 35_000, 51_800],
    steps(58_884, 77_060, 13),
    steps(77_702, 77_780, 2),
    steps(77_875, 78_640, 15),
    steps(78_703, 81_250, 14),
    [*steps(81_427, 82_700, 4), 88_900],
    steps(89_910, 90_060, 2),
    [90_212, 100_000],
]

SYSTEM = (
    "You are coop, a personal agent that works in the user's repository on their machine. Read before you write, "
    "run the tests after every change, and keep answers short. Paths are relative to the root of the workspace."
)
TOOLS = [
    {
        "name": name,
        "description": what,
        "parameters": {"type": "object", "properties": {key: {"type": "string"} for key in keys}},
    }
    for name, what, keys in (
        ("read_file", "Read a file.", ("path",)),
        ("edit_file", "Replace a text that stands in a file once.", ("path", "old", "new")),
        ("bash", "Run a shell command in the workspace.", ("command",)),
    )
]
NOTE = (
    "Rebuilt from the table of baselines that coop published (turns 1 to 9, 4.25 M input tokens); the words are made "
    "up. coop expected about 1.1 M in all: 22k for every call, without what a turn adds to itself (turn 3 grows by 18k "
    "in its thirteen calls). A replay counts that growth, call by call; and it keeps less than 20k where 20k and a "
    "summary do not both fit into context - 30k."
)

GATEWAY = "crates/coop-gateway/src/gateway.rs"
STORE = "crates/coop-gateway/src/session_store.rs"
PROVIDER = "crates/coop-gateway/src/provider_factory.rs"
COMPACTION = "crates/coop-gateway/src/compaction.rs"
TESTS = "crates/coop-gateway/tests/compaction.rs"
TRACE = "traces/bug-7f3a91c.jsonl"

_TEST_NAMES = (
    "small_session_no_compaction large_session_triggers_compaction build_context_without_compaction "
    "build_context_with_compaction build_context_preserves_recent cut_point_never_splits_tool_result "
    "cut_point_respects_keep_recent serialize_for_summary_format clear_session_clears_compaction "
    "compact_calls_complete_fast compact_keeps_file_lists compact_iterative_includes_previous compaction_failure_falls_back"
)
TEST_NAMES = _TEST_NAMES.split()
_ACCESSORS = (
    "clear_session get_compaction set_compaction last_input_tokens session_store assistant_response_streaming "
    "assistant_response_non_streaming context_limit append_message event_tx tool_defs"
)
ACCESSORS = _ACCESSORS.split()

ASKED = [
    (
        "Look at this trace of one of our sessions, COOP-418: nine questions, and it cost more than sixty dollars. Where do "
        "the tokens go? Never change the types in coop-core. The log is in "
        f"{TRACE}, written by {PROVIDER}; read it with coop replay 7f3a91c. Here it is:"
    ),
    "So every call sends the whole history. Read the gateway and the session store, and tell me where to cut in.",
    (
        "Good. Write it: fold old messages into a summary before a turn starts when last_input_tokens is above the context "
        "limit less DEFAULT_RESERVE_TOKENS, which is 30000; keep 20000 recent tokens. It needs these tests in "
        f"{TESTS}: {', '.join(TEST_NAMES)}. And this is how pi words its checkpoint:"
    ),
    "Does it compile without warnings?",
    "Then wire compaction_cache through clear_session and the accessors, one small edit at a time.",
    "Run the tests of the crate one by one, I want to see each name.",
    "Now trace bug-7f3a91c again and look at what the provider says.",
    "Is CompactionStore written before the turn starts?",
    "Write down in CHANGELOG.md what changed for COOP-418, with the figures of every turn.",
]
SAID = [
    (
        "Every call sends the whole history: run_turn_with_trust in gateway.rs passes all messages of the session. By turn 3 "
        "that is 60K tokens of old file reads, thirteen times."
    ),
    (
        "The place is run_turn_with_trust, after the user message is appended. SessionStore has what is needed; the "
        "summary goes beside the session, as session_key with the suffix _compaction.json."
    ),
    (
        "compact, should_compact, find_cut_point and build_provider_context are in compaction.rs, with thirteen tests. A "
        "ToolResult is never the first kept message."
    ),
    "It compiles, no warnings.",
    "compaction_cache goes through clear_session, get_compaction and set_compaction.",
    "All thirteen tests pass, and the 214 of the crate.",
    "The context stays near 22K from turn 3 on: input_tokens is bounded, COOP-418 is what it was.",
    "Yes: set_compaction saves first.",
    "CHANGELOG.md has an entry for COOP-418.",
]

# What coop says before a call, in a message of its own: (turn, call), both from 0.
BETWEEN = {
    (2, 0): "I look at what is there before I write.",
    (2, 3): "Now the module itself, in two edits.",
    (2, 6): "CompactionStore is not declared yet.",
    (2, 9): "It is wired in. Does it compile?",
}
FIRST_ANSWER = 2_230  # tokens: the first answer and the second question add 2,301

Call = tuple[str, dict[str, Any], str]


def calls() -> list[list[Call]]:
    """Return what the calls of each turn ask for, and how their results begin."""
    writing: list[Call] = [
        (
            "bash",
            {"command": "grep -n run_turn_with_trust -A4 " + GATEWAY},
            "412: async fn run_turn_with_trust",
        ),
        ("read_file", {"path": PROVIDER}, "pub(crate) fn provider_for(model: &str) -> Arc<dyn Provider>"),
        ("bash", {"command": "cargo doc -p coop-core --no-deps"}, "Documenting coop-core v0.4.2"),
        ("edit_file", {"path": COMPACTION, "old": "", "new": "pub(crate) struct CompactionState"}, "written"),
        ("edit_file", {"path": COMPACTION, "old": "// cut", "new": "fn find_cut_point"}, "written"),
        (
            "bash",
            {"command": "cargo check -p coop-gateway"},
            "error[E0433]: failed to resolve: CompactionStore",
        ),
        ("read_file", {"path": "crates/coop-gateway/src/lib.rs"}, "mod gateway; mod session_store;"),
        (
            "edit_file",
            {"path": "crates/coop-gateway/src/lib.rs", "old": "mod gateway;", "new": "mod compaction;"},
            "1",
        ),
        (
            "edit_file",
            {"path": GATEWAY, "old": "self.messages(", "new": "build_provider_context("},
            "1 replacement",
        ),
        ("bash", {"command": "cargo check -p coop-gateway"}, "warning: unused variable: tokens_before"),
        ("edit_file", {"path": TESTS, "old": "", "new": "fn cut_point_never_splits_tool_result"}, "written"),
        ("bash", {"command": "cargo test -p coop-gateway --test compaction"}, "test result: ok. 13 passed"),
    ]
    wiring: list[Call] = [
        ("bash", {"command": f"rg -n {name} {GATEWAY}"}, f"{n}1: {name}") for n, name in enumerate(ACCESSORS)
    ]
    return [
        [],
        [
            (
                "read_file",
                {"path": GATEWAY},
                "pub(crate) struct Gateway {\n" + "\n".join(f"    fn {name}(&self)" for name in ACCESSORS),
            ),
            ("read_file", {"path": STORE}, "pub(crate) struct SessionStore { dir: PathBuf }"),
        ],
        writing,
        [("bash", {"command": "cargo check"}, "Finished")],
        [
            *wiring,
            ("bash", {"command": "cargo check -q"}, "ok"),
            ("bash", {"command": "git diff --stat"}, "3 files"),
            ("bash", {"command": "git add -A"}, "ok"),
        ],
        [("bash", {"command": f"cargo test {name}"}, f"test {name} ... ok") for name in TEST_NAMES],
        [
            ("bash", {"command": "COOP_TRACE_FILE=" + TRACE + " coop replay 7f3a91c"}, "9 turns"),
            ("bash", {"command": "wc -l " + TRACE}, "1180"),
            ("bash", {"command": "grep first_kept " + TRACE}, "first_kept_message_id"),
            ("read_file", {"path": TRACE}, "span provider_request"),
        ],
        [("bash", {"command": "grep -n set_compaction " + GATEWAY}, "431: self.set_compaction(key)")],
        [("edit_file", {"path": "CHANGELOG.md", "old": "## Next", "new": "## Next\n\nCOOP-418:"}, "ok")],
    ]


# ---- text of an exact size

LOG_LINES = (
    "{at} INFO request of turn {k} sends {m} messages",
    "{at} INFO response complete, input tokens up",
    "{at} INFO tool call done, result appended to the session",
)
CODE_LINES = (
    "    let entry = state.load(slot {n})?;",
    "    if entry.is_empty() {{ return Ok(None); }}",
    "    // the next {k} bytes are the frame",
    '    trace!("step {n}"); frame.push(entry);',
)
PLAIN_LINES = (
    "keep the goal and what was decided, and say what comes next",
    "do not continue the talk, write only what another model needs",
    "name each file as it is, and quote what failed word for word",
)
SMALL = (" a", " of it", ".", " the", " and so on", ";", "\n-", " x y", " 7", " to be")


def lines(kind: tuple[str, ...]) -> Iterator[str]:
    """Yield lines without end."""
    for n, text in zip(count(1), cycle(kind), strict=False):
        at = f"{9 + n // 3600:02}:{n // 60 % 60:02}:{n % 60:02}"
        yield text.format(n=n % 1000, at=at, k=n % 9 + 1, m=n % 97)


def text_of(start: str, tokens: int, kind: tuple[str, ...], measure: Callable[[str], int]) -> str:
    """Return a text that begins so and measures exactly so many tokens."""
    if measure(start) > tokens:
        raise ValueError(f"{start[:60]!r} has {measure(start)} tokens, {tokens} are wanted")
    endless, text = lines(kind), start
    while True:
        longer = f"{text}\n{next(endless)}"
        if measure(longer) > tokens - 4:
            break
        text = longer
    return _filled_up(text, tokens, measure)


def _filled_up(text: str, tokens: int, measure: Callable[[str], int], depth: int = 40) -> str:
    """Add small words until the number is right."""
    if measure(text) == tokens or not depth:
        return text
    for word in SMALL:
        if measure(text + word) <= tokens:
            done = _filled_up(text + word, tokens, measure, depth - 1)
            if measure(done) == tokens:
                return done
    return text


# ---- the messages


class Writer:
    """Writes messages one after the other and knows how many tokens they make."""

    def __init__(self) -> None:
        outside = overhead_of(SYSTEM, TOOLS, OFFLINE)
        self.messages: list[dict[str, Any]] = []
        self.size = outside.system + outside.tools
        self._calls = 0

    def add(self, message: dict[str, Any]) -> None:
        """Add a message as it is."""
        self.messages.append(message)
        self.size += message_tokens(get("openai-chat").decode(message))

    def add_up_to(
        self, size: int, start: str, kind: tuple[str, ...], made: Callable[[str], dict[str, Any]]
    ) -> None:
        """Add the message made of a text that begins so, as long as it takes for the whole to have `size` tokens."""

        def measure(text: str) -> int:
            return message_tokens(get("openai-chat").decode(made(text)))

        self.add(made(text_of(start, size - self.size, kind, measure)))
        if self.size != size:
            raise ValueError(f"{self.size} tokens where {size} are wanted: {start[:60]!r}")

    def call(self, call: Call, size: int) -> None:
        """Add a call and its result, up to `size`: what an edit writes, or what another call returns, is the bulk."""
        name, arguments, result = call
        self._calls += 1
        made = f"c{self._calls}"

        def asked(new: str) -> dict[str, Any]:
            given = {**arguments, "new": new} if "new" in arguments else arguments
            function = {"name": name, "arguments": json.dumps(given, separators=(",", ":"))}
            return {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": made, "type": "function", "function": function}],
            }

        def answered(text: str) -> dict[str, Any]:
            return {"role": "tool", "tool_call_id": made, "content": text}

        if "new" not in arguments:
            self.add(asked(""))
            self.add_up_to(size, result, CODE_LINES, answered)
            return
        least = message_tokens(get("openai-chat").decode(answered(result)))
        self.add_up_to(size - least, arguments["new"], CODE_LINES, asked)
        self.add(answered(result))


def conversation() -> list[dict[str, Any]]:
    """Return the messages of the nine turns."""
    writer = Writer()
    for turn, (sizes, made) in enumerate(zip(SIZES, calls(), strict=True)):
        kind = LOG_LINES if turn == 0 else PLAIN_LINES
        writer.add_up_to(
            sizes[0], f"{ASKED[turn]}\n\n```", kind, lambda text: {"role": "user", "content": f"{text}\n```"}
        )
        for number, (call, size) in enumerate(zip(made, sizes[1:], strict=True)):
            if (turn, number) in BETWEEN:
                writer.add({"role": "assistant", "content": BETWEEN[turn, number]})
            writer.call(call, size)
        size = writer.size + FIRST_ANSWER if turn == 0 else 0
        if size:
            writer.add_up_to(
                size, SAID[turn], PLAIN_LINES, lambda text: {"role": "assistant", "content": text}
            )
        else:
            writer.add({"role": "assistant", "content": SAID[turn]})
    return writer.messages


def main() -> int:
    """Write the file."""
    total = sum(sum(sizes) for sizes in SIZES)
    if abs(total - TOTAL) > TOTAL // 1000 or tuple(sizes[0] for sizes in SIZES) != BASELINES:
        raise ValueError(f"the calls send {total:,} tokens, {TOTAL:,} are published")
    header = {
        "title": "coop: the trace of nine turns",
        "model": MODEL,
        "window": WINDOW,
        "note": NOTE,
        "dialect": "openai-chat",
        "system": SYSTEM,
        "tools": TOOLS,
    }
    rows = [header, *conversation()]
    TARGET.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows) - 1} messages, {total:,} input tokens, {TARGET.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
