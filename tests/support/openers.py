"""What the other tools demand of a session file when they open it, as strict checkers.

pi: its session manager takes a header line with `type` "session" and an id, builds a tree from `id` and
`parentId`, walks from the last line to the root, and makes the context of the newest compaction on the way:
its summary, the entries from `firstKeptEntryId` up to it, and everything behind it.

Claude Code: every line of the conversation has a uuid of its own and names the one before it; the chain is
walked from the newest line; it ends at a compaction's boundary, whose preserved segment is put behind the
summary; calls without a result are dropped, and neighbours of one role go out as one message.

Codex: a header line, then items; at a `compacted` line its `replacement_history` takes the place of all before.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from foldline.dialects import get

UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
PI_STOPS = {"stop", "length", "toolUse", "error", "aborted"}
CLAUDE_STOPS = {"end_turn", "tool_use", "max_tokens", "stop_sequence", None}


def rows(raw: bytes) -> list[dict[str, Any]]:
    assert raw.endswith(b"\n")
    found = [json.loads(line) for line in raw.splitlines()]
    assert all(isinstance(row, dict) for row in found)
    return found


def times_rise(stamps: list[str]) -> None:
    moments = [datetime.fromisoformat(stamp) for stamp in stamps]
    assert all(stamp.endswith("Z") for stamp in stamps)
    assert moments == sorted(moments)


# ---- pi


def open_in_pi(raw: bytes, *, rising: bool = True) -> list[dict[str, Any]]:
    """Check a session by pi's rules and return the messages of its context, a summary first where it has one."""
    header, *entries = rows(raw)
    assert header["type"] == "session"
    assert header["version"] == 3
    assert isinstance(header["cwd"], str)
    assert header["cwd"]
    assert UUID.match(header["id"])
    path = _pi_path(entries)
    assert len(path) == len(entries), "what is written is one path"
    if rising:
        times_rise([header["timestamp"], *(entry["timestamp"] for entry in entries)])
    for entry in entries:
        _pi_entry(entry, {known["id"] for known in path})
    context = _pi_context(path)
    _pi_pairs(context)
    return context


def _pi_path(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    known: dict[str, dict[str, Any]] = {}
    for number, entry in enumerate(entries):
        assert isinstance(entry["id"], str)
        assert entry["id"] not in known
        assert (entry["parentId"] is None) == (number == 0)
        assert entry["parentId"] is None or entry["parentId"] in known
        known[entry["id"]] = entry
    path, at = [], entries[-1] if entries else None
    while at is not None:
        path.append(at)
        at = known.get(at["parentId"])
    return path[::-1]


def _pi_entry(entry: dict[str, Any], ids: set[str]) -> None:
    kind = entry["type"]
    if kind == "message":
        _pi_message(entry["message"])
    elif kind == "compaction":
        assert entry["summary"].strip()
        assert entry["firstKeptEntryId"] in ids
        assert isinstance(entry["tokensBefore"], int)
    elif kind == "custom_message":
        assert isinstance(entry["customType"], str)
        assert isinstance(entry["display"], bool)
        _pi_content(entry["content"])
    elif kind == "model_change":
        assert entry["provider"]
        assert entry["modelId"]
    else:
        assert kind == "session_info"
        assert entry["name"]


def _pi_message(message: dict[str, Any]) -> None:
    assert isinstance(message["timestamp"], int)
    role = message["role"]
    if role == "user":
        _pi_content(message["content"])
    elif role == "toolResult":
        assert isinstance(message["toolCallId"], str)
        assert message["toolName"]
        assert isinstance(message["isError"], bool)
        assert isinstance(message["content"], list)
        _pi_content(message["content"])
    else:
        assert role == "assistant"
        assert all(message[key] for key in ("api", "provider", "model"))
        assert message["stopReason"] in PI_STOPS
        usage = message["usage"]
        four = [usage[key] for key in ("input", "output", "cacheRead", "cacheWrite")]
        assert usage["totalTokens"] == sum(four)
        assert {"input", "output", "cacheRead", "cacheWrite", "total"} == set(usage["cost"])
        for block in message["content"]:
            _pi_block(block)


def _pi_block(block: dict[str, Any]) -> None:
    if block["type"] == "toolCall":
        assert block["id"]
        assert block["name"]
        assert isinstance(block["arguments"], dict)
    elif block["type"] == "thinking":
        assert isinstance(block["thinking"], str)
    else:
        _pi_content([block])


def _pi_content(content: Any) -> None:
    if isinstance(content, str):
        assert content
        return
    for block in content:
        if block["type"] == "image":
            assert block["data"]
            assert block["mimeType"].startswith("image/")
        else:
            assert block["type"] == "text"
            assert block["text"].strip()


def _pi_context(path: list[dict[str, Any]]) -> list[dict[str, Any]]:
    place = max((n for n, entry in enumerate(path) if entry["type"] == "compaction"), default=None)
    if place is None:
        return [message for entry in path for message in _pi_said(entry)]
    boundary = path[place]
    ids = [entry["id"] for entry in path[:place]]
    first = ids.index(boundary["firstKeptEntryId"]) if boundary["firstKeptEntryId"] in ids else place
    told = [*path[first:place], *path[place + 1 :]]
    summary = {"role": "compactionSummary", "summary": boundary["summary"]}
    return [summary, *(message for entry in told for message in _pi_said(entry))]


def _pi_said(entry: dict[str, Any]) -> list[dict[str, Any]]:
    if entry["type"] == "message":
        return [entry["message"]]
    return [{"role": "custom", "content": entry["content"]}] if entry["type"] == "custom_message" else []


def _pi_pairs(context: list[dict[str, Any]]) -> None:
    """Each result answers a call of the reply before it. pi itself answers calls that have no result."""
    waiting: set[str] = set()
    for message in context:
        if message["role"] == "assistant":
            waiting = {block["id"] for block in message["content"] if block["type"] == "toolCall"}
        elif message["role"] == "toolResult":
            assert message["toolCallId"] in waiting
            waiting.remove(message["toolCallId"])


# ---- Claude Code


def open_in_claude_code(raw: bytes, *, rising: bool = True) -> list[dict[str, Any]]:
    """Check a session by Claude Code's rules and return what it would send, as Anthropic messages."""
    found = rows(raw)
    lines = [row for row in found if row["type"] in ("user", "assistant", "system")]
    assert all(row["type"] == "custom-title" for row in found if row not in lines)
    assert len({row["sessionId"] for row in found}) == 1
    assert UUID.match(found[0]["sessionId"])
    for row in lines:
        _claude_line(row)
    if rising:
        times_rise([row["timestamp"] for row in lines])
    if not lines:
        return []
    known = _claude_tree(lines)
    for row in lines:
        if "sourceToolAssistantUUID" in row:
            assert known[row["sourceToolAssistantUUID"]]["type"] == "assistant"
    chain = _claude_chain(lines, known)
    sent = _claude_sent([row for row in chain if row["type"] != "system"])
    problems = get("anthropic").validate(sent)
    assert problems == [], problems
    return sent


def _claude_line(row: dict[str, Any]) -> None:
    assert UUID.match(row["uuid"])
    assert all(isinstance(row[key], str) for key in ("cwd", "version", "timestamp", "userType"))
    assert row["isSidechain"] is False
    if row["type"] == "system":
        assert row["subtype"] == "compact_boundary"
        assert isinstance(row["compactMetadata"]["preTokens"], int)
        assert row["compactMetadata"]["trigger"] in ("auto", "manual")
        return
    message = row["message"]
    assert message["role"] == row["type"]
    assert message["content"]
    if row["type"] == "assistant":
        assert message["id"]
        assert message["model"]
        assert message["type"] == "message"
        assert message["stop_reason"] in CLAUDE_STOPS
        assert isinstance(message["content"], list)
        counts = dict(message["usage"])
        by_life = counts.pop("cache_creation", None)
        assert by_life is None or sum(by_life.values()) == counts["cache_creation_input_tokens"]
        assert all(isinstance(count, int) for count in counts.values())


def _claude_tree(lines: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Every line names one before it; only the first and boundaries start a chain; a reply has an id of its own."""
    known: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(lines):
        assert row["uuid"] not in known
        starts = number == 0 or row.get("subtype") == "compact_boundary"
        assert (row["parentUuid"] is None) == starts
        assert row["parentUuid"] is None or row["parentUuid"] in known
        if row.get("isCompactSummary"):
            assert known[row["parentUuid"]]["subtype"] == "compact_boundary"
        known[row["uuid"]] = row
    replies = [row["message"]["id"] for row in lines if row["type"] == "assistant"]
    assert len(set(replies)) == len(replies)
    return known


def _claude_chain(lines: list[dict[str, Any]], known: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Walk from the newest line to the boundary that its chain begins with, and put in what it preserved."""
    chain: list[dict[str, Any]] = []
    at = lines[-1]["uuid"]
    while at is not None:
        chain.append(known[at])
        at = known[at]["parentUuid"]
    chain.reverse()
    segment = chain[0].get("compactMetadata", {}).get("preservedSegment")
    if segment is None:
        return chain
    kept: list[dict[str, Any]] = []
    at = segment["tailUuid"]
    while at != segment["headUuid"]:
        kept.append(known[at])
        at = known[at]["parentUuid"] or known[at].get("logicalParentUuid")
    kept.append(known[at])
    anchor = next(n for n, row in enumerate(chain) if row["uuid"] == segment["anchorUuid"])
    assert chain[anchor]["isCompactSummary"] is True
    told = [row for row in reversed(kept) if row["type"] != "system" and not row.get("isCompactSummary")]
    return [*chain[: anchor + 1], *told, *chain[anchor + 1 :]]


def _claude_sent(chain: list[dict[str, Any]]) -> list[dict[str, Any]]:
    blocks = [_blocks(row["message"]["content"]) for row in chain]
    answered = {block["tool_use_id"] for group in blocks for block in group if block["type"] == "tool_result"}
    called = {block["id"] for group in blocks for block in group if block["type"] == "tool_use"}
    assert answered <= called, "a result without its call"
    sent: list[dict[str, Any]] = []
    for row, group in zip(chain, blocks, strict=True):
        said = [block for block in group if block["type"] != "tool_use" or block["id"] in answered]
        if not said:
            continue
        if sent and sent[-1]["role"] == row["type"]:
            sent[-1]["content"].extend(said)
        else:
            sent.append({"role": row["type"], "content": said})
    for message in sent:
        if message["role"] == "user":  # results first, as the API wants them
            message["content"].sort(key=lambda block: block["type"] != "tool_result")
    return sent


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


# ---- Codex


CODEX_KINDS = {"session_meta", "turn_context", "response_item", "event_msg", "compacted"}
CODEX_CONTEXT = {"cwd", "approval_policy", "sandbox_policy", "model", "summary"}
CODEX_EVENTS = {"user_message", "agent_message", "token_count", "context_compacted", "thread_name_updated"}


def open_in_codex(raw: bytes, *, rising: bool = True) -> list[dict[str, Any]]:
    """Check a rollout by Codex's rules and return the items that it would go on with."""
    header, *lines = rows(raw)
    assert header["type"] == "session_meta"
    assert UUID.match(header["payload"]["id"])
    assert all(header["payload"][key] for key in ("timestamp", "cwd", "originator", "cli_version"))
    assert "model_provider" not in header["payload"], "Codex refuses a provider that is not configured"
    if rising:
        times_rise([row["timestamp"] for row in (header, *lines)])
    history: list[dict[str, Any]] = []
    model = ""
    for row in lines:
        assert set(row) == {"timestamp", "type", "payload"}
        assert row["type"] in CODEX_KINDS - {"session_meta"}
        payload = row["payload"]
        if row["type"] == "response_item":
            assert payload.get("role") != "assistant" or model, "a reply before any turn's context"
            assert payload["type"] != "message" or isinstance(payload["content"], list)
            history.append(payload)
        elif row["type"] == "compacted":
            assert isinstance(payload["message"], str)
            history = list(payload["replacement_history"])
        elif row["type"] == "turn_context":
            assert CODEX_CONTEXT <= payload.keys()
            model = payload["model"]
        else:
            assert payload["type"] in CODEX_EVENTS
    _codex_pairs(history)
    return history


def _codex_pairs(history: list[dict[str, Any]]) -> None:
    """Each output answers a call before it, of its own kind; Codex itself answers calls without an output."""
    waiting: dict[str, str] = {}
    for item in history:
        if item["type"].endswith("_call") and "call_id" in item:
            waiting[item["call_id"]] = f"{item['type']}_output"
        elif item["type"].endswith("_call_output"):
            wanted = waiting.pop(item["call_id"])
            assert wanted == item["type"], history


# ---- OpenCode


def open_in_opencode(raw: bytes) -> list[dict[str, Any]]:
    """Check an export by OpenCode's rules and return the messages that it would go on with.

    Ids of a kind rise in the order of the messages, parts name their message and session, replies name the
    user's message that they answer. A context begins at the newest compaction whose summary is finished.
    """
    document = json.loads(raw)
    session = document["info"]["id"]
    assert session.startswith("ses_")
    assert all(document["info"][key] for key in ("slug", "projectID", "directory", "title", "version"))
    messages = document["messages"]
    ids = [message["info"]["id"] for message in messages]
    parts = [part["id"] for message in messages for part in message["parts"]]
    assert ids == sorted(set(ids))
    times = [message["info"]["time"]["created"] for message in messages]
    assert times == sorted(times), "OpenCode orders messages by their times"
    assert len(set(parts)) == len(parts)
    for message in messages:
        _opencode_message(message, session, ids)
    start = max((n for n, message in enumerate(messages) if _asks(message)), default=0)
    return messages[start:]


def _asks(message: dict[str, Any]) -> bool:
    return any(part["type"] == "compaction" for part in message["parts"])


def _opencode_message(message: dict[str, Any], session: str, ids: list[str]) -> None:
    info = message["info"]
    assert info["sessionID"] == session
    assert info["id"].startswith("msg_")
    assert isinstance(info["time"]["created"], int)
    if info["role"] == "user":
        assert set(info["model"]) == {"providerID", "modelID"}
        assert info["agent"]
    else:
        assert info["role"] == "assistant"
        assert info["parentID"] in [*ids[: ids.index(info["id"])], session]
        assert all(info[key] for key in ("modelID", "providerID", "mode", "agent", "path", "finish"))
        assert {"input", "output", "reasoning", "cache"} <= info["tokens"].keys()
        failed = info.get("error", {}).get("name") not in (None, "MessageAbortedError")
        assert not failed or not _says(message), "OpenCode drops a reply that failed, with what it said"
    own = [part["id"] for part in message["parts"]]
    assert own == sorted(own), "parts stand in the order of their ids"
    for part in message["parts"]:
        assert part["id"].startswith("prt_")
        assert (part["sessionID"], part["messageID"]) == (session, info["id"])
        _opencode_part(part)


def _says(message: dict[str, Any]) -> bool:
    return any(part["type"] not in ("step-start", "step-finish") for part in message["parts"])


def _opencode_part(part: dict[str, Any]) -> None:
    if part["type"] == "tool":
        state = part["state"]
        assert part["callID"]
        assert part["tool"]
        assert isinstance(state["input"], dict)
        needs = {
            "completed": {"output", "title", "metadata", "time"},
            "error": {"error", "time"},
            "pending": {"raw"},
        }
        assert state["status"] == "pending" or "raw" not in state, (
            "OpenCode drops the raw input of a finished call"
        )
        assert needs[state["status"]] <= state.keys()
    elif part["type"] in ("text", "reasoning"):
        assert isinstance(part["text"], str)
    elif part["type"] == "file":
        assert part["mime"]
        assert part["url"]
    else:
        assert part["type"] in ("step-start", "step-finish", "compaction")


OPEN = {
    "pi": open_in_pi,
    "claude-code": open_in_claude_code,
    "codex": open_in_codex,
    "opencode": open_in_opencode,
}
"""The checker of each tool."""
