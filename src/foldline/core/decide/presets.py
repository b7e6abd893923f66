"""The presets: one policy for each system that Foldline learnt from.

`docs/presets.md` says how each original behaves and where Foldline's invariants make its preset differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from foldline.core.decide.policy import Keep, Policy
from foldline.core.measure.window import Amount, Window, usable_tokens
from foldline.errors import PolicyError, did_you_mean

T = TypeVar("T")

UNCAPPED = 1_000_000  # characters of a result in a summary request, for originals that shorten nothing
ALL_OF_USABLE = Amount(fraction=1.0, of="usable")
BEFORE_REQUESTS = ("turn_start", "after_tools")

FOLDLINE = Policy(
    name="foldline",
    summary="Drafts in the background, prunes first, keeps whole turns, checks the summary against a ledger.",
    reserve=Amount(tokens=16_384, fraction=0.15),
    idle=270,
    # triggers, `keep` and prune together make a session cheapest for what it retains: tools/compare.py
    # each request pays for the whole view, so that the best size grows no further in a large window
    soft=Amount(tokens=92_000, fraction=0.78, of="usable"),
    hard=Amount(tokens=100_000, fraction=0.85, of="usable"),
    keep=Keep(amount=Amount(tokens=20_000, fraction=0.1, of="usable")),
    cut_rule="turn",
    min_gain=Amount(tokens=10_000, fraction=0.1, of="usable"),
    prune_minimum=Amount(tokens=15_000, fraction=0.2, of="usable"),
    prune_protect=Amount(tokens=15_000, fraction=0.15, of="usable"),
    prune_notes=Amount(tokens=12_000, fraction=0.1, of="usable"),
    summary_tokens=Amount(tokens=13_000, fraction=0.2, of="usable"),
    summary_share=0.1,
    background=True,
)

COOP = Policy(
    name="coop",
    summary="Compacts at turn start, 30,000 tokens below the input limit; summary and acknowledgement.",
    enable_pruning=False,
    check_at=("turn_start",),
    reserve=Amount(tokens=30_000),
    hard=ALL_OF_USABLE,
    estimator="chars/4",
    trigger_on="input",
    keep=Keep(amount=Amount(tokens=20_000)),
    cut_rule="user_or_plain_assistant",
    walk_back=True,
    summary_share=0.05,  # the original keeps 20,000 of 58,000 tokens, and 2,000 for the summary of the others
    ack="Understood. I have the checkpoint and will go on from there.",
    result_cap=UNCAPPED,
    thinking_in_transcript=False,
)

KLAUDE = Policy(
    name="klaude",
    summary=(
        "Compacts before any step, 16,384 tokens or a quarter below the input limit; "
        "lists files beside the summary."
    ),
    enable_pruning=False,
    check_at=BEFORE_REQUESTS,
    reserve=Amount(tokens=16_384, fraction=0.25),
    hard=ALL_OF_USABLE,
    estimator="chars/4",
    keep=Keep(amount=Amount(tokens=20_000, fraction=0.35)),
    cut_rule="not_result",
    walk_back=True,
    prefix="What was said before this point was compacted into this summary:",
    result_cap=4_000,
)

GENCODE = Policy(
    name="gencode",
    summary=(
        "Prunes old results, then writes a continuation prompt; keeps ten messages; the summary is a system "
        "message."
    ),
    check_at=("append",),
    reserve=Amount(tokens=32_000, output=True),
    hard=ALL_OF_USABLE,
    estimator="chars/4",
    keep=Keep(messages=10),
    cut_rule="any",
    summary_prompt="continuation",
    summary_role="system",
    prefix="[Earlier conversation, summarized]",
    summary_tokens=Amount(tokens=1_500),
    result_cap=500,
)

MOLDABLE = Policy(
    name="moldable",
    summary=(
        "Compacts at turn start above 75% by its own estimate; keeps at most ten messages; summaries are "
        "numbered."
    ),
    enable_pruning=False,
    check_at=("turn_start",),
    hard=Amount(fraction=0.75),
    estimator="chars/3.5+10",
    trigger_on="estimate",
    min_messages=10,
    keep=Keep(messages=10, message_fraction=0.3),
    cut_rule="any",
    summary_prompt="handoff",
    prefix="[Conversation Context - Compacted]\n\nThe following is a summary of the earlier conversation:",
    suffix="---\nThe conversation continues below:",
    summary_tokens=Amount(tokens=2_000),
    result_cap=200,
    versions=True,
)

PI = Policy(
    name="pi",
    summary="Compacts after a reply, 16,384 tokens below the input limit; cuts before a user message.",
    enable_pruning=False,
    check_at=("after_reply",),
    reserve=Amount(tokens=16_384),
    hard=ALL_OF_USABLE,
    estimator="chars/4",
    keep=Keep(amount=Amount(tokens=20_000)),
    cut_rule="user",
    cross_boundary=False,
    summary_prompt="handoff",
    prefix=(
        "Another language model worked on this task and produced a summary. "
        "Use this to continue the work without duplicating effort:"
    ),
    summary_tokens=Amount(fraction=0.8, of="reserve"),  # 13,107 tokens
)

CLAUDE_CODE = Policy(
    name="claude-code",
    summary="Compacts at 95% of the window into one detailed summary; keeps nothing else.",
    enable_pruning=False,
    check_at=BEFORE_REQUESTS,
    reserve=Amount(fraction=0.05),
    hard=Amount(fraction=0.95),
    cut_rule="any",
    summary_prompt="detailed",
    result_cap=UNCAPPED,
)

CODEX = Policy(
    name="codex",
    summary="Compacts at a limit per model; keeps the newest user messages, then the summary.",
    enable_pruning=False,
    check_at=BEFORE_REQUESTS,
    reserve=Amount(fraction=0.05),
    hard=ALL_OF_USABLE,
    # the original's limits: 180k for windows of 200k, 244k for windows of 272k
    limits={
        **dict.fromkeys(("o3", "o4-mini", "codex-mini"), 180_000),
        **dict.fromkeys(("gpt-5-codex", "gpt-5.1-codex", "gpt-5.2-codex", "gpt-5.3-codex"), 244_000),
    },
    estimator="chars/4",
    quote_user_tokens=20_000,
    cut_rule="any",
    summary_prompt="handoff",
    summary_position="after",
    prefix=(
        "Another model began this task and wrote this summary of its work. Its tools are still in the state "
        "it left them in. Build on what it did and do not do it again:"
    ),
    result_cap=UNCAPPED,
    warn_each=True,
)

OPENCODE = Policy(
    name="opencode",
    summary="Prunes old results, then keeps only a summary and asks the model to continue.",
    check_at=BEFORE_REQUESTS,
    reserve=Amount(output=True),
    hard=ALL_OF_USABLE,
    estimator="chars/4",
    cut_rule="any",
    summary_prompt="summary",
    continuation="Continue if you have next steps.",
    result_cap=UNCAPPED,
)

AMP = Policy(
    name="amp",
    summary="Never compacts automatically; by hand, carries over what the next task needs.",
    enable_pruning=False,
    on_overflow=False,
    check_at=(),
    cut_rule="any",
    summary_prompt="handoff",
)


def _gencode(tuning: str, minimum: int, protect: int) -> Policy:
    return msgspec.structs.replace(
        GENCODE,
        name=f"gencode:{tuning}",
        summary=f"{GENCODE.summary} Tuned for {tuning.replace('-', ' ')}.",
        prune_minimum=Amount(tokens=minimum),
        prune_protect=Amount(tokens=protect),
    )


PRESETS: Mapping[str, Policy] = {
    policy.name: policy
    for policy in (
        FOLDLINE,
        COOP,
        KLAUDE,
        GENCODE,
        _gencode("low-cost", 10_000, 20_000),
        _gencode("balanced", 20_000, 40_000),
        _gencode("high-quality", 30_000, 60_000),
        MOLDABLE,
        PI,
        CLAUDE_CODE,
        CODEX,
        OPENCODE,
        AMP,
    )
}


def preset(name: str) -> Policy:
    """Return the preset of that name; raises PolicyError with the known names."""
    policy = PRESETS.get(name)
    if policy is None:
        hint = did_you_mean(name, PRESETS)
        raise PolicyError(f"no policy {name!r}{hint}; there are {', '.join(PRESETS)}")
    return policy


def resolve(policy: Policy, model: str | None, window: Window) -> Policy:
    """Return the policy for a model: `per_model` and `limits` applied and emptied.

    The longest prefix that matches the model's name wins; the name is tried whole, without its provider
    (`openai:gpt-5`) and without its vendor (`openai/gpt-5`). A limit never exceeds usable.
    """
    changes = _longest(policy.per_model, model)
    replaced = _replaced(policy, changes) if changes else policy
    limit = _longest(replaced.limits, model)
    if limit is None:
        hard = replaced.hard
    else:
        hard = Amount(tokens=min(limit, usable_tokens(window, replaced.reserve)))
    return msgspec.structs.replace(replaced, hard=hard, limits={}, per_model={})


def _longest(by_prefix: Mapping[str, T], model: str | None) -> T | None:
    if not model:
        return None
    bare = model.split(":", 1)[-1]
    names = {model, bare, bare.rsplit("/", 1)[-1]}
    fitting = [prefix for prefix in by_prefix if any(name.startswith(prefix) for name in names)]
    return by_prefix[max(fitting, key=len)] if fitting else None


def _replaced(policy: Policy, changes: Mapping[str, object]) -> Policy:
    """Return the policy with fields replaced by builtins; raises PolicyError for invalid values."""
    try:
        return msgspec.convert({**msgspec.to_builtins(policy), **changes}, Policy)
    except msgspec.ValidationError as error:
        raise PolicyError(f"policy {policy.name!r}, per_model: {error}") from error
