"""Write the checkpoints of the example sessions: docs/examples/*.md, and the page in docs/ledger.md.

Also runs the notebook in examples/, and writes the output of its cells into it.

.venv/bin/python tools/make_examples.py
"""

from __future__ import annotations

import io
import json
import re
import sys
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any

from foldline.catalogue import ModelInfo
from foldline.core.decide.presets import preset
from foldline.core.measure.tokens import OFFLINE
from foldline.folding import Done, FoldOptions, fold_now
from foldline.loading import from_records
from foldline.transcripts import read

ROOT = Path(__file__).parents[1]
EXAMPLES = {
    "session.jsonl": (9_000, "a coding agent on a web service, Anthropic messages: 173 messages"),
    "support-chat.json": (2_500, "a support desk with tools, OpenAI chat messages, no code at all"),
    "research.jsonl": (2_200, "a research agent, as pi writes its sessions"),
}
FROM_START = {"research.jsonl"}  # its own compaction is ignored
NOTEBOOK = ROOT / "examples" / "what_a_fold_keeps.ipynb"
LEDGER = ROOT / "docs" / "ledger.md"
PLACE = re.compile(r"(?<=<!-- page -->\n).*?(?=<!-- end -->)", re.DOTALL)
SHOWN = "[User] I tried it on staging"  # the request that docs/ledger.md shows whole
WIDTH = 120  # characters of a line in docs/ledger.md
HEADS = {  # lines of a section in docs/ledger.md
    "## State": 2,
    "## Rules": 2,
    "Names met in what is not shown, to search for:": 1,
    "<read-files>": 1,
}


def folded(name: str, target: int) -> Done:
    """Fold an example, at a fixed date."""
    loaded = from_records(read(ROOT / "examples" / name), OFFLINE, from_start=name in FROM_START)
    options = FoldOptions(
        preset("foldline"), ModelInfo(None), target=target, recall=True, now="2026-11-21T00:00:00Z"
    )
    return fold_now(loaded, options)


def page(name: str, target: int, about: str) -> str:
    """Return the page of one example."""
    done = folded(name, target)
    flag = " --from-start" * (name in FROM_START)
    receipt = done.receipt
    return (
        f"# {name}\n\nThe checkpoint that replaces the folded part of `examples/{name}`: {about}.\n\n"
        f"    foldline compact examples/{name} --target {target}{flag}\n\n"
        f"{receipt.tokens_before:,} tokens in {receipt.messages_before} messages became {receipt.tokens_after:,} in "
        f"{receipt.messages_after}; written by rule, without a model.\n\n"
        f"````text\n{done.summary}\n````\n"
    )


def short(summary: str) -> str:
    """Return the beginning of each section of a checkpoint, and one request of its conversation."""
    rows: list[str] = []
    for section in re.split(r"\n\n(?=## |Names met |<)", summary):
        lines = section.split("\n")
        if lines[0] == "## Conversation":
            begin = next(n for n, line in enumerate(lines) if line.startswith(SHOWN))
            end = next(n for n in range(begin + 1, len(lines)) if lines[n].startswith("[User] "))
            lines = [lines[0], "…", *lines[begin:end], "…"]
        elif len(lines) > 1 + (head := HEADS.get(lines[0], len(lines))):
            lines = [*lines[: 1 + head], "…"]
        rows += [*(line if len(line) <= WIDTH else f"{line[:WIDTH]}…" for line in lines), ""]
    return "\n".join(rows[:-1])


def with_page(text: str) -> str:
    """Return docs/ledger.md with the current checkpoint of an example."""
    name = "session.jsonl"
    checkpoint = short(folded(name, EXAMPLES[name][0]).summary or "")
    return PLACE.sub(lambda _: f"\n````text\n{checkpoint}\n````\n\n", text)


def with_outputs(notebook: str) -> str:
    """Run the cells of a notebook in the folder of the examples, and return it with their output."""
    document, names, number = json.loads(notebook), dict[str, Any](), 0
    for cell in document["cells"]:
        if cell["cell_type"] != "code":
            continue
        printed, number = io.StringIO(), number + 1
        with chdir(NOTEBOOK.parent), redirect_stdout(printed):
            exec("".join(cell["source"]), names)
        lines = printed.getvalue().splitlines(keepends=True)
        cell["execution_count"] = number
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write the pages and the notebook."""
    folder = ROOT / "docs" / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (target, about) in EXAMPLES.items():
        (folder / f"{Path(name).stem}.md").write_text(page(name, target, about), encoding="utf-8")
    LEDGER.write_text(with_page(LEDGER.read_text(encoding="utf-8")), encoding="utf-8")
    NOTEBOOK.write_text(with_outputs(NOTEBOOK.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
