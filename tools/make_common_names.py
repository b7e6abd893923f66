"""Write src/foldline/lab/common_names.txt: the names that tool calls of at least three unrelated projects used.

    python tools/make_common_names.py SESSIONS

SESSIONS has files `SOURCE/*.jsonl.gz` in the plain format, with a folder for each project. Retention ignores names that
unrelated projects share (README.md, --help, package.json), because they are not specific to a project.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from foldline.core.lab.retention import names_in_calls
from foldline.transcripts import MessageRecord, read

PROJECTS = 3  # that must use a name
TARGET = Path(__file__).parents[1] / "src" / "foldline" / "lab" / "common_names.txt"
HEAD = f"""# Names that tool calls of at least {PROJECTS} unrelated projects used: they are not specific to a project.
# Made by tools/make_common_names.py from recorded sessions of five projects.
"""


def common(folder: Path) -> list[str]:
    """Return the names that enough projects used."""
    users: defaultdict[str, set[str]] = defaultdict(set)
    for path in sorted(folder.glob("*/*.jsonl.gz")):
        for record in read(path):
            if isinstance(record, MessageRecord):
                for entity in names_in_calls(record.message.calls):
                    users[entity.key].add(path.parent.name)
    return sorted(
        name for name, projects in users.items() if len(projects) >= PROJECTS and "REDACTED" not in name
    )


def main(folder: str) -> int:
    """Write the list."""
    names = common(Path(folder))
    TARGET.write_text(HEAD + "\n".join(names) + "\n", encoding="utf-8")
    print(f"{len(names)} names")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
