"""What a hand-off says whoever writes it: its goal; and that nothing answered is told as open."""

from __future__ import annotations

import pytest
from tests.cli.calling import talk

import foldline
from foldline.core.checkpoint.request import SummaryReply, SummaryRequest
from foldline.core.checkpoint.summary import worded
from foldline.core.ledger.facts.kinds import Item, Ledger
from foldline.core.measure.tokens import OFFLINE
from foldline.core.view_items import AddedItem
from foldline.summarizers.offline import OfflineSummarizer

WINDOW = foldline.Window(context=8_000, output=500)
FIRST = ("Please mend the login page.", "Mended: long names are cut now.", "Now write tests for it.")
THEN = ("I wrote four tests, all pass.", "Which port is it?", "It is 8080.", "Describe that.", "Described.")


def checkpoint(session: foldline.Session) -> str:
    return next(item.message.text for item in session.view() if isinstance(item, AddedItem))


async def test_the_goal_stands_first() -> None:
    async with foldline.open("memory://", "s", window=WINDOW, dialect="openai-chat") as session:
        await session.append(*talk(*FIRST, long=300))
        text = await session.preview_handoff("Write the release notes\nfor 1.15.0")
    assert text.startswith("## State\nHanded over for: Write the release notes for 1.15.0\n")
    assert "[User] Please mend the login page." in text


@pytest.mark.parametrize("tokens", [60, 199, 200, 400, 2_000])
def test_the_goal_takes_its_room_from_the_page(tokens: int) -> None:
    ledger = Ledger(items=(Item("user", "Mend the login page. " * 30, "e1"),))
    request = SummaryRequest("handoff", "", "", (), None, ledger, tokens, goal="Write the notes. " * 40)
    assert OFFLINE.count(OfflineSummarizer().write(request).text) <= tokens


def test_a_goal_without_any_request_is_told_too() -> None:
    request = SummaryRequest("handoff", "", "", (), None, Ledger(), 400, goal="Write the notes")
    assert OfflineSummarizer().write(request).text == "## State\nHanded over for: Write the notes"


async def test_what_waited_at_a_hand_off_and_was_answered_since_is_not_told_as_open() -> None:
    async with foldline.open("memory://", "s", window=WINDOW, dialect="openai-chat") as session:
        await session.append(*talk(*FIRST, long=300))
        async with await session.handoff("Write the tests") as new:
            await new.append(*[{"role": "assistant", "content": THEN[0]}, *talk(*THEN[1:], long=400)])
            assert isinstance(await new.compact(), foldline.Receipt)
            text = checkpoint(new)
    assert "[User] Now write tests for it." in text
    assert "Newest request, being worked on: Now write tests" not in text


class Forgetful:
    """A summarizer that writes the headings asked for, and nothing of the goal."""

    name = "forgetful"

    async def summarize(self, request: SummaryRequest) -> SummaryReply:
        asked = worded(request).prompt.rpartition("</conversation>")[2]
        headings = [line for line in asked.splitlines() if line.startswith("#")]
        return SummaryReply(
            "\n\n".join(f"{line}\n- {line[3:]}: the page was mended." for line in headings), self.name
        )


async def test_a_model_that_leaves_the_goal_out_does_not_lose_it() -> None:
    async with foldline.open(
        "memory://", "s", window=WINDOW, dialect="openai-chat", summarizer=Forgetful()
    ) as session:
        await session.append(*talk(*FIRST, long=300))
        async with await session.handoff("Write the release notes") as new:
            assert "Handed over for: Write the release notes\n" in checkpoint(new)
            await new.append(*talk(*THEN, long=400))
            receipt = await new.compact()
            assert isinstance(receipt, foldline.Receipt)
            assert receipt.summarizer == "forgetful", receipt.notes
            assert "Handed over for: Write the release notes\n" in checkpoint(new)


async def test_a_checkpoint_that_the_user_wrote_keeps_its_goal_in_later_folds() -> None:
    async with foldline.open("memory://", "s", window=WINDOW, dialect="openai-chat") as session:
        await session.append(*talk(*FIRST, long=300))
        async with await session.handoff("Write the release notes", text="The login page is mended.") as new:
            await new.append(*talk(*THEN, long=400))
            assert isinstance(await new.compact(), foldline.Receipt)
            assert "Handed over for: Write the release notes\n" in checkpoint(new)
