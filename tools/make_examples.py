"""Write docs/examples/*.md, what `foldline compact` makes of the example sessions, and the page in docs/ledger.md.

The notebook in examples/ is run, and written with what its cells print.

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
FROM_START = {"research.jsonl"}  # its own compaction is passed over
NOTEBOOK = ROOT / "examples" / "what_a_fold_keeps.ipynb"
LEDGER = ROOT / "docs" / "ledger.md"
PLACE = re.compile(r"(?<=<!-- page -->\n).*?(?=<!-- end -->)", re.DOTALL)
SHOWN = "[User] I tried it on staging"  # the request that docs/ledger.md shows whole
WIDE = 120  # characters of a line there
HEADS = {  # lines of a section there
    "## State": 2,
    "## Rules": 2,
    "Names met in what is not shown, to search for:": 1,
    "<read-files>": 1,
}


def folded(name: str, target: int) -> Done:
    """Fold an example, as of a fixed day."""
    loaded = from_records(read(ROOT / "examples" / name), OFFLINE, from_start=name in FROM_START)
    wish = FoldOptions(
        preset("foldline"), ModelInfo(None), target=target, recall=True, now="2026-11-21T00:00:00Z"
    )
    return fold_now(loaded, wish)


def page(name: str, target: int, what: str) -> str:
    """Return the page of one example; the date of the fold is left out, so that the page stays the same."""
    done = folded(name, target)
    flag = " --from-start" * (name in FROM_START)
    receipt = done.receipt
    return (
        f"# {name}\n\nThe checkpoint that replaces the folded part of `examples/{name}`: {what}.\n\n"
        f"    foldline compact examples/{name} --target {target}{flag}\n\n"
        f"{receipt.tokens_before:,} tokens in {receipt.messages_before} messages became {receipt.tokens_after:,} in "
        f"{receipt.messages_after}; written by rule, without a model.\n\n"
        f"````text\n{done.summary}\n````\n"
    )


def short(summary: str) -> str:
    """Return a checkpoint cut to its form: the beginning of each section, and of the conversation one request."""
    rows: list[str] = []
    for section in re.split(r"\n\n(?=## |Names met |<)", summary):
        lines = section.split("\n")
        if lines[0] == "## Conversation":
            begin = next(at for at, line in enumerate(lines) if line.startswith(SHOWN))
            end = next(at for at in range(begin + 1, len(lines)) if lines[at].startswith("[User] "))
            lines = [lines[0], "…", *lines[begin:end], "…"]
        elif len(lines) > 1 + (head := HEADS.get(lines[0], len(lines))):
            lines = [*lines[: 1 + head], "…"]
        rows += [*(line if len(line) <= WIDE else f"{line[:WIDE]}…" for line in lines), ""]
    return "\n".join(rows[:-1])


def with_page(text: str) -> str:
    """Return docs/ledger.md with a page as the fold writes it today."""
    name = "session.jsonl"
    shown = short(folded(name, EXAMPLES[name][0]).summary or "")
    return PLACE.sub(lambda _: f"\n````text\n{shown}\n````\n\n", text)


def ran(notebook: str) -> str:
    """Return a notebook with what its cells print today, run in the folder of the examples."""
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
    """Write the pages."""
    folder = ROOT / "docs" / "examples"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (target, what) in EXAMPLES.items():
        (folder / f"{Path(name).stem}.md").write_text(page(name, target, what), encoding="utf-8")
    LEDGER.write_text(with_page(LEDGER.read_text(encoding="utf-8")), encoding="utf-8")
    NOTEBOOK.write_text(ran(NOTEBOOK.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
