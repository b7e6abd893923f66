"""Public benchmarks: COMPINT's constraints, the canaries of compaction-conformance-kit, the tasks of BFCL.

All are read from the installed packages.
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
SESSION_TASKS = 20  # tasks whose first halves make one session
MIN_LENGTH = 3  # characters of an argument that is searched for


def _file(package: str, name: str) -> Path:
    """Return the path of a package's file whose name ends in `name`; raises PackageNotFoundError."""
    return Path(str(next(file.locate() for file in files(package) or () if str(file).endswith(name))))


# ---- COMPINT: constraints


def constraints() -> tuple[str, ...]:
    """Return COMPINT's constraints in its package's wording; none if it is not installed."""
    try:
        path = _file(CONSTRAINTS, "constraints.py")
    except PackageNotFoundError:
        return ()
    module = run_path(str(path))  # importing the package would download data
    render = module["render_sc"]
    return tuple(render(entry["sc"], strict=False, direct=True) for entry in module["SCS"])


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


class FirstHalves(msgspec.Struct, frozen=True):
    """First halves of tasks: their messages, and the arguments that the second halves take from them."""

    past: Messages
    needed: tuple[str, ...]


@cache
def first_halves() -> tuple[FirstHalves, ...]:
    """Return the first halves of BFCL's long-context tasks, those of several tasks in one session."""
    questions, answers = (_lines(f"data/{folder}{TASKS}") for folder in ("", "possible_answer/"))
    with redirect_stdout(StringIO()):
        tasks = [
            _first_half(task, answer["ground_truth"]) for task, answer in zip(questions, answers, strict=True)
        ]
    sessions = [tasks[start : start + SESSION_TASKS] for start in range(0, len(tasks), SESSION_TASKS)]
    return tuple(
        FirstHalves(
            [message for task in session for message in task.past],
            tuple(argument for task in session for argument in task.needed),
        )
        for session in sessions
    )


def _lines(name: str) -> list[Any]:
    return [json.loads(line) for line in _file(BFCL, name).read_text(encoding="utf-8").splitlines()]


def _first_half(task: dict[str, Any], truth: list[list[str]]) -> FirstHalves:
    utils: Any = import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils")
    turns: list[tuple[str, list[str], list[str]]] = []
    for question, calls in zip(task["question"], truth, strict=False):
        results, _ = utils.execute_multi_turn_func_call(
            calls, task["initial_config"], task["involved_classes"], "bench", task["id"], long_context=True
        )
        turns.append((" ".join(message["content"] for message in question), calls, results))
    half = len(turns) // 2
    past = [
        message
        for number, turn in enumerate(turns[:half])
        for message in _turn_messages(task["id"], number, *turn)
    ]
    known = "\n".join(f"{text}\n{calls}\n{results}" for text, calls, results in turns[:half])
    return FirstHalves(past, tuple(_needed(known, turns[half:])))


def _turn_messages(
    task: str, turn: int, text: str, calls: list[str], results: list[str]
) -> Iterator[dict[str, Any]]:
    """Yield the messages of a turn: the prompt, each call with its result, a reply."""
    yield {"role": "user", "content": text}
    for number, (code, result) in enumerate(zip(calls, results, strict=True)):
        call = ast.parse(code).body[0]
        name = code.partition("(")[0]
        arguments = json.dumps({key: _value(node) for key, node in _arguments(call)})
        call_id = f"{task}_{turn}_{number}"
        function = {"name": name, "arguments": arguments}
        yield {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        }
        yield {"role": "tool", "tool_call_id": call_id, "content": result}
    yield {"role": "assistant", "content": "Done."}


def _arguments(call: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names, or the positions, and the values of a call's arguments."""
    if isinstance(call, ast.Expr) and isinstance(call.value, ast.Call):
        yield from ((str(position), node) for position, node in enumerate(call.value.args))
        yield from ((keyword.arg or "", keyword.value) for keyword in call.value.keywords)


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)


def _needed(past: str, turns: list[tuple[str, list[str], list[str]]]) -> Iterator[str]:
    """Yield the arguments of later calls that are in the past, but in no later message before the call."""
    later = ""
    for text, calls, results in turns:
        later += f"\n{text}"
        for code, result in zip(calls, results, strict=True):
            for _, node in _arguments(ast.parse(code).body[0]):
                argument = str(_value(node))
                if len(argument) >= MIN_LENGTH and argument in past and argument not in later:
                    yield argument
            later += f"\n{code}\n{result}"
