"""Secrets in six places of a session, through whole compactions of every preset: no piece of one is in what they make."""

import json
import logging

import msgspec
import pytest
from tests.summarizers.talking import GOOD, POLICY, make_model
from tests.support.secrets import DISGUISES, disguised, in_disguise, leaked, load, load_disguised

import foldline
from foldline.core.decide.presets import PRESETS
from foldline.core.log.codec import encode
from foldline.core.log.entries import Said
from foldline.stores import MemoryStore

pytestmark = pytest.mark.slow

SECRETS, INNOCENTS = load("secrets.toml")
FRESH, FRESH_INNOCENTS = load("secrets_held_out_2.toml")
IN_DISGUISE = {
    name: [in_disguise(secret, name) for secret in (*SECRETS, *FRESH)]
    + load_disguised("secrets_held_out_2.toml")
    for name in DISGUISES
}
TARGET = 16_000


def used(number, name, arguments, result):
    """A call of a tool and its result."""
    call = {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }
    return [
        {"role": "assistant", "content": f"Step {number} comes next.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": result},
    ]


def told(number, text):
    return [
        {"role": "user", "content": f"Please remember for step {number}, it must always be used: {text}"},
        {"role": "assistant", "content": f"Step {number} is done; the value is noted and works."},
    ]


def listed(text):
    return "\n".join(f"{n:6}\t{line}" for n, line in enumerate(text.split("\n"), 1))


PLACES = {
    "user text": told,
    "result": lambda n, text: used(n, "read", {"path": f"conf/part{n}.txt"}, text),
    "argument": lambda n, text: used(n, "write", {"path": f"conf/part{n}.txt", "content": text}, "written"),
    "listing": lambda n, text: used(n, "bash", {"command": f"cat -n conf/part{n}.txt"}, listed(text)),
    "command": lambda n, text: used(n, "bash", {"command": text}, f"Error: step {n} failed with exit code 3"),
    "JSON": lambda n, text: used(n, "http", {"url": f"https://example.com/{n}"}, json.dumps({"value": text})),
}


def session_with(texts, shift=0):
    """A session that holds each text in one of the places, which one `shift` says, and ends in other work."""
    messages = [{"role": "user", "content": "Set the servers up. Never push to main."}]
    for number, text in enumerate(texts):
        place = list(PLACES.values())[(number + shift) % len(PLACES)]
        messages += place(number, text)
        if number % 9 == 8:
            messages += [
                {"role": "assistant", "content": f"Part {number // 9} is set up."},
                {"role": "user", "content": f"Go on with part {number // 9 + 1}."},
            ]
    return [*messages, {"role": "assistant", "content": "Everything is set up."}]


def later(start):
    """Work without a secret, long enough that a tail holds nothing else."""
    found = [{"role": "user", "content": "Now look at the pages."}]
    for number in range(start, start + 24):
        found += used(number, "read", {"path": f"src/page{number}.py"}, f"def page{number}(): ...\n" * 40)
    return [*found, {"role": "assistant", "content": "The pages are read."}]


def pieces_in(said, secrets=SECRETS):
    """Return which secrets stand in what was made, by a piece of each."""
    text = said if isinstance(said, str) else json.dumps(msgspec.to_builtins(said), ensure_ascii=False)
    plain = text.replace("\\\\", "\\").replace('\\"', '"').replace("\\n", "\n")
    return leaked(secrets, text if plain == text else f"{text}\n{plain}")


def made(messages, received):
    """Return the messages of a view that are not as they were received."""
    there = {json.dumps(message, sort_keys=True) for message in received}
    return [message for message in messages if json.dumps(message, sort_keys=True) not in there]


async def boundaries(session):
    return [entry async for entry in session.store.path(session.id) if not isinstance(entry, Said)]


TEXTS = [secret.text for secret in SECRETS]


def each(policies, others):
    """Return all pairs; those of other policies than the default are for long runs: a stored session tries each."""
    return [
        pytest.param(policy, other, marks=() if policy == "foldline" else pytest.mark.soak)
        for policy in policies
        for other in others
    ]


@pytest.mark.parametrize(("policy", "shift"), each(PRESETS, range(len(PLACES))))
def test_no_secret_is_in_what_a_stateless_compaction_makes(policy, shift):
    messages = [*session_with(TEXTS, shift), *later(1_000)]
    done = foldline.compact(messages, TARGET, policy)
    assert done.receipt.tokens_after < done.receipt.tokens_before
    assert not pieces_in(made(done.messages, messages))
    assert not pieces_in([done.summary, done.ledger, done.receipt])


@pytest.mark.parametrize("policy", PRESETS)
async def test_no_secret_is_in_what_a_stored_session_keeps_of_its_compactions(policy, caplog):
    caplog.set_level(logging.DEBUG)
    store = MemoryStore()
    async with foldline.open(store, "s", window=200_000, policy=policy) as session:
        said = [*session_with(TEXTS, shift=list(PRESETS).index(policy)), *later(1_000)]
        await session.append(*said)
        await session.compact(target=TARGET)
        more = [*session_with(TEXTS[::-1]), *later(2_000)]
        await session.append(*more)
        await session.compact(target=TARGET)
        kept = await boundaries(session)
        assert sum(type(entry).__name__ in ("Compacted", "Pruned") for entry in kept) == 2
        assert not pieces_in(encode(kept).decode())
        assert not pieces_in(made(await session.context(), [*said, *more]))
        assert not pieces_in(await session.display_summary())
        fresh = await session.handoff("Bring the servers up")
        assert not pieces_in(encode(await boundaries(fresh)).decode())
        await fresh.close()
    assert not pieces_in(caplog.text)


async def test_no_secret_is_in_a_request_to_a_summariser_or_left_of_its_summary():
    bare = [secret.hidden[0] for secret in SECRETS if len(secret.hidden[0]) >= 16]
    cut = [text if "-" in text else text[: len(text) * 3 // 4] for text in bare]
    lines = "\n".join(f"- Step {n} uses {text} here" for n, text in enumerate(cut))
    served, summarizer = make_model(lambda asked: GOOD.replace("- (none)", lines, 1))
    messages = [*session_with(TEXTS), *later(1_000)]
    done = await foldline.acompact(messages, TARGET, POLICY, summarizer=summarizer)
    assert done.receipt.summarizer == "scripted:scripted"
    assert served.requests
    assert not pieces_in(json.dumps([asked.body for asked in served.requests], ensure_ascii=False))
    assert not pieces_in([done.summary, done.ledger, done.receipt])
    assert not pieces_in(made(done.messages, messages))


@pytest.mark.parametrize("policy", ["foldline", "gencode:low-cost"])
def test_no_secret_is_in_the_notes_of_a_prune(policy):
    results = [PLACES["command"](n, text) for n, text in enumerate(TEXTS)]
    results += [
        PLACES["result"](1_000 + n, f"Error: it failed\n{text}\n" + "def x(): ...\n" * 40)
        for n, text in enumerate(TEXTS)
    ]
    messages = [
        {"role": "user", "content": "Set it up."},
        *(m for pair in results for m in pair),
        *later(5_000),
    ]
    whole = foldline.compact(messages, 10_000_000, policy).receipt.tokens_before
    done = foldline.compact(messages, whole * 4 // 5, policy)
    assert done.summary is None, "a prune was enough"
    assert not pieces_in(made(done.messages, messages))


@pytest.mark.parametrize(("policy", "disguise"), each(PRESETS, DISGUISES))
def test_no_secret_in_disguise_is_in_what_a_stateless_compaction_makes(policy, disguise):
    secrets = IN_DISGUISE[disguise]
    shift = list(PRESETS).index(policy) + list(DISGUISES).index(disguise)
    messages = [*session_with([secret.text for secret in secrets], shift), *later(1_000)]
    done = foldline.compact(messages, TARGET, policy)
    assert done.receipt.tokens_after < done.receipt.tokens_before
    assert not pieces_in(made(done.messages, messages), secrets)
    assert not pieces_in([done.summary, done.ledger, done.receipt], secrets)


@pytest.mark.parametrize("disguise", DISGUISES)
async def test_no_secret_in_disguise_is_in_a_store_or_in_a_request_to_a_summariser(disguise, caplog):
    caplog.set_level(logging.DEBUG)
    secrets = IN_DISGUISE[disguise]
    served, summarizer = make_model(lambda asked: GOOD)
    shift = list(DISGUISES).index(disguise)
    async with foldline.open(
        MemoryStore(), "s", window=200_000, policy=POLICY, summarizer=summarizer
    ) as session:
        await session.append(*session_with([secret.text for secret in secrets], shift), *later(1_000))
        await session.compact(target=TARGET)
        assert served.requests
        assert not pieces_in(
            json.dumps([asked.body for asked in served.requests], ensure_ascii=False), secrets
        )
        assert not pieces_in(encode(await boundaries(session)).decode(), secrets)
    assert not pieces_in(caplog.text, secrets)


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize(
    "shift", [0, *(pytest.param(shift, marks=pytest.mark.soak) for shift in range(1, len(PLACES)))]
)
def test_what_is_no_secret_is_said_as_it_was_in_any_disguise(disguise, shift):
    texts = [disguised(text, disguise) for text in (*INNOCENTS, *FRESH_INNOCENTS)]
    messages = [*session_with(texts, shift), *later(1_000)]
    done = foldline.compact(messages, TARGET, "foldline")
    assert "[redacted" not in json.dumps(msgspec.to_builtins([done.summary, done.ledger, done.messages]))


def test_what_is_no_secret_is_said_as_it_was():
    messages = [*session_with(INNOCENTS), *later(1_000)]
    done = foldline.compact(messages, TARGET, "foldline")
    assert "[redacted" not in json.dumps(msgspec.to_builtins([done.summary, done.ledger, done.messages]))
