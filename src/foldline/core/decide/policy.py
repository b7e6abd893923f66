"""A policy: everything in which compaction systems differ, as plain data."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

from foldline.core.log.codec import encode, prepared
from foldline.core.log.messages import Media, Message, Part, Text, Thinking, ToolCall, ToolResult
from foldline.core.measure.tokens import Counter, message_tokens
from foldline.core.measure.window import Amount, Window, usable_tokens

MEDIA_CHARACTERS = 4_800  # pi and klaude count 1,200 tokens for any image


Moment = Literal["turn_start", "after_reply", "after_tools", "before_smaller_window", "append", "overflow"]
Estimator = Literal["foldline", "chars/4", "chars/3.5+10"]
TriggerOn = Literal["context", "input", "estimate"]
CutRule = Literal["turn", "user", "user_or_plain_assistant", "not_result", "any"]
Prompt = Literal["checkpoint", "handoff", "continuation", "detailed", "summary"]


class Keep(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many of the newest messages are kept word for word: the smallest given value, none by default.

    `amount` in tokens; `messages` a count, `message_fraction` a share of the view's messages.
    """

    amount: Amount | None = None
    messages: int | None = None
    message_fraction: float | None = None


class Policy(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How a session is kept inside its window. Every preset is one of these; see `docs/presets.md`."""

    name: str
    summary: str = ""  # one line for people

    # what is enabled
    enabled: bool = True
    enable_pruning: bool = True
    enable_compaction: bool = True
    on_overflow: bool | None = None  # None: as `enabled`
    check_at: tuple[Moment, ...] = ("turn_start", "after_reply", "after_tools", "before_smaller_window")

    # triggers: each fires one token above its amount; usable = input limit - reserve
    reserve: Amount = Amount(tokens=0)
    soft: Amount | None = None  # draft in the background
    hard: Amount | None = None  # compact; None: never automatically
    limits: dict[str, int] = {}  # model name prefix -> hard trigger in tokens
    idle: int | None = None  # seconds after the newest reply until a ready draft is committed; None: never
    provider_compaction: Amount | None = None  # above this the provider's server compacts; None: never
    estimator: Estimator = "foldline"
    # what a trigger compares: usage plus estimates of later messages, the last reply's input, or estimates
    trigger_on: TriggerOn = "context"
    min_messages: int = 0  # no automatic compaction with fewer messages in the view

    # what is kept
    keep: Keep = Keep()
    quote_user_tokens: int = 0  # newest older user messages quoted word for word, in tokens
    cut_rule: CutRule = "not_result"
    walk_back: bool = False  # keep the message that reaches `keep`, and more back to an allowed cut
    cross_boundary: bool = True  # False: the next boundary keeps nothing from before the newest one
    min_gain: Amount = Amount()

    reread: int = 0  # files to read again at a fold, if the session has a reader

    # prune
    prune_minimum: Amount = Amount(tokens=20_000)
    prune_protect: Amount = Amount(tokens=40_000)
    prune_exempt: tuple[str, ...] = ()  # tool names
    prune_notes: Amount = Amount()  # tokens in all for notes on what the blanked results held

    # images, changed only at boundaries; None: no limit
    images: int | None = None  # the newest that stay unchanged
    image_size: int | None = None  # pixels of the longer side of older ones; None: replace them by notes
    image_bytes: int | None = None  # of all images together; the oldest beyond become notes

    # the summary
    summary_prompt: Prompt = "checkpoint"
    summary_instructions: str = ""  # added to every summary request
    summary_role: Literal["user", "system"] = "user"
    summary_position: Literal["before", "after"] = "before"  # of the quoted user messages
    ack: str | None = None
    prefix: str = ""
    suffix: str = ""
    continuation: str = ""  # appended as a user message after an automatic compaction
    summary_tokens: Amount = Amount(tokens=13_107)
    summary_share: float | None = None  # of what a live summary covers: its most tokens, at least 2,000
    result_cap: int = 2_000  # characters of a tool result in a summary request
    thinking_in_transcript: bool = True
    versions: bool = False  # the summary states its number
    summary_model: str | None = None
    background: bool = False
    certify: int = 0  # newest decisions that the model repeats, to see whether a fold changes them
    warn_each: bool = False  # warn at every compaction, not only the third, sixth, twelfth ...
    per_model: dict[str, dict[str, object]] = {}  # model name prefix -> fields to replace


prepared(Policy)


def usable_of(policy: Policy, window: Window) -> int:
    """Return the tokens that a view may take: the input limit less the policy's reserve."""
    return usable_tokens(window, policy.reserve)


def summary_cap(policy: Policy, window: Window, usable: int) -> int:
    """Return the most tokens of a summary; `usable` is what the view may take."""
    return policy.summary_tokens.resolve(window, usable, policy.reserve.resolve(window))


# ---- estimators


def message_estimate(message: Message, estimator: Estimator, counter: Counter) -> int:
    """Return an estimator's tokens of one message; only `foldline` uses `counter`.

    `chars/4` (coop, klaude, GenCode, pi): all characters including arguments and results, divided by four,
    rounded up. `chars/3.5+10` (Moldable): characters of text and reasoning, divided by 3.5, rounded up, plus
    ten for each message.
    """
    if estimator == "chars/4":
        return math.ceil(sum(_characters(part) for part in message.parts) / 4)
    if estimator == "chars/3.5+10":
        characters = sum(len(part.text) for part in message.parts if isinstance(part, Text | Thinking))
        return math.ceil(characters / 3.5) + 10
    return message_tokens(message, counter)


def _characters(part: Part) -> int:
    if isinstance(part, Text | Thinking):
        return len(part.text)
    if isinstance(part, ToolCall):
        arguments = part.arguments if isinstance(part.arguments, str) else encode(part.arguments).decode()
        return len(part.name) + len(arguments)
    if isinstance(part, ToolResult):
        return sum(_characters(inner) for inner in part.content)
    if isinstance(part, Media):
        return MEDIA_CHARACTERS
    return len(encode(part.data))
