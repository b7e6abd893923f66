"""What other agents state beside their summaries goes into the ledger and through the next fold."""

from __future__ import annotations

import io
import json

import msgspec
import pytest

import foldline
from foldline.catalogue.info import ModelInfo
from foldline.cli.store import opened
from foldline.core.decide.presets import preset
from foldline.core.ledger.facts.kinds import Ledger
from foldline.core.log.entries import Compacted
from foldline.core.measure.tokens import OFFLINE
from foldline.core.measure.window import Window
from foldline.executor import run_sync
from foldline.folding import FoldOptions, fold_once
from foldline.loading import from_records, restore, with_notes
from foldline.transcripts import read

MORE = [
    {"role": role, "content": f"{word} step {number}: {'the words of a long talk about it ' * 40}"}
    for number in range(12)
    for role, word in (("user", "Please do"), ("assistant", "I did"))
]


def summary(number, **told):
    return {
        "id": f"sum-{number}", "type": "compaction", "coveringMessages": [1, 40 * number], "content": f"Part {number}.",
        "generatedAt": "2026-01-18T10:30:00.000Z", "estimatedTokens": 350, **told,
    }  # fmt: skip


def gencode(*summaries, **more):
    shown = [
        {
            "role": "system",
            "content": f"[Earlier conversation - {one['coveringMessages'][1]} messages summarized]\n\n{one['content']}",
        }
        for one in summaries
    ]
    whole = {"metadata": {"id": "s", "title": "T", "fullMessageCount": 120, **more}, "messages": [*shown, *MORE],
             "summaries": list(summaries)}  # fmt: skip
    return json.dumps(whole, indent=2).encode()


def klaude(**details):
    rows = [
        {"type": "UserMessage" if m["role"] == "user" else "AssistantMessage",
         "data": {"role": m["role"], "parts": [{"type": "text", "text": m["content"]}], "created_at": "2026-01-18T10:00:00"}}
        for m in MORE
    ]  # fmt: skip
    fold = {"summary": "So far.", "first_kept_index": 2, "tokens_before": 900, "details": details}
    rows.insert(4, {"type": "CompactionEntry", "data": {**fold, "created_at": "2026-01-18T10:01:00"}})
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def load(raw):
    return from_records(read(io.BytesIO(raw), name="session"), OFFLINE)


def ledgers(entries):
    return [msgspec.convert(entry.ledger, Ledger) for entry in entries if isinstance(entry, Compacted)]


def folded_again(loaded):
    window = Window(context=200_000, output=8_000)
    done = run_sync(fold_once(loaded, FoldOptions(preset("foldline"), ModelInfo("m", window), target=5_000)))
    assert done.boundary is not None
    return done.boundary


TOLD = {
    "keyDecisions": ["JWT with refresh tokens"],
    "filesModified": ["src/auth.ts", "src/login.tsx"],
    "toolsUsed": [{"tool": "Write", "count": 5, "notableUses": ["Modified src/auth.ts"]}],
}


def test_what_gencode_states_is_in_the_ledger_and_survives_the_next_fold():
    loaded = load(gencode(summary(1, **TOLD), summary(2, filesModified=["src/rate.ts"])))
    boundary = folded_again(loaded)

    for facts in (ledgers(loaded.entries)[-1], *ledgers([boundary])):
        assert {"src/auth.ts", "src/login.tsx", "src/rate.ts"} <= {
            f.path for f in facts.files if f.status == "modified"
        }
        assert "Decided: JWT with refresh tokens" in [item.text for item in facts.items]
        assert [(tool.name, tool.uses, tool.notable) for tool in facts.tools] == [
            ("Write", 5, ("Modified src/auth.ts",))
        ]
    assert "login.tsx" in boundary.checkpoint.text
    assert "[Earlier summary] Decided: JWT with refresh tokens" in boundary.checkpoint.text


def test_what_klaude_states_is_in_the_ledger_and_survives_the_next_fold():
    loaded = load(klaude(read_files=["a.py", "b.py"], modified_files=["b.py"]))
    boundary = folded_again(loaded)

    for facts in (*ledgers(loaded.entries), *ledgers([boundary])):
        assert {("a.py", "read"), ("b.py", "modified")} <= {(fact.path, fact.status) for fact in facts.files}
    assert "b.py" in boundary.checkpoint.text


def test_secrets_in_what_a_file_states_are_removed():
    secret = "ghp_" + "a1B2" * 9
    loaded = load(
        gencode(summary(1, keyDecisions=[f"Decided to push with {secret}"], filesModified=[secret]))
    )

    assert secret not in json.dumps(ledgers(loaded.entries), default=msgspec.to_builtins)


@pytest.mark.parametrize(
    "told", [None, 7, "text", {"details": []}, {"details": {"read_files": [1, None, ""]}}]
)
def test_strange_statements_change_nothing(told):
    strange = {"keyDecisions": told, "toolsUsed": [told], "filesModified": {"a": told}}
    plain, odd = load(gencode(summary(1))), load(gencode(summary(1, **strange)))

    assert ledgers(odd.entries) == ledgers(plain.entries)


async def test_messages_that_gencode_no_longer_has_count_in_the_ratio(tmp_path):
    loaded = load(gencode(summary(1, **TOLD), summary(2)))
    log = with_notes(loaded)
    url = f"sqlite:///{tmp_path}/s.db"
    async with opened(url, make=True) as store:
        await restore(store, "work", log, loaded.entries[-1].id)
    async with foldline.open(url, "work", window=200_000) as session:
        stats = await session.stats()

    assert stats.total_messages == 120
    assert stats.compression_ratio == round(stats.active_messages / 120, 4)
    assert stats.active_messages < 30
