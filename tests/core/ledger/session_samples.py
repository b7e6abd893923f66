"""Small sessions for the tests of what a checkpoint says."""

from __future__ import annotations

import itertools

from hypothesis import strategies as st

from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult


def said(*messages: Message) -> list[Said]:
    return [Said(f"e{i}", f"e{i - 1}" if i else None, message, f"e{i}") for i, message in enumerate(messages)]


def user(text: str) -> Message:
    return Message("user", (Text(text),))


def assistant(text: str, *calls: ToolCall) -> Message:
    return Message("assistant", (*((Text(text),) if text else ()), *calls))


def answer(call_id: str, text: str) -> Message:
    return Message("tool", (ToolResult(call_id, (Text(text),)),))


def rough_count(text: str) -> int:
    return (len(text) + 3) // 4


SESSION = said(
    user(
        "The importer drops rows with an empty currency. Fix it in src/ledger/importer.py.\n"
        "Never change the public signature of `parse_rows`. Always run the tests with --strict-markers."
    ),
    assistant(
        "I'll read the importer to see where empty currencies are dropped.",
        ToolCall("c1", "Read", {"file_path": "/home/ann/shop/src/ledger/importer.py"}),
    ),
    answer(
        "c1",
        "     1\timport csv\n     2\t\n     3\t# Split a statement into rows and drop the broken ones.\n"
        "     4\tdef parse_rows(text):\n     5\t    return [row for row in csv.reader(text) if keep_row(row)]\n"
        "     6\t\n     7\t# Decide whether a row has a currency.\n     8\tdef keep_row(row):\n     9\t    return row[2]",
    ),
    assistant(
        "`keep_row` treats an empty currency as broken. Who else calls it?",
        ToolCall("c2", "Grep", {"pattern": "keep_row", "path": "/home/ann/shop/src"}),
    ),
    answer(
        "c2",
        "/home/ann/shop/src/ledger/importer.py:5:    return [row for row in csv.reader(text) if keep_row(row)]\n"
        "/home/ann/shop/src/ledger/nightly_job.py:41:    rows = filter(keep_row, rows)  # the nightly import",
    ),
    assistant(
        "The nightly job relies on it too, so I'll add a default currency instead of dropping the row.",
        ToolCall(
            "c3",
            "Edit",
            {
                "file_path": "/home/ann/shop/src/ledger/importer.py",
                "old_string": "    return row[2]",
                "new_string": "    return row[2] or DEFAULT_CURRENCY",
            },
        ),
    ),
    answer("c3", "The file has been updated."),
    assistant(
        "Now the tests.",
        ToolCall("c4", "Bash", {"command": "pytest tests/test_importer.py --strict-markers"}),
    ),
    answer("c4", "Exit code 1\nE   NameError: name 'DEFAULT_CURRENCY' is not defined\n1 failed, 7 passed"),
    assistant(
        "DEFAULT_CURRENCY has to be imported from settings.",
        ToolCall(
            "c5",
            "Bash",
            {"command": "curl http://127.0.0.1:8433/health --retry 3", "description": "Check the shop API"},
        ),
    ),
    answer("c5", "ok"),
    assistant("Next I'll import DEFAULT_CURRENCY from src/ledger/settings.py and run the tests again."),
)

_words = st.text(alphabet="abc _/.-`\n#()$é漢", max_size=60)
_lines = st.lists(
    st.one_of(
        _words,
        st.sampled_from(
            (
                "def read_things(x):",
                "src/app/main_loop.py:12: call read_things()",
                "Never delete backup_rows.",
                "## Goal",
                "- item",
                "<read-files>",
                "see https://example.org/a?b=1",
                "a" * 5_000,
                "(none)",
                "TICKET-12 at 8431",
            )
        ),
    ),
    max_size=8,
).map("\n".join)


@st.composite
def sessions(draw: st.DrawFn) -> list[Said]:
    """Draw an odd session: requests, sentences, calls with and without results, results without calls."""
    messages: list[Message] = []
    for number in itertools.count():
        kind = draw(st.sampled_from(("user", "assistant", "call", "answer", "stop")))
        text = draw(_lines)
        if kind == "stop" or number > 12:
            return said(*messages)
        if kind == "user":
            messages.append(user(text))
        elif kind == "assistant":
            messages.append(assistant(text))
        elif kind == "answer":
            messages.append(answer(f"c{draw(st.integers(0, 5))}", text))
        else:
            arguments = draw(
                st.sampled_from(
                    (
                        {"file_path": "src/app/main_loop.py"},
                        {"command": "grep -rn read_things src | head"},
                        {"pattern": "read_things", "path": 3},
                        {"path": "a/b_c.go", "new_text": text},
                        {"argv": ["git", "log", "--oneline"], "id": 84315},
                        text,
                    )
                )
            )
            messages.append(assistant("", ToolCall(f"c{draw(st.integers(0, 5))}", "tool", arguments)))
    raise AssertionError
