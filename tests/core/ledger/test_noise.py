"""Quoted lines that tell a reader nothing."""

from __future__ import annotations

import pytest

from foldline.core.ledger.collect import collect
from foldline.core.ledger.noise import is_noise, is_record
from foldline.core.log.entries import Said
from foldline.core.log.messages import Message, Text, ToolCall, ToolResult


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
