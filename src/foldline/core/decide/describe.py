"""Describe a policy in words, for tables and explanations."""

from __future__ import annotations

from foldline.core.decide.policy import Policy
from foldline.core.measure.window import Amount

MOMENTS = {
    "turn_start": "turn start",
    "after_reply": "after a reply",
    "after_tools": "after tools",
    "before_smaller_window": "model switch",
    "append": "every append",
}
CUTS = {
    "turn": "whole turns",
    "user": "from a user message",
    "user_or_plain_assistant": "from a user message or a reply without calls",
    "not_result": "never from a result",
    "any": "anywhere",
}


def describe(policy: Policy) -> dict[str, str]:
    """Return what a policy does, one phrase for each of its parts.

    The keys: enabled, triggers, checked, gains, keeps, prunes, summary, summary_model; and `models` if the
    policy has values for single models.
    """
    least = amount(policy.min_gain)
    parts = {
        "enabled": _enabled(policy),
        "triggers": _triggers(policy),
        "checked": ", ".join(MOMENTS.get(moment, moment) for moment in policy.check_at) or "never",
        "gains": "anything" if least == "0" else f"≥ {least} if automatic",
        "keeps": _keeps(policy),
        "prunes": _prunes(policy),
        "summary": _summary(policy),
        "summary_model": policy.summary_model or "the session's own",
    }
    if policy.per_model:
        models = (f"{name}*: other {', '.join(fields)}" for name, fields in policy.per_model.items())
        parts["models"] = "; ".join(models)
    return parts


def amount(value: Amount) -> str:
    """Return an amount in words: `20,000`, `35%`, `min(20,000, 20% of usable)`."""
    base = f" of {value.of}" if value.of != "context" else ""
    amounts = [
        *([f"{value.tokens:,}"] if value.tokens is not None else []),
        *([f"{value.fraction * 100:g}%{base}"] if value.fraction is not None else []),
        *(["max output"] if value.output else []),
        *([f"input limit − {value.less:,}"] if value.less is not None else []),
    ]
    return f"min({', '.join(amounts)})" if len(amounts) > 1 else "".join(amounts) or "0"


def _enabled(policy: Policy) -> str:
    on_overflow = policy.enabled if policy.on_overflow is None else policy.on_overflow
    automatic = "yes" if policy.enabled else "no: no compaction starts automatically"
    overflow = "an overflow is compacted" if on_overflow else "an overflow is left to the caller"
    never = [] if policy.enable_compaction else ["it never compacts"]
    return "; ".join([automatic, *([overflow] if on_overflow != policy.enabled else []), *never])


def _triggers(policy: Policy) -> str:
    if policy.hard is None and policy.soft is None:
        return "never automatically"
    all_usable = Amount(fraction=1.0, of="usable")
    reserve = amount(policy.reserve)
    hard = f"context − {reserve}" if policy.hard == all_usable else amount(policy.hard or Amount())
    soft = [f"soft {amount(policy.soft)}"] if policy.soft and policy.background else []
    by_limit: dict[int, list[str]] = {}
    for name, tokens in policy.limits.items():
        by_limit.setdefault(tokens, []).append(name)
    by_model = [f"{tokens:,} for {', '.join(names)}" for tokens, names in by_limit.items()]
    idle = [f"idle {policy.idle} s"] if policy.idle is not None and policy.background else []
    reserved = [f"reserve {reserve}"] if "usable" in hard else []
    return "; ".join([*soft, f"hard {hard}" if soft else hard, *idle, *reserved, *by_model])


def _keeps(policy: Policy) -> str:
    keep = policy.keep
    amounts = [
        *([amount(keep.amount)] if keep.amount else []),
        *([f"{keep.messages} messages"] if keep.messages is not None else []),
        *([f"{keep.message_fraction * 100:g}% of messages"] if keep.message_fraction is not None else []),
    ]
    quoted = [
        *([f"user messages up to {policy.quote_user_tokens:,}"] if policy.quote_user_tokens else []),
        *([f"{policy.reread} files read again"] if policy.reread else []),
    ]
    if not amounts:
        return "; ".join(quoted) or "nothing"
    kept = f"min({', '.join(amounts)})" if len(amounts) > 1 else amounts[0]
    kept += " or more" if policy.walk_back else ""
    crossing = [] if policy.cross_boundary else ["never across a boundary"]
    return "; ".join([kept, CUTS[policy.cut_rule], *crossing, *quoted])


def _prunes(policy: Policy) -> str:
    older = f"older ones at {policy.image_size:,} pixels" if policy.image_size else "no older ones"
    images = [
        *([f"the newest {policy.images:,} images, {older}"] if policy.images is not None else []),
        *([f"images up to {policy.image_bytes:,} bytes"] if policy.image_bytes is not None else []),
    ]
    if not policy.enable_pruning:
        return "; ".join(["no", *images])
    exempt = [f"never {', '.join(policy.prune_exempt)}"] if policy.prune_exempt else []
    results = f"{amount(policy.prune_minimum)} outside {amount(policy.prune_protect)}"
    return "; ".join([results, *exempt, *images])


def _summary(policy: Policy) -> str:
    details = [
        name
        for name, present in (
            ("prefix", policy.prefix),
            ("suffix", policy.suffix),
            ("acknowledgement", policy.ack),
            ("numbered", policy.versions),
            ("extra instructions", policy.summary_instructions),
            (f"{policy.certify} decisions repeated", policy.certify),
            ("then the model is asked to continue", policy.continuation),
        )
        if present
    ]
    limit = amount(policy.summary_tokens)
    if policy.summary_share is not None:
        amounts = limit.removeprefix("min(").removesuffix(")")
        limit = f"min({amounts}, {policy.summary_share * 100:g}% of what is folded)"
    return ", ".join([f"{policy.summary_prompt} ≤ {limit} as {policy.summary_role}", *details])
