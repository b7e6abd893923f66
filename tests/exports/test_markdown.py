from __future__ import annotations

from tests.exports.moving import export
from tests.exports.sessions import entries, talk


def result(path=None, **wish):
    raw, found = export(entries() if path is None else path, "markdown", **wish)
    return raw.decode(), found


def test_everything_that_was_said_can_be_read():
    text, found = result()

    assert text.startswith(
        "# The parser\n\nsession `here` · model claude-sonnet-4-5 · 2026-01-02 02:46 to 2026-01-02 02:47, UTC\n"
    )
    assert "\n## User · 2026-01-02 02:46\n\nPlease mend the parser. Never touch the lock file.\n" in text
    assert "> *thinking*\n> Where is it?\n" in text
    assert '**call** `read` (toolu_1)\n\n```json\n{\n  "path": "parser.py"\n}\n```\n' in text
    assert "**result** of `read` (toolu_1)\n\n```\ndef parse(): ...\n```\n" in text
    assert "**result failed** of `bash` (toolu_2)" in text
    assert "[image left out: image/png]" in text
    assert found.warnings == ("image left out (2)",)
    assert found.count == 8


def test_results_are_shortened_unless_they_are_asked_for_whole():
    messages = talk()
    messages[2]["content"][0]["content"] = "a" * 2_000 + "MIDDLE" + "z" * 2_000
    short, warned = result(entries(messages))
    whole, quiet = result(entries(messages), cap=None)

    assert "MIDDLE" not in short
    assert "[… 2,006 characters …]" in short
    assert "results shortened (1)" in warned.warnings
    assert "a" * 2_000 + "MIDDLE" + "z" * 2_000 in whole
    assert "results shortened (1)" not in quiet.warnings


def test_a_fence_in_a_result_does_not_end_it():
    messages = talk()
    messages[2]["content"][0]["content"] = "before\n````python\nx\n````\nafter"
    text, _ = result(entries(messages))

    assert "`````\nbefore\n````python\nx\n````\nafter\n`````\n" in text


def test_an_empty_result_says_so():
    messages = talk()
    messages[2]["content"][0]["content"] = ""
    text, _ = result(entries(messages))

    assert "**result** of `read` (toolu_1)\n\n*(nothing)*\n" in text


def test_a_boundary_stands_between_rules_and_the_view_says_that_it_is_one():
    path = entries(fold_at=6, keep_from=4)
    whole, _ = result(path)
    view, _ = result(path, view=True)

    assert (
        "\n---\n\n## Compacted, 54,321 tokens before · 2026-01-02 02:47\n\n```markdown\n<foldline-checkpoint"
        in whole
    )
    assert "Please mend the parser" in whole
    assert "Please mend the parser" not in view
    assert "folded: what the model is sent" in view
