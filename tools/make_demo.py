"""Draw docs/demo.svg: the output of `make run`, with shortened sections of the checkpoint.

python tools/make_demo.py
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[1]
COLUMNS = 106
PICTURE = ROOT / "docs" / "demo.svg"

# rich's own template downloads its font; this one uses the reader's
TEMPLATE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g>
</svg>
"""


def main() -> None:
    """Run the demo on a wide terminal and draw its output."""
    env = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "foldline", "demo", "--lines", "2"]
    output = subprocess.run(command, capture_output=True, check=True, cwd=ROOT, env=env).stdout.decode()
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(output.rstrip()))
    PICTURE.write_text(
        console.export_svg(title="make run", code_format=TEMPLATE, unique_id="demo"), encoding="utf-8"
    )
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
