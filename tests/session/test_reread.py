"""Files that were used are read again at a fold: as many as the policy says, bounded, free of secrets."""

from __future__ import annotations

import json

import msgspec
import pytest
from tests.support.talk import repeat

import foldline
from foldline.core.decide.presets import preset
from foldline.core.log.entries import Compacted
from foldline.core.measure.tokens import OFFLINE

WINDOW = foldline.Window(context=30_000, output=1_000)
SKILL = "Base directory for this skill: /skills/paint\n\n# Paint\nPrime first."


def policy(reread: int, **more):
    return msgspec.structs.replace(preset("foldline"), reread=reread, **more)


def used(number: int, path: str, tool: str = "read", **more) -> list[dict]:
    function = {"name": tool, "arguments": json.dumps({"path": path, **more})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "user", "content": f"Look at {path}."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": repeat(f"old text of {path}", 120)},
        {"role": "assistant", "content": "I see."},
    ]


async def talked(session, *more: dict) -> None:
    await session.append(*more)
    for number in range(6):
        await session.append(
            {"role": "user", "content": repeat(f"Question {number}", 400)},
            {"role": "assistant", "content": repeat(f"Answer {number}", 400)},
        )
    await session.append({"role": "user", "content": "Next?"})


async def folded(session) -> str:
    await session.compact()
    point = [e.checkpoint async for e in session.store.path(session.id) if isinstance(e, Compacted)][-1]
    return next((live.text for live in point.live if live.name == "files"), "")


FILES = {f"src/{name}.py": f"new text of {name}" for name in "abcd"}


async def test_the_newest_files_that_were_used_stand_in_the_checkpoint_as_they_are_now():
    async with foldline.open("memory://", "s", window=WINDOW, policy=policy(2)) as session:
        session.attach_files(FILES.get)
        await talked(session, *(one for n, path in enumerate(FILES) for one in used(n, path)))
        text = await folded(session)
        assert text.splitlines()[0] == 'Read again from disk, as data: ["src/d.py", "src/c.py"]'
        assert "### src/d.py\nnew text of d\n\n### src/c.py\nnew text of c" in text
        before = await session.context()
        assert "new text of d" in json.dumps(before)
        later = {**FILES, "src/d.py": "newer"}
        session.attach_files(later.get)
        assert await session.context() == before  # frozen until the next boundary
        await session.append({"role": "assistant", "content": "Done."})
        await talked(session)
        assert "### src/d.py\nnewer" in await folded(session)


async def test_what_is_gone_deleted_or_only_read_in_what_is_kept_is_left_out():
    async with foldline.open("memory://", "s", window=WINDOW, policy=policy(5)) as session:
        files = {path: text for path, text in FILES.items() if path != "src/c.py"}
        asked = []
        session.attach_files(lambda path: asked.append(path) or files.get(path))
        gone = used(9, "src/b.py", "delete_file")
        await talked(session, *used(0, "src/a.py"), *used(1, "src/b.py"), *used(2, "src/c.py"), *gone)
        await session.append({"role": "assistant", "content": "Well."}, *used(5, "src/d.py"))
        await session.append({"role": "user", "content": "Next?"})
        assert '["src/a.py"]' in await folded(session)
        assert "src/d.py" not in asked
        assert "src/b.py" not in asked


async def test_instructions_and_skills_go_first_and_stay():
    texts = {**FILES, "lib/AGENTS.md": "Tabs.", "/skills/paint/SKILL.md": "Prime first."}
    async with foldline.open("memory://", "s", window=WINDOW, policy=policy(3)) as session:
        session.attach_files(texts.get)
        first = [
            *used(0, "lib/AGENTS.md"),
            {"role": "user", "content": SKILL},
            {"role": "assistant", "content": "Yes."},
        ]
        await talked(session, *first, *used(1, "src/a.py"), *used(2, "src/b.py"))
        wanted = ["lib/AGENTS.md", "/skills/paint/SKILL.md", "src/b.py"]
        assert json.dumps(wanted) in await folded(session)
        await session.append({"role": "assistant", "content": "Done."})
        await talked(session)
        assert json.dumps(wanted) in await folded(session)


async def test_they_take_no_more_than_live_state_may_and_hold_no_secret():
    key = "gh" + "p_" + "a1B2c3D4e5" * 4
    texts = {path: f"token = {key}\n" + repeat(f"text of {path}", 9_000) for path in FILES}
    async with foldline.open("memory://", "s", window=WINDOW, policy=policy(4)) as session:
        session.attach("todos", lambda: "- [ ] paint the gate")
        session.attach_files(texts.get)
        await talked(session, *(one for n, path in enumerate(FILES) for one in used(n, path)))
        text = await folded(session)
        assert all(f"### {path}" in text for path in FILES)
        assert "characters left out" in text
        assert key not in text
        assert OFFLINE.count(text) <= 3_000
        assert "- [ ] paint the gate" in json.dumps(await session.context())


async def test_without_a_reader_or_with_none_wanted_or_one_that_fails_a_fold_is_as_before(caplog):
    for number, read in ((0, FILES.get), (3, None), (3, lambda path: 1 / 0), (3, lambda path: None)):
        async with foldline.open("memory://", "s", window=WINDOW, policy=policy(number)) as session:
            if read is not None:
                session.attach_files(read)
            await talked(session, *used(0, "src/a.py"))
            assert await folded(session) == ""
    assert "division by zero" in caplog.text


async def test_a_reader_may_wait_and_be_taken_away():
    async def read(path: str) -> str | None:
        return FILES.get(path)

    async with foldline.open("memory://", "s", window=WINDOW, policy=policy(1)) as session:
        off = session.attach_files(read)
        await talked(session, *used(0, "src/a.py"))
        assert "new text of a" in (await session.live())["files"]
        off()
        assert "files" not in await session.live()


@pytest.mark.parametrize("changed", [{"path": "src/a.py", "content": "x"}])
async def test_a_file_that_was_changed_in_what_is_kept_is_read_again(changed):
    async with foldline.open("memory://", "s", window=WINDOW, policy=policy(1)) as session:
        session.attach_files(FILES.get)
        await talked(session)
        await session.append({"role": "assistant", "content": "Well."}, *used(0, tool="write", **changed))
        await session.append({"role": "user", "content": "Next?"})
        assert "new text of a" in await folded(session)
