from __future__ import annotations

import json

import pytest
from tests.support.synthetic import SYNTHETIC
from tests.transcripts.reading import facts, folds, messages_in, records, texts, warnings

from foldline import dialects
from foldline.core.log.messages import Thinking
from foldline.errors import FormatError
from foldline.transcripts import read


def chat(text: str):
    return records(text.encode())


def test_headings_labels_and_quoted_output():
    parsed = list(read(SYNTHETIC / "chat.md"))
    assert facts(parsed, "format") == [{"format": "markdown", "dialect": "openai-chat"}]
    assert facts(parsed, "title") == [{"title": "Why is the build slow?"}]
    assert [told.split(":")[0] for told in texts(parsed)] == [
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert [record.message.injected for record in messages_in(parsed)] == [
        False,
        False,
        True,
        False,
        False,
        False,
    ]
    assert (
        texts(parsed)[2]
        == "user: [Output]\nninja: entering directory build\n[812/812] linking app\n\nreal 4m02s"
    )
    assert texts(parsed)[0].endswith("> ninja: 812 of 812 targets rebuilt")  # the user's own quote
    assert "## User\ntouch config.h" in texts(parsed)[3]
    assert [record.line for record in messages_in(parsed)] == [3, 9, 13, 18, 26, 30]
    payloads = [json.loads(record.message.native.raw) for record in messages_in(parsed)]
    assert dialects.get("openai-chat").validate(payloads) == []
    assert not warnings(parsed)


@pytest.mark.parametrize(
    "text",
    [
        "**User:** a\n\n**Assistant:** b\n",
        "**Human**: a\n**Claude**: b\n",
        "### You:\na\n### ChatGPT:\nb\n",
        "# user\n\na\n\n# assistant\n\nb",
        "__Me:__\na\n---\n__AI:__\nb\n---\n",
    ],
)
def test_speakers_as_people_write_them(text):
    assert texts(chat(text)) == ["user: a", "assistant: b"]


def test_headings_of_another_level_and_names_in_a_sentence_are_text():
    parsed = chat("## User\na\n### User\nis a table\n## Users and groups\n**User** rights\n## Assistant\nb\n")
    assert texts(parsed) == [
        "user: a\n### User\nis a table\n## Users and groups\n**User** rights",
        "assistant: b",
    ]


def test_system_and_tool_sections():
    parsed = chat("## System\nBe brief.\n## User\na\n## Tool output\n42\n## Assistant\nb\n")
    assert texts(parsed) == ["system: Be brief.", "user: a", "user: 42", "assistant: b"]
    assert [record.message.injected for record in messages_in(parsed)] == [False, False, True, False]


OURS = """# Fix it

session `s1` · model m-1 · 2026-01-02 03:04 to 2026-01-02 03:09, UTC

## User · 2026-01-02 03:04

fix a

## Assistant · m-2 · 2026-01-02 03:05

> *thinking*
> Look first.

Looking.

**call** `read` (t1)

```json
{
  "path": "a.py"
}
```

**result failed** of `read` (t1)

````
no such ``` file
````

## Assistant · aborted

Gone.

> a quote

**User:** nobody

---

## Compacted, 1,234 tokens before · 2026-01-02 03:06

```markdown
## Goal
Fix a.
```

---

## Program, in the user's name

<system-reminder>x</system-reminder>

## User (pin, added by the view)

kept
"""


def test_our_own_export_comes_back():
    parsed = chat(OURS)
    assert facts(parsed, "session") == [{"id": "s1"}]
    assert facts(parsed, "model") == [{"model": "m-1"}, {"model": "m-2"}]
    assert texts(parsed) == [
        "user: fix a",
        "assistant: Looking. | call t1",
        "tool: result t1: no such ``` file",
        "assistant: Gone.\n\n> a quote\n\n**User:** nobody",
        "user: <system-reminder>x</system-reminder>",
        "user: kept",
    ]
    call = messages_in(parsed)[1].message
    assert call.calls[0].arguments == {"path": "a.py"}
    assert call.parts[0] == Thinking("Look first.")
    assert (call.model, call.stop) == ("m-2", "tools")
    assert messages_in(parsed)[0].at == 1767323040.0
    assert messages_in(parsed)[2].message.results[0].is_error
    assert messages_in(parsed)[3].message.stop == "aborted"
    assert [record.message.injected for record in messages_in(parsed)[4:]] == [True, True]
    [one] = folds(parsed)
    assert (one.summary, one.tokens_before, one.at) == ("## Goal\nFix a.", 1234, 1767323160.0)


def test_a_fence_that_is_never_closed_is_named():
    parsed = chat("## User\na\n## Assistant\n```\nb\n## User\nc\n")
    assert len(messages_in(parsed)) == 2
    assert [one.line for one in warnings(parsed)] == [4]


@pytest.mark.parametrize("text", ["# Readme\n\n## Users\n\n## User\n\nA user has a name.\n", "hello\n"])
def test_other_texts_are_no_chats(text):
    with pytest.raises(FormatError, match="not a session file"):
        chat(text)
