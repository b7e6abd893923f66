"""Fit the weights of the offline token counter and write them to src/foldline/core/measure/weights.py.

    python -m tools.fit_tokens CORPUS              fit and write
    python -m tools.fit_tokens CORPUS --report     the errors of the current weights; --save: into docs/results/README.md

CORPUS has a folder for each kind of text (english, python, chinese, ...), with *.txt files in it. Texts of the
kinds base64 and hex are generated. Every fourth file is held out: the report has the errors on those.
Needs only the development dependencies; takes about two minutes.

The fit: weights between 0 and 1 that minimise the relative error of the count over chunks of 400 to 6,000
characters. All kinds weigh the same, except `FAVOURED`; errors are absolute, not squared (by reweighting); low
counts weigh 1.5 times as much; pairs that hardly ever occur are pulled to `PRIOR`.
"""

from __future__ import annotations

import argparse
import base64
import random
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import toktok
from tools.results import Table, as_markdown, save

from foldline.core.measure.byteclasses import LEFT_GROUPS, RIGHT_GROUPS
from foldline.core.measure.tokens import OFFLINE, pair_codes, take_runs

TARGET = Path(__file__).resolve().parent.parent / "src/foldline/core/measure/weights.py"
SIZE = 256
PRIOR = 0.3
RIDGE = 1e-4
ROUNDS = 5
SWEEPS = 400
PER_KIND = (500, 150)  # chunks fitted, chunks held out
# kinds that are frequent in agents' sessions weigh more, rare ones less
FAVOURED = {
    "sessions": 3.0,
    "english": 2.0,
    "code": 1.5,
    "chinese_tw": 0.3,
    "lines_chinese": 0.3,
    "indic": 0.5,
}
SCARCE = 3.0  # a chunk of a kind with few chunks weighs at most this many times as much


class Chunk(NamedTuple):
    """A piece of text of a kind: whether it is held out, its pairs with their counts, its true tokens."""

    kind: str
    held_out: bool
    text: str
    pairs: dict[int, int]
    pair_tokens: float  # the tokens that the pairs must explain
    tokens: int


def generate(kind: str, chance: random.Random) -> list[str]:
    """Return random texts of the kind base64 or hex."""
    texts = []
    for number in range(120):
        raw = chance.randbytes(chance.randint(500, 6000))
        if kind == "base64":
            encode = (base64.b64encode, base64.encodebytes, base64.urlsafe_b64encode)[number % 3]
            texts.append(encode(raw).decode())
        else:
            lines = [raw.hex()[i : i + 64] for i in range(0, len(raw) * 2, 64)]
            texts.append(
                (raw.hex(), raw.hex().upper(), "\n".join(lines), raw.hex(" "), raw.hex(" ", 2))[number % 5]
            )
    return texts


def read_texts(corpus: Path, chance: random.Random) -> dict[str, list[str]]:
    """Read every kind's texts, in the order of their names."""
    texts = {kind: generate(kind, chance) for kind in ("base64", "hex")}
    for folder in sorted(path for path in corpus.iterdir() if path.is_dir()):
        files = sorted(folder.glob("*.txt"))
        texts.setdefault(folder.name, []).extend(
            path.read_bytes().decode("utf-8", "replace") for path in files
        )
    return texts


def cut(text: str, chance: random.Random) -> list[str]:
    """Cut a text into pieces of 400 to 6,000 characters."""
    pieces, start = [], 0
    while start < len(text):
        size = int(2 ** chance.uniform(8.6, 12.5))
        pieces.append(text[start : start + size])
        start += size
    return [piece for piece in pieces if len(piece) > 150]


def make_chunk(kind: str, held_out: bool, text: str, tokens: int) -> Chunk:
    """Count a chunk's pairs as the counter does."""
    data, runs = take_runs(text.encode())
    return Chunk(
        kind, held_out, text, dict(Counter(pair_codes(b"\n" + data))), max(tokens - runs, 1.0), tokens
    )


def read_chunks(corpus: Path) -> list[Chunk]:
    """Read the corpus as chunks, a bounded number of each kind."""
    chance = random.Random(1)
    pools: dict[tuple[str, bool], list[str]] = defaultdict(list)
    for kind, texts in read_texts(corpus, chance).items():
        for number, text in enumerate(texts):
            pools[kind, number % 4 == 3].extend(cut(text, chance))
    chunks = []
    for (kind, held_out), pieces in pools.items():
        chance.shuffle(pieces)
        sample = pieces[: PER_KIND[held_out] * (2 if kind == "sessions" else 1)]
        counts = toktok.batch_count(sample, "o200k_base")
        chunks.extend(make_chunk(kind, held_out, *pair) for pair in zip(sample, counts, strict=True))
    return chunks


def gram(chunks: list[Chunk], weights: list[float]) -> tuple[list[list[float]], list[float]]:
    """Return the normal equations of the weighted least squares, with the pull to the prior."""
    matrix = [[0.0] * SIZE for _ in range(SIZE)]
    right = [0.0] * SIZE
    pull = RIDGE * len(chunks)
    for chunk, weight in zip(chunks, weights, strict=True):
        square = weight * weight
        items = list(chunk.pairs.items())
        for code, times in items:
            row, scaled = matrix[code], square * times
            right[code] += scaled * chunk.pair_tokens
            for other, more in items:
                row[other] += scaled * more
    for code in range(SIZE):
        matrix[code][code] += pull
        right[code] += pull * PRIOR
    return matrix, right


def solve(matrix: list[list[float]], right: list[float], start: list[float]) -> list[float]:
    """Minimise over 0 <= x <= 1 by coordinate descent."""
    x = list(start)
    slope = [
        sum(a * b for a, b in zip(row, x, strict=True)) - r for row, r in zip(matrix, right, strict=True)
    ]
    for _ in range(SWEEPS):
        moved = 0.0
        for code in range(SIZE):
            row = matrix[code]
            new = min(1.0, max(0.0, x[code] - slope[code] / row[code]))
            step = new - x[code]
            if abs(step) > 1e-7:
                x[code] = new
                slope = [s + step * m for s, m in zip(slope, row, strict=True)]
                moved = max(moved, abs(step))
        if moved < 1e-5:
            break
    return x


def fit(chunks: list[Chunk]) -> list[float]:
    """Fit the weights to the chunks that are not held out."""
    chunks = [chunk for chunk in chunks if not chunk.held_out]
    sizes = Counter(chunk.kind for chunk in chunks)
    base = [
        (FAVOURED.get(c.kind, 1.0) * min(PER_KIND[0] / sizes[c.kind], SCARCE)) ** 0.5 / c.tokens
        for c in chunks
    ]
    weights, x = base, [PRIOR] * SIZE
    for number in range(ROUNDS):
        x = solve(*gram(chunks, weights), x)
        errors = [
            (sum(x[code] * n for code, n in c.pairs.items()) - c.pair_tokens) / c.tokens for c in chunks
        ]
        print(f"round {number + 1}: median error {statistics.median(map(abs, errors)):.2%}", file=sys.stderr)
        weights = [
            b / max(abs(e), 0.02) ** 0.5 * (1.5 if e < -0.1 else 1.0)
            for b, e in zip(base, errors, strict=True)
        ]
    return x


def write(x: list[float]) -> None:
    """Write the weights as a table, one row for each left class."""
    numbers = [round(255 * value) for value in x]
    lines = [
        '"""The offline counter\'s weights: 255 x the chance that a token starts between a left and a right class.',
        "",
        "Written by tools/fit_tokens.py, a row for each of `LEFT_GROUPS`, a column for each of `RIGHT_GROUPS`.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        "# fmt: off",
        "WEIGHTS: Final = bytes((",
    ]
    for row, (name, _) in enumerate(LEFT_GROUPS):
        values = ", ".join(f"{n:3d}" for n in numbers[row * 16 : row * 16 + len(RIGHT_GROUPS)])
        lines.append(f"    {values},  # {name}")
    TARGET.write_text("\n".join([*lines, "))", "# fmt: on", ""]), encoding="utf-8")


def report(chunks: list[Chunk]) -> Table:
    """Return the errors on the held-out chunks, and those of characters / 4."""
    head = "kind | chunks | median error | bias | > 20% low | > 20% high | chars/4: median error | > 20% low"
    rows: list[tuple[str, ...]] = []
    for kind in [*sorted({chunk.kind for chunk in chunks if chunk.held_out}), "all"]:
        held = [c for c in chunks if c.held_out and kind in (c.kind, "all")]
        ours = [OFFLINE.count(c.text) / c.tokens - 1 for c in held]
        quarter = [len(c.text) / 4 / c.tokens - 1 for c in held]
        cells = [
            statistics.median(map(abs, ours)), statistics.median(ours), sum(e < -0.2 for e in ours) / len(held),
            sum(e > 0.2 for e in ours) / len(held), statistics.median(map(abs, quarter)),
            sum(e < -0.2 for e in quarter) / len(held),
        ]  # fmt: skip
        rows.append((kind, str(len(held)), *(f"{cell:.1%}" for cell in cells)))
    return Table(tuple(head.split(" | ")), rows)


def main() -> None:
    """Read the arguments, fit and write, or report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", type=Path, help="a folder with a folder of *.txt files for each kind")
    parser.add_argument("--report", action="store_true", help="print the errors of the current weights")
    parser.add_argument("--save", action="store_true", help="write the report into docs/results/README.md")
    arguments = parser.parse_args()
    chunks = read_chunks(arguments.corpus)
    if arguments.save:
        save("tokens", "python -m tools.fit_tokens CORPUS --save", [report(chunks)])
    elif arguments.report:
        print(as_markdown([report(chunks)]))
    else:
        write(fit(chunks))
        print(f"wrote {TARGET}; run again with --report", file=sys.stderr)


if __name__ == "__main__":
    main()
