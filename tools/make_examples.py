"""Write docs/examples/*.md: what `foldline compact` makes of the example sessions.

.venv/bin/python tools/make_examples.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from foldline.catalogue import ModelInfo
from foldline.core.decide.presets import preset
from foldline.core.measure.tokens import OFFLINE
from foldline.folding import Wish, fold_now
from foldline.loading import from_records
from foldline.transcripts import read

ROOT = Path(__file__).parents[1]
EXAMPLES = {
    "session.jsonl": (9_000, "a coding agent on a web service, Anthropic messages: 173 messages"),
    "support-chat.json": (2_500, "a support desk with tools, OpenAI chat messages, no code at all"),
    "research.jsonl": (1_200, "a research agent, as pi writes its sessions, with a compaction of its own"),
}


def page(name: str, target: int, what: str) -> str:
    """Return the page of one example; the date of the fold is left out, so that the page stays the same."""
    loaded = from_records(read(ROOT / "examples" / name), OFFLINE)
    wish = Wish(preset("foldline"), ModelInfo(None), target=target, recall=True, now="2026-11-21T00:00:00Z")
    done = fold_now(loaded, wish)
    receipt = done.receipt
    return (
        f"# {name}\n\nThe checkpoint that stands for what was folded of `examples/{name}`: {what}.\n\n"
        f"    foldline compact examples/{name} --target {target}\n\n"
        f"{receipt.tokens_before:,} tokens in {receipt.messages_before} messages became {receipt.tokens_after:,} in "
        f"{receipt.messages_after}; written by rule, without a model.\n\n"
        f"````text\n{done.summary}\n````\n"
    )


def main() -> int:
    """Write the pages."""
    folder = ROOT / "docs" / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (target, what) in EXAMPLES.items():
        (folder / f"{Path(name).stem}.md").write_text(page(name, target, what), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
