"""A policy in words, for tables and for a person who asks why."""

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

    The keys: enabled, triggers, checked, gains, keeps, prunes, summary, summary_model; and `models`, where
    some models have values of their own.
    """
    return {
        "enabled": _enabled(policy),
        "triggers": _triggers(policy),
        "checked": ", ".join(MOMENTS.get(moment, moment) for moment in policy.check_at) or "never",
        "gains": _gains(policy),
        "keeps": _keeps(policy),
        "prunes": _prunes(policy),
        "summary": _summary(policy),
        "summary_model": policy.summary_model or "the session's own",
        **({"models": _models(policy)} if policy.per_model else {}),
    }


def amount(given: Amount) -> str:
    """Return an amount as people write it: `20,000`, `35%`, `min(20,000, 20% of usable)`."""
    of = f" of {given.of}" if given.of != "context" else ""
    ways = [
        *([f"{given.tokens:,}"] if given.tokens is not None else []),
        *([f"{given.fraction * 100:g}%{of}"] if given.fraction is not None else []),
        *(["max output"] if given.output else []),
        *([f"input limit − {given.less:,}"] if given.less is not None else []),
    ]
    return f"min({', '.join(ways)})" if len(ways) > 1 else "".join(ways) or "0"


def _enabled(policy: Policy) -> str:
    on_overflow = policy.enabled if policy.on_overflow is None else policy.on_overflow
    by_itself = "yes" if policy.enabled else "no: nothing starts by itself"
    overflow = "an overflow is mended" if on_overflow else "an overflow is left to the caller"
    without = [] if policy.enable_compaction else ["it never compacts"]
    return "; ".join([by_itself, *([overflow] if on_overflow != policy.enabled else []), *without])


def _triggers(policy: Policy) -> str:
    if policy.hard is None and policy.soft is None:
        return "never by itself"
    whole = Amount(fraction=1.0, of="usable")
    reserve = amount(policy.reserve)
    hard = f"context − {reserve}" if policy.hard == whole else amount(policy.hard or Amount())
    soft = [f"soft {amount(policy.soft)}"] if policy.soft and policy.background else []
    by_limit: dict[int, list[str]] = {}
    for name, tokens in policy.limits.items():
        by_limit.setdefault(tokens, []).append(name)
    by_model = [f"{tokens:,} for {', '.join(names)}" for tokens, names in by_limit.items()]
    idle = [f"idle {policy.idle} s"] if policy.idle is not None and policy.background else []
    left = [f"reserve {reserve}"] if "usable" in hard else []
    return "; ".join([*soft, f"hard {hard}" if soft else hard, *idle, *left, *by_model])


def _keeps(policy: Policy) -> str:
    keep = policy.keep
    ways = [
        *([amount(keep.amount)] if keep.amount else []),
        *([f"{keep.messages} messages"] if keep.messages is not None else []),
        *([f"{keep.message_fraction * 100:g}% of messages"] if keep.message_fraction is not None else []),
    ]
    quoted = [
        *([f"user messages up to {policy.quote_user_tokens:,}"] if policy.quote_user_tokens else []),
        *([f"{policy.reread} files read again"] if policy.reread else []),
    ]
    if not ways:
        return "; ".join(quoted) or "nothing"
    kept = f"min({', '.join(ways)})" if len(ways) > 1 else ways[0]
    kept += " or more" if policy.walk_back else ""
    crossing = [] if policy.cross_boundary else ["never across a boundary"]
    return "; ".join([kept, CUTS[policy.cut_rule], *crossing, *quoted])


def _gains(policy: Policy) -> str:
    least = amount(policy.min_gain)
    return "anything" if least == "0" else f"≥ {least} by itself"


def _models(policy: Policy) -> str:
    return "; ".join(f"{name}*: its own {', '.join(fields)}" for name, fields in policy.per_model.items())


def _prunes(policy: Policy) -> str:
    older = f"older ones at {policy.image_size:,} pixels" if policy.image_size else "no older ones"
    images = [
        *([f"the newest {policy.images:,} images, {older}"] if policy.images is not None else []),
        *([f"images up to {policy.image_bytes:,} bytes"] if policy.image_bytes is not None else []),
    ]
    if not policy.enable_pruning:
        return "; ".join(["no", *images])
    exempt = [f"never {', '.join(policy.prune_exempt)}"] if policy.prune_exempt else []
    old = f"{amount(policy.prune_minimum)} outside {amount(policy.prune_protect)}"
    return "; ".join([old, *exempt, *images])


def _summary(policy: Policy) -> str:
    around = [
        word
        for word, there in (
            ("prefix", policy.prefix),
            ("suffix", policy.suffix),
            ("acknowledgement", policy.ack),
            ("numbered", policy.versions),
            ("instructions of its own", policy.summary_instructions),
            (f"{policy.certify} decisions made again", policy.certify),
            ("then the model is asked to go on", policy.continuation),
        )
        if there
    ]
    most = amount(policy.summary_tokens)
    if policy.summary_share is not None:
        amounts = most.removeprefix("min(").removesuffix(")")
        most = f"min({amounts}, {policy.summary_share * 100:g}% of what is folded)"
    return ", ".join([f"{policy.summary_prompt} ≤ {most} as {policy.summary_role}", *around])
