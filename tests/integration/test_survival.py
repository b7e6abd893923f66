"""Standing constraints survive ten folds in a row word for word; superseded values do not come back."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from tests.support import corpus
from tests.support.planted import (
    FOLDS,
    REPLACED,
    STANDING,
    checkpoint_summary,
    chunks,
    constraints_in,
    missing_sentences,
    plant,
    plant_replacements,
    plant_side_constraints,
    stale_constraints,
)

import foldline
from foldline.core.checkpoint.page import parse
from foldline.core.decide.presets import preset
from foldline.core.ledger.text.origin import UserSpeech
from foldline.core.log.entries import Said
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view_items import MessageItem, native_items
from foldline.dialects import get
from foldline.loading import from_messages

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "session.jsonl"
CHAT, ANTHROPIC = "openai-chat", "anthropic"
SMALL = foldline.Window(context=10_000, output=1_000)
PASTED = 4_000  # characters from which on a message is a pasted page, which may lose its middle
SHARE = 0.2  # of the session's size: what a fold of it may take


def example():
    """The messages of the example session, as they stand in the file."""
    rows = [json.loads(line) for line in EXAMPLE.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row.get("role") in ("user", "assistant")]


RULES = (
    "Never touch anything under migrations/ without asking me first.",
    "All public functions must keep type hints and a one-line docstring.",
)


def fold_a_growing_list(pieces, dialect, target, policy="foldline"):
    """Fold the head of a session, then ten times the folded list with the next piece appended.

    A list that fits is folded all the same, to nine tenths of its size.
    """
    messages = []
    for piece in pieces:
        messages = [*messages, *piece]
        size = corpus.size_of(from_messages(messages, OFFLINE, dialect=dialect))
        result = foldline.compact(messages, min(target, size * 9 // 10), policy, dialect=dialect)
        messages = result.messages
        assert get(dialect).validate(messages, result.system) == []
        yield result, messages


async def compact_an_open_session(pieces, dialect, window, url="memory://", policy="foldline"):
    """Append a piece, compact by hand, look at what is sent: eleven times."""
    async with foldline.open(url, "s", window=window, dialect=dialect, policy=policy) as session:
        for piece in pieces:
            await session.append(*piece)
            receipt = await session.compact()
            yield receipt, get(dialect).render(native_items(session.view()), whole=True).messages
        assert len(await session.history()) >= sum(len(piece) for piece in pieces)
        assert await session.verify() == []


# ---- the example, always


@pytest.mark.parametrize("policy", ["foldline", "coop", "gencode", "moldable", "codex", "claude-code"])
def test_the_examples_rules_survive_ten_folds_of_a_growing_list(policy):
    folds = 0
    for result, messages in fold_a_growing_list(chunks(example(), ANTHROPIC), ANTHROPIC, 6_000, policy):
        folds += result.boundary is not None
        assert missing_sentences(messages, ANTHROPIC, RULES) == []
    assert folds == FOLDS + 1
    if not preset(policy).quote_user_tokens:
        assert set(RULES) <= set(constraints_in(checkpoint_summary(messages, ANTHROPIC)))


def test_the_first_request_stands_at_the_head_of_the_tenth_checkpoint():
    *_, (_, messages) = fold_a_growing_list(chunks(example(), ANTHROPIC), ANTHROPIC, 8_000)
    requests = [
        item.text for item in parse(checkpoint_summary(messages, ANTHROPIC)).items if item.kind == "user"
    ]
    assert requests[0].startswith("Hi! This is shelfmark, the holds service of our library consortium")
    assert len(requests) > 3


@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_the_examples_rules_survive_ten_compactions_of_a_session(store, tmp_path):
    url = "memory://" if store == "memory" else f"sqlite:///{tmp_path / 'sessions.db'}"
    folds = 0
    async for receipt, messages in compact_an_open_session(
        chunks(example(), ANTHROPIC), ANTHROPIC, SMALL, url
    ):
        folds += isinstance(receipt, foldline.Receipt)
        assert missing_sentences(messages, ANTHROPIC, RULES) == []
    assert folds >= FOLDS
    assert set(RULES) <= set(constraints_in(checkpoint_summary(messages, ANTHROPIC)))


def test_ten_replaced_values_do_not_come_back_in_a_growing_list():
    pieces = plant_replacements(chunks(example(), ANTHROPIC), ANTHROPIC)
    for at, (result, messages) in enumerate(fold_a_growing_list(pieces, ANTHROPIC, 8_000)):
        check_replaced(messages, ANTHROPIC, replaced=at >= 3, written=result.summary is not None)
    assert {new for _, new, *_ in REPLACED} <= set(constraints_in(checkpoint_summary(messages, ANTHROPIC)))


async def test_ten_replaced_values_do_not_come_back_in_a_session():
    pieces = plant_replacements(chunks(example(), ANTHROPIC), ANTHROPIC)
    at = 0
    async for _, messages in compact_an_open_session(pieces, ANTHROPIC, SMALL):
        check_replaced(messages, ANTHROPIC, replaced=at >= 3)
        at += 1
    assert {new for _, new, *_ in REPLACED} <= set(constraints_in(checkpoint_summary(messages, ANTHROPIC)))


def check_replaced(messages, dialect, *, replaced, written=True):
    """Look at a list after a fold; `written`: the fold wrote the checkpoint anew (a prune does not)."""
    summary = checkpoint_summary(messages, dialect)
    wanted = [(new if replaced else old) for old, new, *_ in REPLACED]
    assert missing_sentences(messages, dialect, wanted) == []
    if replaced and written:
        assert stale_constraints(summary) == []


def test_a_stale_value_is_seen():
    old = "\n".join(f"- {sentence}" for sentence, *_ in REPLACED)
    assert len(stale_constraints(f"## Rules\n<user-rules>\n{old}\n</user-rules>")) == len(REPLACED)


# ---- recorded sessions


def ten_sessions(root):
    """The first two of each source, by the hash of the name."""
    folders = sorted({path.parent for path in corpus.sessions(root)})
    ranked = {
        folder: sorted(
            (path for path in corpus.sessions(root) if path.parent == folder),
            key=lambda path: hashlib.sha256(path.name.encode()).digest(),
        )
        for folder in folders
    }
    return [path for folder in folders for path in ranked[folder][:2]]


def grown(root, number):
    """A recorded session with five rules planted, in eleven pieces; the rules; and a fifth of its size."""
    path = ten_sessions(root)[number]
    rules = STANDING[5 * number : 5 * number + 5]
    messages = plant(corpus.chat_messages(path), rules)
    return chunks(messages, CHAT), rules, int(corpus.size_of(from_messages(messages, OFFLINE)) * SHARE)


SESSIONS = [pytest.param(number, marks=[pytest.mark.corpus] if number % 5 else []) for number in range(10)]


@pytest.mark.parametrize("number", SESSIONS)
def test_planted_rules_survive_ten_folds_of_a_growing_list(recorded, number):
    pieces, rules, target = grown(recorded, number)
    folds = 0
    for result, messages in fold_a_growing_list(pieces, CHAT, target):
        folds += result.boundary is not None
        assert missing_sentences(messages, CHAT, rules) == []
    assert folds == FOLDS + 1
    assert set(rules) <= set(constraints_in(checkpoint_summary(messages, CHAT)))


@pytest.mark.parametrize("place", ["top", "middle", "behind"])
@pytest.mark.parametrize("number", SESSIONS)
def test_what_is_asked_of_every_reply_stands_word_for_word(recorded, number, place):
    """Fifteen constraints of a public set's kinds: among the rules or in the conversation, at 10% and 5%."""
    messages, asked = plant_side_constraints(corpus.chat_messages(ten_sessions(recorded)[number]), place)
    size = corpus.size_of(from_messages(messages, OFFLINE))
    for share in (0.1, 0.05):
        result = foldline.compact(messages, int(size * share))
        said = "\n".join(get(CHAT).decode(one).text for one in result.messages if one["role"] == "user")
        assert [sentence for sentence in asked if sentence not in said] == []


@pytest.mark.parametrize("number", SESSIONS)
async def test_planted_rules_survive_ten_compactions_of_a_session(recorded, number, tmp_path):
    pieces, rules, target = grown(recorded, number)
    window = foldline.Window(context=target + min(16_384, target // 5), output=1_000)
    folds = 0
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    async for receipt, messages in compact_an_open_session(pieces, CHAT, window, url):
        folds += isinstance(receipt, foldline.Receipt)
        assert missing_sentences(messages, CHAT, rules) == []
    assert folds >= FOLDS
    assert set(rules) <= set(constraints_in(checkpoint_summary(messages, CHAT)))


@pytest.mark.parametrize("number", SESSIONS)
def test_ten_replaced_values_do_not_come_back_in_recorded_sessions(recorded, number):
    pieces, _, target = grown(recorded, number)
    pieces = plant_replacements(pieces, CHAT)
    for at, (result, messages) in enumerate(fold_a_growing_list(pieces, CHAT, target)):
        check_replaced(messages, CHAT, replaced=at >= 3, written=result.summary is not None)


@pytest.mark.parametrize("number", SESSIONS[:5])
async def test_ten_compactions_leave_the_users_words_whole(recorded, number):
    """From the first request to the last: what was folded stands in the checkpoint, the rest is kept."""
    large = [path for path in corpus.sessions(recorded) if path.stat().st_size > 90_000]  # 100,000 tokens
    path = large[9 * number]
    window = foldline.Window(context=100_000, output=1_000)
    async with foldline.open("memory://", "s", window=window, dialect=CHAT) as session:
        for piece in chunks(corpus.chat_messages(path), CHAT):
            await session.append(*piece)
            await session.compact()
        log = from_messages(await session.history(), OFFLINE)
        view = session.view()
    kept = {item.entry.message.text for item in view if isinstance(item, MessageItem)}
    text = checkpoint_summary(get(CHAT).render(native_items(view), whole=True).messages, CHAT)
    told = {item.text for item in parse(text).items if item.kind == "user"}
    speech = UserSpeech()
    words = [
        (entry, "\n".join(speech.own(entry)).strip()) for entry in log.entries if isinstance(entry, Said)
    ]
    folded = [said for entry, said in words if said and entry.message.text not in kept]
    assert folded
    assert [said for said in folded if said not in told and len(said) < PASTED] == []
