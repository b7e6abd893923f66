"""Public benchmarks: COMPINT's constraints, the canaries of compaction-conformance-kit, the tasks of BFCL.

Nothing is copied: they are read from the installed packages.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, files
from io import StringIO
from pathlib import Path
from runpy import run_path
from typing import Any

import msgspec

from foldline.bench.system import Messages

CONSTRAINTS = "conpact"  # COMPINT
KIT = "compaction-conformance-kit"
BFCL = "bfcl-eval"

TASKS = "BFCL_v4_multi_turn_long_context.json"
TOGETHER = 20  # tasks whose first halves make one session
LEAST = 3  # characters of an argument that is looked for


def _file(package: str, name: str) -> Path:
    """Return the place of a file of a package; raises PackageNotFoundError."""
    return Path(str(next(one.locate() for one in files(package) or () if str(one).endswith(name))))


# ---- COMPINT: constraints


def constraints() -> tuple[str, ...]:
    """Return COMPINT's constraints as its package words them; none if it is not installed."""
    try:
        module = run_path(
            str(_file(CONSTRAINTS, "constraints.py"))
        )  # importing the package would download data
    except PackageNotFoundError:
        return ()
    render = module["render_sc"]
    return tuple(render(one["sc"], strict=False, direct=True) for one in module["SCS"])


# ---- compaction-conformance-kit: canaries


def canaries() -> tuple[Messages, Sequence[Any]]:
    """Return the kit's session, and its canaries."""
    session: Any = import_module("compaction_kit.session")
    canaries_module: Any = import_module("compaction_kit.canaries")
    turns = session.build_seeded_session().transcript()
    return [{"role": turn.role, "content": turn.text} for turn in turns], canaries_module.seeded_canaries()


def survives(canary: Any, view: str) -> bool:
    """Return whether the kit finds a canary in the text of a view."""
    probes: Any = import_module("compaction_kit.probes")
    return bool(probes.BehaviorProbe().probe(canary, view).survived)


# ---- BFCL: arguments


class Halved(msgspec.Struct, frozen=True):
    """First halves of tasks: their messages, and the arguments that the second halves take from them."""

    past: Messages
    needed: tuple[str, ...]


@cache
def halves() -> tuple[Halved, ...]:
    """Return BFCL's long-context tasks, the first halves of several in one session."""
    questions, answers = (_lines(f"data/{folder}{TASKS}") for folder in ("", "possible_answer/"))
    with redirect_stdout(StringIO()):
        each = [
            _halved(task, answer["ground_truth"]) for task, answer in zip(questions, answers, strict=True)
        ]
    together = [each[at : at + TOGETHER] for at in range(0, len(each), TOGETHER)]
    return tuple(
        Halved(
            [message for one in some for message in one.past],
            tuple(argument for one in some for argument in one.needed),
        )
        for some in together
    )


def _lines(name: str) -> list[Any]:
    return [json.loads(line) for line in _file(BFCL, name).read_text(encoding="utf-8").splitlines()]


def _halved(task: dict[str, Any], truth: list[list[str]]) -> Halved:
    utils: Any = import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils")
    turns: list[tuple[str, list[str], list[str]]] = []
    for question, calls in zip(task["question"], truth, strict=False):
        results, _ = utils.execute_multi_turn_func_call(
            calls, task["initial_config"], task["involved_classes"], "bench", task["id"], long_context=True
        )
        turns.append((" ".join(one["content"] for one in question), calls, results))
    half = len(turns) // 2
    past = [message for place, turn in enumerate(turns[:half]) for message in _said(task["id"], place, *turn)]
    known = "\n".join(f"{text}\n{calls}\n{results}" for text, calls, results in turns[:half])
    return Halved(past, tuple(_needed(known, turns[half:])))


def _said(task: str, place: int, text: str, calls: list[str], results: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a turn: the prompt, a call and its result for each, a reply."""
    yield {"role": "user", "content": text}
    for number, (written, result) in enumerate(zip(calls, results, strict=True)):
        call = ast.parse(written).body[0]
        name = written.partition("(")[0]
        arguments = json.dumps({key: _value(node) for key, node in _arguments(call)})
        call_id = f"{task}_{place}_{number}"
        function = {"name": name, "arguments": arguments}
        yield {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        }
        yield {"role": "tool", "tool_call_id": call_id, "content": result}
    yield {"role": "assistant", "content": "Done."}


def _arguments(call: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the arguments of a written call by their names, or their places."""
    if isinstance(call, ast.Expr) and isinstance(call.value, ast.Call):
        yield from ((str(place), node) for place, node in enumerate(call.value.args))
        yield from ((one.arg or "", one.value) for one in call.value.keywords)


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def _needed(past: str, turns: list[tuple[str, list[str], list[str]]]) -> Iterator[str]:
    """Yield the arguments of later calls that the past has, and no later message before the call."""
    later = ""
    for text, calls, results in turns:
        later += f"\n{text}"
        for written, result in zip(calls, results, strict=True):
            for _, node in _arguments(ast.parse(written).body[0]):
                argument = str(_value(node))
                if len(argument) >= LEAST and argument in past and argument not in later:
                    yield argument
            later += f"\n{written}\n{result}"
