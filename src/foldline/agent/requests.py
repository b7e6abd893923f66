"""What a program may ask of the agent over `rpc`: one JSON object a line, told apart by `type`.

`foldline rpc --schema` prints them as JSON Schema. `id` is handed back with the response.
"""

from __future__ import annotations

import msgspec

from foldline.agent.permissions import Answer


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """What every request has: an `id` of the client's, if it wants one."""

    id: str | int | None = None


class PromptRequest(Request, frozen=True, tag="prompt"):
    """Say something to the agent; while it works, the prompt is queued."""

    message: str


class AbortRequest(Request, frozen=True, tag="abort"):
    """Stop the turn or the compaction under way; what is whole stays."""


class CompactRequest(Request, frozen=True, tag="compact"):
    """Fold now; `target` is a budget in tokens."""

    instructions: str | None = None
    target: int | None = None


class PreviewRequest(Request, frozen=True, tag="preview"):
    """Show what `compact` would do; `commit` does that very thing."""

    instructions: str | None = None


class CommitRequest(Request, frozen=True, tag="commit"):
    """Commit the newest preview, with its summary as the user edited it."""

    summary: str | None = None


class UndoRequest(Request, frozen=True, tag="undo"):
    """Take the newest compaction back."""


class RedoRequest(Request, frozen=True, tag="redo"):
    """Take the newest undo back."""


class PromptsRequest(Request, frozen=True, tag="prompts"):
    """List the user's messages, for `branch`."""


class BranchRequest(Request, frozen=True, tag="branch"):
    """Go on from before a message of the user's; its words come back."""

    entry: str


class StatsRequest(Request, frozen=True, tag="stats"):
    """Return messages, compactions, tokens by category, price and where the session stands."""


class CommandRequest(Request, frozen=True, tag="command"):
    """Run a line of `chat`, such as `/pin last`."""

    line: str


class PermissionAnswer(Request, frozen=True, tag="permission"):
    """Answer a `permission` event by its `request`."""

    request: str
    answer: Answer


AnyRequest = (
    PromptRequest
    | AbortRequest
    | CompactRequest
    | PreviewRequest
    | CommitRequest
    | UndoRequest
    | RedoRequest
    | PromptsRequest
    | BranchRequest
    | StatsRequest
    | CommandRequest
    | PermissionAnswer
)
