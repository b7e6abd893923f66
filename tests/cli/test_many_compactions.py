"""`inspect` on a rollout of Codex that was compacted thousands of times: 2,580 did not end in seven minutes."""

from tests.cli.calling import write_lines
from tests.support.work import count_calls


def row(kind, payload):
    return {"timestamp": "2026-01-02T03:04:05.000Z", "type": kind, "payload": payload}


def said(role, text):
    kind = "input_text" if role == "user" else "output_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def rollout(folder, compactions):
    """Each compaction replaces the history by the newest requests and its summary, as Codex does."""
    asked = [said("user", f"Request {n}: look at module {n}.") for n in range(compactions)]
    lines = [row("session_meta", {"id": "0199-a", "cwd": "/w", "originator": "codex", "cli_version": "0.1"})]
    for n, request in enumerate(asked):
        summary = f"Summary {n} of the work so far."
        history = [*asked[max(0, n - 9) : n + 1], said("user", summary)]
        lines += [
            row("response_item", request),
            row("response_item", said("assistant", f"Answer {n} is done.")),
            row("compacted", {"message": summary, "replacement_history": history}),
        ]
    return write_lines(folder / f"rollout-{compactions}.jsonl", lines)


def test_thousands_of_compactions_are_inspected_in_step_with_their_number(foldline, tmp_path):
    foldline("inspect", rollout(tmp_path, 1))  # what is made at the first use
    calls = {}
    for number in (160, 645):
        path = rollout(tmp_path, number)
        with count_calls() as work:
            found = foldline("inspect", path, "--json").json
        calls[number] = work.calls
        assert len(found["boundaries"]) == number
    assert calls[645] < 6 * calls[160]
