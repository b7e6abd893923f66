import json

import pytest
from tests.support.secrets import DISGUISES, disguised, in_disguise, load, load_disguised

from foldline.core.secrets.redact import redact

FILES = {
    "secrets.toml": 150,
    "secrets_held_out.toml": 40,
    "secrets_templates.toml": 40,
    "secrets_held_out_2.toml": 32,
}
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


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("place", AROUND)
def test_no_piece_of_a_secret_is_left_whatever_its_disguise(place, disguise, file):
    secrets = [in_disguise(secret, disguise) for secret in load(file)[0]]
    left = {
        secret.name: shown
        for secret in secrets
        if (shown := secret.shown_in(redact(AROUND[place](secret.text))))
    }
    assert not left


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("place", AROUND)
def test_what_only_looks_like_a_secret_is_left_in_any_disguise(place, disguise, file):
    texts = [AROUND[place](disguised(text, disguise)) for text in load(file)[1]]
    assert not [text for text in texts if redact(text) != text]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("place", AROUND)
def test_a_shape_that_is_cut_or_spelled_otherwise_is_found(place, seed):
    secrets = load_disguised("secrets_held_out_2.toml", seed)
    assert not [one.name for one in secrets if one.shown_in(redact(AROUND[place](one.text)))]
    assert len(secrets) == 8


LISTS = {
    "bullets": lambda texts: "\n".join(f"- {text}" for text in texts),
    "in ticks": lambda texts: "\n".join(f"- `{text}`" for text in texts),
    "in quotes": lambda texts: "\n".join(f'{n}. "{text}"' for n, text in enumerate(texts)),
    "JSON": json.dumps,
    "JSON in JSON": lambda texts: json.dumps(json.dumps(texts)),
    "Python": repr,
    "table": lambda texts: "\n".join(f"| {text} | yes |" for text in texts),
    "pairs": lambda texts: json.dumps([{"name": "one", "value": text} for text in texts]),
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("form", LISTS)
def test_a_list_of_secrets_says_none_of_them_and_a_list_of_others_is_left_as_it_is(form, file):
    secrets, innocents = load(file, seed=3)
    for at in range(0, len(secrets), 5):
        some = secrets[at : at + 5]
        text = redact(LISTS[form]([secret.text for secret in some]))
        assert not {one.name: piece for one in some if (piece := one.shown_in(text))}
    for at in range(0, len(innocents), 4):
        text = LISTS[form](innocents[at : at + 4])
        assert redact(text) == text
