"""What was said as HTML: Markdown, code and diffs, and nothing in it that runs, loads or is styled by itself."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest
from tests.service.web.browser import HOSTILE

from foldline.compaction import convert
from foldline.service.api.history import ShownPart
from foldline.service.web.prose import LARGEST, ON_A_LINE, ROWS, begins, code, path_in, prose, rows
from foldline.service.web.shown import called, sent

MODEL = """## Plan

Change `a.py`, **then** run it; see [the docs](https://example.com/a?b=1&c=2).

| file | lines |
| ---- | ----: |
| a.py | 12 |

```python
def rate(days): return min(4 * days, 40)
```
"""


def test_the_models_words_are_read_as_markdown():
    made = prose(MODEL)
    for part in ("<h2>Plan</h2>", "<code>a.py</code>", "<strong>then</strong>", '<td class="n">12</td>'):
        assert part in made
    assert '<a href="https://example.com/a?b=1&amp;c=2" rel="noopener noreferrer nofollow"' in made
    assert '<span class="hl-k">def</span>' in made
    assert "style=" not in made


def test_of_the_users_words_names_and_pastes_stay_as_they_are():
    made = prose("__init__ and *args*\n# a comment\n- one\n- `two`", "user")
    assert "__init__ and *args*<br />" in made
    assert "# a comment" in made
    assert "<li><code>two</code></li>" in made


@pytest.mark.parametrize("who", ["user", "assistant"])
@pytest.mark.parametrize(
    "text",
    [
        HOSTILE,
        f"```html\n{HOSTILE}\n```",
        f"`{HOSTILE}`",
        "[x](javascript:alert(1)) [x](data:text/html;base64,AA) [x](/web/s/one) [x](//evil.example)",
        "![x](https://evil.example/pixel.png)",
        "<https://ok.example/><script>window.ran=1</script>",
        '| a |\n|:-:|\n| <img src="x"> |',
        '```"><script>window.ran=1</script>\nx\n```',
    ],
)
def test_nothing_of_a_text_runs_or_loads(who, text):
    for tag, attributes in tags(prose(text, who)):
        assert tag in ("p", "br", "pre", "code", "span", "a", "table", "thead", "tbody", "tr", "th", "td")
        assert set(attributes) <= {"class", "href", "rel", "target"}
        assert attributes.get("href", "https://").startswith("https://")


def tags(html):
    found = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append((tag, dict(attributes)))
    parser.feed(html)
    assert found
    return found


def test_code_is_coloured_by_its_file_and_keeps_its_line_numbers():
    made = code("    9\tdef rate():\n   10\t    return 4\n", "src/fees.py")
    assert '<span class="no">    9</span> <span class="hl-k">def</span>' in made
    assert '<span class="no">   10</span>' in made
    assert code("<b>1</b>") == "&lt;b&gt;1&lt;/b&gt;"
    assert code("x" * 30_000, "a.py") == "x" * 30_000  # too large to be coloured


def test_a_diff_is_told_apart_by_line():
    made = code("diff --git a/x b/x\n@@ -1 +1 @@\n-old <b>\n+new")
    assert '<span class="hl-gd">-old &lt;b&gt;</span>' in made
    assert '<span class="hl-gi">+new</span>' in made


def test_what_a_call_is_given_is_rows_and_an_edit_is_a_diff():
    given = {"path": "a.py", "old_string": "x = 1\ny = 2", "new_string": "x = 1\ny = 3", "count": [1, 2]}
    found = rows(json.dumps(given))
    assert [row.name for row in found] == ["path", "change", "count"]
    assert '<span class="hl-gd">-y = 2</span>\n<span class="hl-gi">+y = 3</span>' in found[1].html
    assert found[1].long
    assert rows("not JSON") is rows("[1]") is rows("{bad") is None
    assert rows("{}") == []


def test_json_is_rows_in_rows_and_short_values_stay_on_a_line():
    hits = [{"id": 7, "tags": ["a", "b"], "of": "x" * ON_A_LINE}, {"id": 8, "why": None}]
    given = {"hits": hits, "log": "one\ntwo", "none": []}
    hits, log, none = rows(json.dumps(given))
    assert (hits.name, hits.long, log.long, none.text) == ("hits", True, True, "[]")
    first, second = hits.inside
    assert (first.name, second.name) == ("0", "1")
    assert [(row.name, row.text) for row in first.inside[:2]] == [("id", "7"), ("tags", '["a","b"]')]
    assert (second.inside, second.text, second.long) == ((), '{"id":8,"why":null}', False)
    assert [row.text for row in rows('[{"id": 0}, "b"]')] == ['{"id":0}', "b"]


def test_of_json_that_is_large_or_nested_deep_the_rest_is_text():
    many = rows(json.dumps([{"a": number} for number in range(ROWS + 2)]))
    assert (len(many), many[-1].name, many[-1].inside) == (ROWS + 1, "2 more", ())
    assert json.loads(many[-1].text) == [{"a": ROWS}, {"a": ROWS + 1}]
    large = rows(json.dumps({"a": [{"text": "x" * LARGEST}]}))
    assert (large[0].inside, large[0].long) == ((), True)
    deep = rows(json.dumps({"a": {"b": {"c": {"d": {"e": "x" * 100}}}}}))
    while deep[0].inside:
        deep = deep[0].inside
    assert (deep[0].name, json.loads(deep[0].text)) == ("d", {"e": "x" * 100})


def test_a_long_text_is_cut_at_a_line():
    assert begins("short") == 5
    assert begins("a" * 3_000 + "\n" + "b" * 3_000) == 3_001
    assert begins("a" * 9_000) == 4_000


def test_what_turns_the_text_around_it_is_shown_as_a_mark():
    for made in (prose("a\u202eb"), code("a\u202eb"), rows('{"a": "x\u202ey"}')[0].html):
        assert "\u202e" not in made
        assert "\\u202e" in made


@pytest.mark.parametrize(
    "given", ['{"a": "\ud83d"}', *(f'{{"a": {"[" * n + "]" * n}}}' for n in (990, 1_500))]
)
def test_a_call_is_shown_whatever_it_is_given(given):
    call = ShownPart("call", given, "look")
    assert called(call).startswith("look ")
    assert (rows(given), path_in(call)) == (None, "")


def test_of_a_large_edit_both_texts_are_shown_and_not_compared():
    def shown(size):
        return [one.name for one in rows(json.dumps({"old_string": "a" * size, "new_string": "b"}))]

    assert shown(LARGEST) == ["change"]
    assert shown(LARGEST + 1) == ["old_string", "new_string"]


@pytest.mark.parametrize("dialect", ["openai-chat", "anthropic", "bedrock-converse", "gemini"])
def test_each_message_that_is_sent_begins_with_its_words_or_calls_in_every_dialect(dialect):
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a.py"}'}}
    chat = [
        {"role": "user", "content": "Read a.py."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "print(1)"},
        {"role": "assistant", "content": "It prints 1."},
    ]
    native = convert(chat, to=dialect).messages
    starts = [sent(one, dialect).start for one in native]
    assert starts == ["Read a.py.", "read a.py", "print(1)", "It prints 1."]


def test_a_sent_message_of_sealed_thinking_alone_says_so():
    sealed = {"type": "thinking", "thinking": "", "signature": "EqQB"}
    message = {"role": "assistant", "content": [sealed]}
    assert sent(message, "anthropic").start == "(thinking without text)"
