"""Lists of Responses items folded, and kept in sessions: a reply's items stay together."""

import pytest
from tests.dialects.items import DIALECT, RESPONSES, call, long_list, output, reasoning, response, spoke
from tests.dialects.samples import user

import foldline
from foldline.core.cut.legal import legal_cuts
from foldline.core.cut.pairing import pair
from foldline.core.log.entries import Said
from foldline.core.log.log import said
from foldline.dialects import get
from foldline.errors import CallsOpen

ITEMS = get(DIALECT)


def chained(messages) -> list[Said]:
    entries: list[Said] = []
    for each in messages:
        entries.append(said(each, parent=entries[-1].id if entries else None))
    return entries


def test_items_told_one_by_one_are_one_reply():
    items = [
        user("a"),
        reasoning(),
        call("c1"),
        call("c2"),
        output("c2"),
        output("c1"),
        reasoning(),
        spoke("ok"),
        user("b"),
    ]
    singly = [ITEMS.decode(item) for item in items]
    pairing = pair(singly)
    assert [(batch.start, batch.end) for batch in pairing.batches] == [(1, 5)]
    assert pairing.late == []
    assert legal_cuts(chained(singly)) == [1, 6, 8]


async def test_a_session_takes_replies_lists_and_single_items():
    reply = [reasoning(), call("c1"), call("c2")]
    for told in ([response(*reply, usage={"input_tokens": 5})], reply, [reply], None):
        async with foldline.open("memory://", "s") as session:
            await session.append(user("hi"))
            if told is None:
                for item in reply:
                    await session.append(item)
            else:
                await session.append(*told)
            with pytest.raises(CallsOpen):
                await session.context()
            await session.append(output("c1"))
            await session.append(output("c2"))
            assert session.dialect == DIALECT
            sent = await session.context()
            assert sent[1:] == [*reply, output("c1"), output("c2")]
            assert ITEMS.validate(sent) == []


@pytest.mark.parametrize("target", [2_000, 1_000])
def test_a_list_of_items_is_folded(target):
    items = long_list()
    done = foldline.compact(items, target=target)
    assert done.dialect == DIALECT
    assert done.view_tokens <= target
    assert ITEMS.validate(done.messages, done.system) == []
    assert done.messages[0] == items[0]
    kept = items[done.cut["first_kept"] :]
    assert done.messages[-1] == kept[-1]
    assert foldline.compact(done.messages, target=target).messages == done.messages


@pytest.mark.parametrize("policy", ["foldline", "gencode"])
def test_a_list_that_begins_with_a_sealed_compaction_is_folded_again_from_its_checkpoint(policy):
    rule = "Never touch the tide tables without asking me first."
    sealed = {"type": "compaction", "id": "cmp_1", "encrypted_content": "Z0FBQUFBQm8=" * 9}
    items = [user(f"Mend the harbour page. {rule}"), sealed]
    folds = 0
    for turn in range(12):
        items += [spoke(f"Step {turn}. " + "looked at the page " * 40), user(f"And step {turn + 1}?")]
        done = foldline.compact(items, target=900, policy=policy, dialect=DIALECT)
        items, folds = done.messages, folds + (done.summary is not None)
        assert sealed in items
        assert rule in str(items)
    assert folds > 3


def test_a_list_that_fits_comes_back_as_it_is():
    assert foldline.compact(RESPONSES, target=100_000).messages == RESPONSES


def test_an_orphan_is_named_by_its_place_in_the_list():
    items = [user("a"), reasoning(), call("c1"), output("c1"), spoke("ok"), output("c0"), user("b")]
    done = foldline.compact(items, target=100_000)
    assert done.receipt.dropped["orphans"] == [{"index": 5, "call_id": "c0"}]
    assert ITEMS.validate(done.messages) == []


def test_a_prune_blanks_outputs_and_leaves_the_replies_whole():
    items = long_list()
    done = foldline.compact(items, target=4_000)
    assert done.cut is None
    assert len(done.messages) == len(items)
    changed = [old["type"] for old, new in zip(items, done.messages, strict=True) if old != new]
    assert set(changed) == {"function_call_output"}
    assert ITEMS.validate(done.messages) == []


def test_a_call_that_is_repeated_goes_with_its_output():
    asked = {"type": "computer_call", "id": "cu_1", "call_id": "cu", "action": {"type": "screenshot"}}
    asked |= {"pending_safety_checks": [], "status": "completed"}
    shown = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
    answer = {"type": "computer_call_output", "call_id": "cu", "output": shown}
    done = foldline.convert([user("x"), asked, answer, asked, answer, spoke("ok")], DIALECT)
    assert done.messages == [user("x"), asked, answer, spoke("ok")]
    assert ITEMS.validate(done.messages) == []
    assert "outputs of repeated calls left out (1)" in done.warnings
