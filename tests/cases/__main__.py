"""Print what is right and what is wrong of the reported cases: `python -m tests.cases [NAME ...]`."""

from __future__ import annotations

import sys

from tests.cases.reported import CASES, CHECKS


def main(names: list[str]) -> int:
    if not CASES.is_dir():
        print(f"no cases in {CASES}: set FOLDLINE_CASES")
        return 2
    wrong = 0
    for folder, check in sorted(CHECKS.items()):
        if names and not any(name in folder for name in names):
            continue
        try:
            check()
        except Exception as error:
            wrong += 1
            print(f"WRONG  {folder}: {type(error).__name__}: {str(error).strip()[:200]}", flush=True)
        else:
            print(f"right  {folder}", flush=True)
    return 1 if wrong else 0


sys.exit(main(sys.argv[1:]))
