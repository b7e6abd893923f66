"""Media in forms that the samples have not."""

import pytest

from foldline.core.log.messages import Media
from foldline.dialects.media import from_openai, placeholder, plain_text, to_anthropic, to_openai


@pytest.mark.parametrize("data", ["not base64!", "/w=="])
def test_plain_text_that_cannot_be_read_is_no_text(data):
    media = Media("document", mime="text/plain", data=data)
    assert plain_text(media) is None
    assert to_anthropic(media) is None


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": 5}},
        {"type": "input_audio", "input_audio": "x"},
        {"type": "file", "file": {}},
        {"type": "image_url", "image_url": {"url": 5}},
    ],
)
def test_bad_parts_are_no_media(part):
    assert from_openai(part) is None


def test_what_neither_api_takes():
    assert to_anthropic(Media("image", mime="image/png", data="")) is None
    assert to_anthropic(Media("image")) is None
    assert to_anthropic(Media("document", mime="text/plain", data="")) is None
    assert to_openai(Media("image")) is None
    assert to_openai(Media("audio", mime="audio/ogg", data="AA")) is None
    assert to_openai(Media("audio", mime="audio/mpeg", data="AA"))["input_audio"]["format"] == "mp3"


def test_placeholders_name_what_is_missing():
    assert placeholder(Media("document", mime="application/pdf", name="a.pdf")) == (
        "[document left out: a.pdf, application/pdf]"
    )
    assert placeholder(Media("image")) == "[image left out]"
