"""Quoted lines that tell a reader nothing."""

from __future__ import annotations

import pytest
from tests.support.talk import assistant, log_of, tool, user

from foldline.core.ledger.collect import collect
from foldline.core.ledger.page.page import compose
from foldline.core.ledger.text.sentences import uncoloured
from foldline.core.ledger.worth.noise import is_noise, is_record
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult
from foldline.core.measure.tokens import OFFLINE


@pytest.mark.parametrize(
    ("line", "noise"),
    [
        ("configfile: pyproject.toml", True),
        ("platform linux -- Python 3.11.7, pytest-9.2.0", True),
        ("saved torshamn.md (72 words)", True),
        ("clock = <test_limits.Clock object at 0x7ff2906f5050>", True),
        ("2026-03-02T08:58:01.357 holds-1 shelfmark[811]: DELETE /v1/holds/95734 200 6.3ms", True),
        ("sqlite3.OperationalError", True),
        ("E   AssertionError: assert 9090 == 8080", True),
        ("capsys, client, database, doctest_namespace, monkeypatch", True),
        ("from concurrent.futures import ThreadPoolExecutor", True),
        ('import { readFile } from "node:fs/promises";', True),
        ("-h, --help  show this help message and exit", True),
        ('import React, { useState } from "react"', True),
        ("import os, sys", True),
        ("import numpy as np", True),
        ("import the sessions of last week first", False),
        ("Import customers from crm_export_7.csv", False),
        ("import prices as net prices, retry limit 5", False),
        ("from China import tariffs are 25%", False),
        ("ask the owners for help on them before 12 May", False),
        ("raise BadRequest('card is missing')", False),
        ("Counters stand in `limits.db`, made by the service itself.", False),
        ("created_at: when the hold was placed", False),
    ],
)
def test_is_noise(line, noise):
    assert is_noise(line) is noise


def test_is_record():
    assert is_record('{"case": "COR-31877", "days": 5}')
    assert not is_record("def take(self, name):")


def test_a_record_that_prose_repeats_is_not_quoted_and_one_that_it_does_not_is():
    def entries(said):
        call = ToolCall("c", "file_case", {"about": "the meter"})
        result = ToolResult("c", (Text('{"case": "COR-31877", "sent_to": "the grid company"}'),))
        return [
            Said("a", None, Message("assistant", (call,)), ""),
            Said("r", None, Message("tool", (result,)), ""),
            Said("s", None, Message("assistant", (Text(said),)), ""),
        ]

    told = collect(entries("The correction request is COR-31877.")).excerpts
    assert [excerpt.kind for excerpt in told] == ["said"]
    untold = collect(entries("I filed it.")).excerpts
    assert [excerpt.kind for excerpt in untold] == ["line"]


def test_what_was_met_without_a_reason_has_the_request_as_one():
    shown = ToolResult("c", (Text("retry_limit = 5 attempts before giving up"),))
    entries = [
        Said("u", None, Message("user", (Text("Please mend the nightly importer of bank files."),)), ""),
        Said("a", None, Message("assistant", (ToolCall("c", "read", {"path": "src/bank.py"}),)), ""),
        Said("r", None, Message("tool", (shown,)), ""),
    ]
    quoted = [excerpt for excerpt in collect(entries).excerpts if excerpt.kind == "line"]
    assert [excerpt.note for excerpt in quoted] == ["asked: Please mend the nightly importer of bank files."]


def test_codes_that_colour_a_terminal_are_no_content() -> None:
    coloured = (
        "\x1b[31mE   AssertionError: total_of_holds is 3, not 4\x1b[0m \x1b]8;;file:///a\x07a.py\x1b]8;;\x07"
    )
    assert uncoloured(coloured) == "E   AssertionError: total_of_holds is 3, not 4 a.py"
    assert uncoloured("\x1b7bold\x1b(B\x1b[m\x1b8") == "bold"
    assert uncoloured("no codes [31m at all") == "no codes [31m at all"


def test_a_checkpoint_holds_no_codes_and_no_words_of_local_commands() -> None:
    log = log_of(
        user("<local-command-stdout>Goodbye!</local-command-stdout>"),
        user("Start the extension host and say why it exits."),
        Message("assistant", (ToolCall("c1", "bash", dict(command="npm run host")),)),
        tool(
            "c1",
            "\x1b[90m[main]\x1b[0m Extension host \x1b[1mHostRunner.start\x1b[0m exited with \x1b[31merror: port 53823 is taken\x1b[0m",
        ),
        assistant("HostRunner.start fails because the port is taken."),
    )
    text = compose(collect(log.path()), 1_200, OFFLINE.count).text
    assert "\x1b" not in text
    assert "HostRunner.start" in text
    assert "local-command" not in text


def test_where_a_call_looked_is_no_value() -> None:
    log = log_of(
        user("Look at the queue."),
        Message("assistant", (ToolCall("c1", "read", dict(path="src/queue.py", offset=1240, limit=80)),)),
        tool("c1", "retries = 3"),
        Message(
            "assistant", (ToolCall("c2", "bash", dict(command="curl --port 8443 http://localhost/health")),)
        ),
        tool("c2", "ok"),
    )
    values = {fact.value: fact.name for fact in collect(log.path()).values}
    assert "1240" not in values
    assert values["8443"] == "port"
    log = log_of(
        user("Scale it."),
        Message("assistant", (ToolCall("c1", "bash", {"command": "kubectl scale --count 1250"}),)),
    )
    assert {fact.value: fact.name for fact in collect(log.path()).values} == {"1250": "count"}
