import json

import pytest
from tests.support.secrets import load

from foldline.core.secrets.redact import redact

FILES = {"secrets.toml": 150, "secrets_held_out.toml": 40, "secrets_templates.toml": 40}
AROUND = {
    "alone": lambda text: text,
    "prose": lambda text: f"Here it is, use it for the next step:\n\n{text}\n\nThanks.",
    "listing": lambda text: "\n".join(f"{n:6}\u2192{line}" for n, line in enumerate(text.split("\n"), 40)),
    "grep": lambda text: "\n".join(
        f"config/app.conf:{n}:{line}" for n, line in enumerate(text.split("\n"), 7)
    ),
    "diff": lambda text: "\n".join(f"+{line}" for line in text.split("\n")),
    "JSON": lambda text: json.dumps({"stdout": text, "exit_code": 0}),
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("place", AROUND)
def test_no_piece_of_a_secret_is_left_wherever_it_stands(place, seed, file):
    secrets = load(file, seed)[0]
    left = {
        secret.name: shown
        for secret in secrets
        if (shown := secret.shown_in(redact(AROUND[place](secret.text))))
    }
    assert not left
    assert len(secrets) >= FILES[file]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("place", AROUND)
def test_what_only_looks_like_a_secret_is_left_as_it_is(place, file):
    innocents = load(file)[1]
    assert not [text for text in innocents if redact(AROUND[place](text)) != AROUND[place](text)]
    assert len(innocents) >= FILES[file]
