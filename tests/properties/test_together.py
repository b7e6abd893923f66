"""All that shapes a view by hand, mixed in one live session: it holds together after every step.

What is taken out, chosen ranges, marks, pins, merges, images, compactions by the provider's server, undo and
redo, branches and opening again each have tests of their own; here they meet.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.live import policy_with, session_on
from tests.support.logs import CONSTRAINTS, as_messages, problems, rendered, steps, stored_calls_answered

from foldline.core.cut.exclude import excluded, left_of
from foldline.core.cut.pairing import pair
from foldline.core.log.codec import encode
from foldline.core.log.entries import Compacted, Entry, Pruned, Receipt, Said
from foldline.core.log.log import undone
from foldline.core.measure.window import Window
from foldline.core.view_items import Item, MessageItem
from foldline.errors import CallsOpen, FloorExceeded, InputError, OverflowRemains
from foldline.session.session import Session
from foldline.stores import MemoryStore

APIS = ("openai-chat", "anthropic", "openai-responses")
WORD = re.compile(r"mark\d+x")
SPOKEN = ("user", "assistant", "image", "results", "one result", "late result", "mixed", "half mixed")
KEPT = re.compile(r"<keep>(.*?)</keep>")
places = st.integers(0, 40)
doing = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(1, 8)),
        st.tuples(st.just("say"), st.integers(1, 8)),
        st.tuples(st.just("talk"), st.integers(1, 4)),
        st.tuples(st.just("mark"), places),
        st.tuples(st.just("rule"), st.sampled_from(CONSTRAINTS)),
        st.tuples(st.just("pin"), places),
        st.tuples(st.just("unpin"), places),
        st.tuples(st.just("exclude"), places),
        st.tuples(st.just("exclude"), places),
        st.tuples(st.just("exclude_part"), places),
        st.tuples(st.just("context"), places),
        st.tuples(st.just("compact"), places),
        st.tuples(st.just("target"), st.integers(300, 2_000)),
        st.tuples(st.just("up_to"), places),
        st.tuples(st.just("since"), places),
        st.tuples(st.just("undo"), places),
        st.tuples(st.just("redo"), places),
        st.tuples(st.just("undo_redo"), places),
        st.tuples(st.just("branch"), places),
        st.tuples(st.just("rewind"), places),
        st.tuples(st.just("merge"), places),
        st.tuples(st.just("again"), places),
    ),
    min_size=6,
    max_size=24,
)
policies = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["foldline", "coop", "codex", "claude-code", "gencode"]),
        "images": st.sampled_from([None, 0, 1]),
        "image_bytes": st.sampled_from([None, 8]),
        "reread": st.sampled_from([0, 2]),
        "summary_instructions": st.sampled_from(["", "Name every port."]),
    }
)


def named(place: int, kind: str, value: Any) -> tuple[str, Any]:
    """Put a word into a text that stands nowhere else."""
    if kind not in SPOKEN:
        return kind, value
    word = f"mark{place}x"
    return kind, value.replace(".", f" {word}.", 1) if value in CONSTRAINTS else f"{value} {word}"


def words_in(value: object) -> set[str]:
    return set(WORD.findall(encode(value).decode()))


def timeless(items: list[Item]) -> list[Item]:
    """Return a view without times: a message said again on another branch is the entry of the first time."""
    return [
        replace(one, entry=replace(one.entry, at=None)) if isinstance(one, MessageItem) else one
        for one in items
    ]


def taken_out(path: list[Entry]) -> tuple[list[Said], set[str]]:
    """Return what is left of the messages, and the words that stand in what was taken out alone."""
    out = excluded(path)
    said = [entry for entry in path if isinstance(entry, Said)]
    left = [one for entry in said if (one := left_of(entry, out)) is not None]
    return left, words_in([one.message.parts for one in said]) - words_in([one.message.parts for one in left])


class Driver:
    """A live session that is driven by steps, and looked at after each."""

    def __init__(self, dialect: str, payloads: list[Any], policy: dict[str, Any]) -> None:
        self.dialect, self.payloads = dialect, payloads
        self.policy = policy_with(policy.pop("name"), **policy)
        self.store = MemoryStore()
        self.n = 0
        self.known: set[str] = set()
        self.session = self.opened()

    def opened(self) -> Session:
        session = session_on(
            self.store, policy=self.policy, window=Window(context=4_000, output=500), dialect=self.dialect
        )
        session.attach_files(lambda path: f"the text of {path}")
        return session

    async def path(self) -> list[Entry]:
        return [entry async for entry in self.store.path("s")]

    async def do(self, kind: str, value: Any) -> None:
        await getattr(self, f"do_{kind}")(value)
        await self.session.settled()
        await self.check()

    async def some(self, number: int) -> str:
        """Return the id of a message: mostly one of the path."""
        said = [one.id for one in await self.path() if isinstance(one, Said)]
        return said[number % len(said)] if said else "nothing"

    async def do_say(self, count: int) -> None:
        said, self.payloads = self.payloads[:count], self.payloads[count:]
        await self.session.append(*said)

    async def do_talk(self, count: int) -> None:
        for _ in range(count):
            self.n += 1
            words = "went on with the page of the server " * 25
            talk = [("user", f"question {self.n} mark{1000 + self.n}x"), ("assistant", f"{words}{self.n}")]
            await self.session.append(*as_messages(self.dialect, talk))

    async def do_mark(self, _: int) -> None:
        self.n += 1
        words = f"the port of number {self.n} is {8000 + self.n}"
        text = f"I say this: <keep>{words}</keep> and more mark{1000 + self.n}x"
        await self.session.append(*as_messages(self.dialect, [("user", text), ("assistant", "ok")]))

    async def do_rule(self, rule: str) -> None:
        await self.session.append(*as_messages(self.dialect, [("user", rule), ("assistant", "yes")]))

    async def do_pin(self, number: int) -> None:
        try:
            await self.session.pin(await self.some(number))
        except InputError:
            return

    async def do_unpin(self, number: int) -> None:
        pins = [pin.entry for pin in self.session.pins]
        try:
            await self.session.unpin(pins[number % len(pins)] if pins else await self.some(number))
        except InputError:
            return

    async def do_exclude(self, number: int, part: int | None = None) -> None:
        before, at = self.session.view(), await self.some(number)
        try:
            receipt = await self.session.exclude(at, part)
        except InputError:
            assert self.session.view() == before
            return
        assert receipt.tokens_after == self.session.view_tokens
        assert receipt.notes[-1].startswith("taken out of the context by the user: ")
        await self.undone(before)

    async def do_exclude_part(self, number: int) -> None:
        await self.do_exclude(number, number % 3)

    async def undone(self, before: Any) -> None:
        """Undo the newest boundary, look, redo it, look."""
        after = self.session.view()
        target = await self.session.undo()
        assert target is not None
        assert self.session.view() == before
        assert await self.session.redo() == target
        assert self.session.view() == after

    async def do_context(self, _: int) -> None:
        await self.session.append(*as_messages(self.dialect, [("user", "and now?")]))
        try:
            await self.session.context()
        except (CallsOpen, OverflowRemains, FloorExceeded):
            return

    async def folded(self, **how: Any) -> None:
        before = self.session.view()
        try:
            done = await self.session.compact(**how)
        except (InputError, FloorExceeded):
            assert self.session.view() == before
            return
        if isinstance(done, Receipt):
            assert done.tokens_after == self.session.view_tokens
            path = await self.path()
            made = next(one for one in reversed(path) if isinstance(one, Compacted | Pruned))
            assert not taken_out(path)[1] & words_in(made), "a fold tells of what was taken out"
            await self.undone(before)
        else:
            assert self.session.view() == before

    async def do_compact(self, number: int) -> None:
        await self.folded(instructions="the port" if number % 2 else None)

    async def do_target(self, target: int) -> None:
        await self.folded(target=target)

    async def do_up_to(self, number: int) -> None:
        await self.folded(up_to=await self.some(number))

    async def do_since(self, number: int) -> None:
        await self.folded(since=await self.some(number))

    async def do_undo(self, _: int) -> None:
        await self.session.undo()

    async def do_redo(self, _: int) -> None:
        await self.session.redo()

    async def do_undo_redo(self, _: int) -> None:
        before = self.session.view()
        if (target := await self.session.undo()) is not None:
            assert await self.session.redo() == target
            assert self.session.view() == before

    async def do_branch(self, number: int) -> None:
        path = await self.path()
        if path:
            await self.session.branch(path[-1 - number % len(path)].id, summarize=number % 3 == 0)

    async def do_rewind(self, _: int) -> None:
        try:
            await self.session.rewind()
        except InputError:
            return

    async def do_merge(self, number: int) -> None:
        others = [one.leaf for one in await self.session.branches() if not one.current]
        try:
            await self.session.merge(others[number % len(others)] if others else "nowhere")
        except InputError:
            return

    async def do_again(self, _: int) -> None:
        await self.session.close()
        self.session = self.opened()
        await self.session.stats()

    # ---- what holds after every step

    async def check(self) -> None:
        path, session = await self.path(), self.session
        items = session.view()
        assert not path or await session.verify() == []
        assert session.view_tokens == sum(item.tokens for item in items)
        async with self.opened() as other:
            assert timeless(other.view()) == timeless(items)
            assert other.view_tokens == session.view_tokens
            assert other.pins == session.pins
        self.receipts(path)
        spoken = [entry.message for entry in path if isinstance(entry, Said)]
        if not stored_calls_answered(path) or any(batch.stored for batch in pair(spoken).batches):
            return  # only the provider could answer for a call that it keeps
        for dialect in APIS if items else ():
            assert problems(items, dialect) == []
        told = json.dumps([rendered(items, "anthropic"), rendered(items, "openai-chat")], ensure_ascii=False)
        left, gone = taken_out(path)
        assert not gone & set(WORD.findall(told)), "the view shows what was taken out"
        self.stays(path, left, told)

    def receipts(self, path: list[Entry]) -> None:
        """A new boundary at the end of the path says how large the view is."""
        made = [one for one in path if isinstance(one, Compacted | Pruned) and one.id not in self.known]
        self.known |= {one.id for one in made}
        out = undone(path)
        said = [one.id for one in path if not hasattr(one, "kind")]
        if made and made[-1].id == said[-1] and made[-1].id not in out:
            assert made[-1].receipt.tokens_after == self.session.view_tokens

    def stays(self, path: list[Entry], left: list[Said], told: str) -> None:
        """Pins, marks and rules stand in the view word for word, or a receipt names them."""
        made = [one.receipt for one in path if isinstance(one, Compacted | Pruned)]
        named = [[one.notes, one.constraints.excess if one.constraints else ()] for one in made]
        notes = json.dumps(named, ensure_ascii=False)
        unpinned = {e.target for e in path if getattr(e, "on", True) is False}
        for entry in left:
            if not entry.message.is_prompt or entry.message.role != "user":
                continue
            for words in KEPT.findall(entry.message.text):
                assert words in told or words in notes or entry.id in unpinned, words
            for rule in CONSTRAINTS:
                if entry.message.text == rule:
                    assert rule in told or rule in notes, rule
        whole = {
            one.entry.id for one in self.session.view() if isinstance(one, MessageItem) and not one.edits
        }
        for pin in self.session.pins:
            if pin.entry in whole or pin.text.endswith("(nothing)"):
                continue
            for line in pin.text.replace("[Tool result]: ", "").split("\n"):
                assert json.dumps(line, ensure_ascii=False)[1:-1].strip() in told or pin.entry in notes, pin


@given(dialect=st.sampled_from(APIS), script=steps, doing=doing, policy=policies)
def test_a_session_holds_together_whatever_is_done_to_it(dialect, script, doing, policy):
    script = [step for step in script if step[0] != "same id twice"]
    payloads = as_messages(dialect, [named(place, *step) for place, step in enumerate(script)])

    async def run() -> None:
        driver = Driver(dialect, payloads, dict(policy))
        for kind, value in doing:
            await driver.do(kind, value)
        await driver.session.close()

    asyncio.run(run())
