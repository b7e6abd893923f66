"""A sub-agent beside its parent: what each of them did is its own."""

from __future__ import annotations

from tests.agent.working import host_on

from foldline.core.log.entries import Noted
from foldline.testing import call, calls


async def test_a_file_that_is_read_beside_a_sub_agent_is_not_the_sub_agents(tmp_path):
    def says(asked):
        if asked.messages[-1]["role"] == "tool":
            return "Done."
        if asked.messages[-1]["content"] == "Look for files.":
            return call("find")
        return calls(call("read", path="a.txt"), call("task", goal="Look for files."))

    async with host_on(tmp_path, says) as host:
        (tmp_path / "work/a.txt").write_text("one")
        assert (await host.prompt("Read it, and have someone look.")).text == "Done."
        read = {
            info.id: [entry.data["read"] async for entry in host.store.all(info.id) if is_files(entry)]
            for info in await host.store.sessions()
        }
        assert read.pop(host.session.id) == [["a.txt"]]
        assert list(read.values()) == [[]]


def is_files(entry):
    return isinstance(entry, Noted) and entry.kind == "files"
