"""Whatever holds a secret, wherever it stands and however it is disguised, nothing that a fold makes says it."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.secrets import DISGUISES, Secret, in_disguise, leaked, load, load_disguised

import foldline
from foldline.core.decide.presets import PRESETS
from foldline.core.log.codec import encode
from foldline.core.log.entries import Pinned, Said
from foldline.stores import MemoryStore

pytestmark = pytest.mark.slow

PLAIN = [secret for name in ("secrets.toml", "secrets_held_out_2.toml") for secret in load(name)[0]]
SECRETS = st.one_of(
    st.sampled_from(PLAIN),
    st.sampled_from(load_disguised("secrets_held_out_2.toml")),
    st.builds(in_disguise, st.sampled_from(PLAIN), st.sampled_from(list(DISGUISES))),
)
LONG = "The parser reads one line after the other and keeps what it has read. "


def used(number: int, name: str, arguments: dict[str, Any], result: str = "done") -> list[dict[str, Any]]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": f"Step {number} comes next.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": result},
    ]


def spoken(number: int, text: str, **more: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": text, **more},
        {"role": "assistant", "content": f"Step {number} is done."},
    ]


HOLDERS = {
    "what the user says": lambda n, text: spoken(n, f"For step {n} use this: {text}"),
    "a long message": lambda n, text: spoken(n, f"{LONG * 40}\n\n{text}\n\n{LONG * 40}"),
    "lines that are shortened": lambda n, text: spoken(n, "\n".join([f"- {LONG * 3}{text}"] * 6)),
    "a block of code": lambda n, text: spoken(n, f"{LONG * 12}\n```\n{text}\n```\n{LONG * 12}"),
    "a rule": lambda n, text: spoken(n, f"Never print this in a log: {text}"),
    "a speaker's name": lambda n, text: spoken(n, f"Go on with step {n}.", name=text),
    "a reply": lambda n, text: [
        {"role": "assistant", "content": f"Step {n} needs it: {text}. Shall I?"},
        {"role": "user", "content": "yes"},
    ],
    "a path": lambda n, text: used(n, "read", {"path": f"conf/{text}"}, "x = 1"),
    "a key of the arguments": lambda n, text: used(n, "http", {"headers": {text: "on"}}),
    "a list of words": lambda n, text: used(n, "bash", {"command": ["sh", "-c", text]}),
    "what is written": lambda n, text: used(n, "write", {"path": f"a{n}.py", "content": f"x = 1\n{text}\n"}),
    "an edit": lambda n, text: used(
        n, "edit", {"path": f"a{n}.py", "old_string": text, "new_string": f"y = 2\n{text}"}
    ),
    "a commit": lambda n, text: used(
        n, "bash", {"command": f"git commit -m 'Use {text}'"}, f"[main 1a2b3c4] Use {text}\n 1 file changed"
    ),
    "a check": lambda n, text: used(
        n, "bash", {"command": "pytest -q"}, f"E   AssertionError: {text}\n1 failed"
    ),
    "a result": lambda n, text: used(
        n, "bash", {"command": "make"}, f"{LONG * 20}\nError: {text}\n{LONG * 20}"
    ),
    "a plan": lambda n, text: used(n, "ExitPlanMode", {"plan": f"# Plan\n1. Use it: {text}"}, "approved"),
    "a todo": lambda n, text: used(
        n, "TodoWrite", {"todos": [{"content": f"Set {text}", "status": "in_progress"}]}
    ),
    "a question": lambda n, text: used(
        n, "AskUserQuestion", {"questions": [{"question": f"Is it {text}?"}]}, f"User answered: it is {text}"
    ),
    "a subagent": lambda n, text: used(n, "Task", {"description": "Try it", "prompt": f"Use {text}"}, text),
    "the name of a tool": lambda n, text: used(n, text, {"x": 1}),
}


def session_with(held: list[tuple[Secret, str]]) -> list[dict[str, Any]]:
    messages = [{"role": "user", "content": "Set the servers up. Never push to main."}]
    for number, (secret, holder) in enumerate(held):
        messages += HOLDERS[holder](number, secret.text)
    for number in range(100, 108):
        messages += used(number, "read", {"path": f"src/page{number}.py"}, f"def page{number}(): ...\n" * 40)
    return [*messages, {"role": "assistant", "content": "The pages are read."}]


def left_of(held: list[tuple[Secret, str]], said: Any) -> dict[str, str]:
    text = said if isinstance(said, str) else json.dumps(msgspec.to_builtins(said), ensure_ascii=False)
    return leaked([secret for secret, _ in held], text.replace("\\n", "\n"))


holding = st.lists(st.tuples(SECRETS, st.sampled_from(list(HOLDERS))), min_size=1, max_size=16)


@given(holding, st.sampled_from(list(PRESETS)), st.sampled_from([1_500, 3_000, 6_000]), SECRETS)
@settings(deadline=None)
def test_nothing_that_a_fold_makes_says_a_secret(held, policy, target, focus):
    messages = session_with(held)
    there = {json.dumps(message, sort_keys=True) for message in messages}
    try:
        done = foldline.compact(messages, target, policy, instructions=f"Look at {focus.text}")
    except foldline.FloorExceeded:
        return
    every = [*held, (focus, "")]
    made = [one for one in done.messages if json.dumps(one, sort_keys=True) not in there]
    assert not left_of(every, [made, done.summary, done.ledger, done.receipt])


@given(holding, st.lists(SECRETS, min_size=3, max_size=3))
@settings(deadline=None)
def test_no_boundary_of_a_session_says_a_secret(held, others):
    live, focus, goal = others

    async def boundaries() -> list[Any]:
        async with foldline.open(MemoryStore(), "s", window=60_000, policy="foldline") as session:
            session.attach("open", lambda: f"Open: {live.text}")
            ids = await session.append(*session_with(held))
            await session.pin(ids[1 % len(ids)])
            await session.compact(f"Look at {focus.text}", target=4_000)
            await session.append(*session_with(held[::-1]))
            await session.compact(target=4_000)
            fresh = await session.handoff(f"Bring up {goal.text}")
            found = [entry async for entry in session.store.path(session.id)]
            found += [entry async for entry in fresh.store.path(fresh.id)]
            await fresh.close()
            return [entry for entry in found if not isinstance(entry, Said | Pinned)]  # the user's own words

    made = asyncio.run(boundaries())
    assert made
    assert not left_of([*held, *((one, "") for one in others)], encode(made).decode())
