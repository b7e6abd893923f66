"""Arguments of calls, searched as strings and as JSON."""

import json

import pytest
from tests.support.secrets import load

from foldline.core.log.messages import ToolCall
from foldline.core.secrets.entries import clean_part

VALUE = "Zx9kfP2q" + "Lm77abcd1"
HELD = {
    "a name and a value": {"key": "DB_PASSWORD", "value": VALUE},
    "a command and its words": {"command": "mysql", "args": ["-uroot", f"-p{VALUE}", "shop"]},
    "a header": {"headers": {"Cookie": f"sessionid={VALUE}"}, "timeout": 1.5},
    "a list": {"password": [VALUE]},
    "a Secret": {"kind": "Secret", "data": {"config": VALUE}},
    "beside quotes": {"note": 'say "hi"\n\\', "name": "API_TOKEN", "value": VALUE},
}


@pytest.mark.parametrize("form", HELD)
def test_arguments_say_no_secret_that_their_json_would_not_say(form):
    found: dict[str, str] = {}
    cleaned = clean_part(ToolCall(id="1", name="run", arguments=HELD[form]), found)

    assert VALUE not in json.dumps(cleaned.arguments)
    assert cleaned.arguments.keys() == HELD[form].keys()
    assert any(VALUE in secret for secret in found)
    again: dict[str, str] = {}
    assert clean_part(cleaned, again) is cleaned
    assert not again


@pytest.mark.parametrize("file", ["secrets.toml", "secrets_held_out.toml"])
def test_arguments_without_a_secret_are_the_same_object(file):
    for text in load(file)[1]:
        call = ToolCall(id="1", name="run", arguments={"path": "src/a.py", "old": text, "new": [text, "x"]})
        assert clean_part(call, {}) is call


def test_arguments_that_are_no_json_are_looked_at_string_by_string():
    call = ToolCall(id="1", name="run", arguments={"at": {1, 2}, "line": f"password={VALUE}"})

    assert clean_part(call, {}).arguments == {"at": {1, 2}, "line": "password=[redacted: password]"}
