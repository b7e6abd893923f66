"""docs/chat.md names every command, request, event, tool and setting."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import get_args

import msgspec
from tests.agent.working import host_on

from foldline.agent.commands.registry import COMMANDS
from foldline.agent.remote import AnyRequest
from foldline.config import Settings

PAGE = (Path(__file__).parents[2] / "docs/chat.md").read_text(encoding="utf-8")


def test_the_table_of_commands_has_all_of_them():
    listed = PAGE.split("## Commands")[1].split("\n## ")[0]
    wanted = [
        f"`/{one.name}{f' {one.hint}' if one.hint else ''}`".replace("|", r"\|") for one in COMMANDS.values()
    ]
    assert [each for each in wanted if each not in listed] == []


def test_every_request_is_told_of():
    kinds = [kind.__struct_config__.tag for kind in get_args(AnyRequest)]
    assert len(kinds) == 12
    section = PAGE.split("## For another program")[1].split("## Commands")[0]
    assert [kind for kind in kinds if f"`{kind}`" not in section] == []


async def test_every_tool_is_told_of(tmp_path):
    async with host_on(tmp_path) as host:
        names = list(host.agent.tools.tools)
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_the_settings_are_read_as_they_stand():
    block = PAGE.split("```toml\n")[1].split("```")[0]
    found = msgspec.convert(tomllib.loads(block), Settings)
    assert found.compaction.over(found.find_policy("pi")).enabled
    assert set(found.compaction.__struct_encode_fields__) == set(tomllib.loads(block)["compaction"])
