"""A session file as Claude Code writes them: a day's work on a small service, with rules, one of them lifted."""

from __future__ import annotations

import json

SESSION = "6f1f0a52-9d0c-4c1e-8a57-2f6f0c1b7a11"
RULE = "Never push to main."
LIFT = "You may push to main now."
TITLE = "Late fees for bookings"
_COMMON = {
    "isSidechain": False,
    "userType": "external",
    "cwd": "/home/ada/bookings",
    "sessionId": SESSION,
    "version": "2.1.37",
    "gitBranch": "late-fees",
}
_MODULES = ("fees", "bookings", "calendar", "rooms", "invoices", "mail", "reports", "api", "tokens", "jobs")


class _File:
    def __init__(self) -> None:
        self.lines = [
            {"type": "summary", "summary": TITLE, "leafUuid": "00000000-0000-4000-8000-000000000000"}
        ]
        self._last = None

    def _put(self, kind, message, **more):
        number = len(self.lines)
        uuid = f"00000000-0000-4000-8000-{number:012d}"
        at = f"2026-02-11T{9 + number // 60:02d}:{number % 60:02d}:00.000Z"
        line = {
            "parentUuid": self._last,
            **_COMMON,
            "type": kind,
            "message": message,
            "uuid": uuid,
            "timestamp": at,
        }
        self.lines.append({**line, **more})
        self._last = uuid

    def say(self, text):
        self._put("user", {"role": "user", "content": text})

    def reply(self, *blocks):
        number = len(self.lines)
        usage = {"input_tokens": 40, "cache_read_input_tokens": 350 * number, "output_tokens": 120}
        message = {
            "id": f"msg_{number:04d}",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5-20250929",
            "content": list(blocks),
            "stop_reason": "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn",
            "usage": usage,
        }
        self._put("assistant", message, requestId=f"req_{number:04d}")

    def call(self, words, name, given, result):
        key = f"toolu_{len(self.lines):04d}"
        self.reply(
            {"type": "text", "text": words}, {"type": "tool_use", "id": key, "name": name, "input": given}
        )
        block = {"tool_use_id": key, "type": "tool_result", "content": result}
        self._put("user", {"role": "user", "content": [block]}, toolUseResult={"stdout": result})


def _source(module):
    lines = [f'"""What the service does about {module}."""', "", "from __future__ import annotations", ""]
    for number in range(90):
        lines += [
            f"def {module}_{number}(booking, today):",
            f"    due = booking.due_{number} or today",
            f"    return (today - due).days * RATE_{number}",
        ]
    return "\n".join(f"{number:5d}→{line}" for number, line in enumerate(lines, 1))


def claude_code_file():
    """Return the file as text."""
    file = _File()
    file.say(f"Bookings that are returned late must cost a fee. {RULE} The fee is 4 euros a day, 40 at most.")
    for module in _MODULES:
        path = f"/home/ada/bookings/src/{module}.py"
        file.call(f"Let me read {module}.py first.", "Read", {"file_path": path}, _source(module))
        file.reply({"type": "text", "text": f"{module}.py knows due dates; the fee belongs behind them."})
        file.say(f"Go on with {module}, and tell me what you changed.")
        edit = {"file_path": path, "old_string": "return 0", "new_string": "return min(4 * days, 40)"}
        file.call("I add the fee.", "Edit", edit, f"The file {path} has been updated.")
        run = {"command": f"pytest -q tests/test_{module}.py"}
        file.call("Now its tests.", "Bash", run, f"{len(module)} passed in 0.41s")
        file.reply({"type": "text", "text": f"The fee is in {module}.py, and its tests pass."})
    file.say(f"Good. {LIFT} Then add a column late_fee_cents to bookings.")
    file.reply({"type": "text", "text": "Pushed. The column is there, in cents, 0 by default."})
    file.say("Thanks. What is left before we can release?")
    return "".join(json.dumps(line) + "\n" for line in file.lines)
