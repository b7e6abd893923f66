"""Media in forms that the samples have not."""

import pytest

from foldline.core.log.messages import Media
from foldline.dialects import decode_all
from foldline.dialects.gemini.write import to_gemini
from foldline.dialects.media import (
    from_any,
    from_openai,
    from_url,
    placeholder,
    plain_text,
    to_anthropic,
    to_openai,
    to_responses,
)

PNG = Media("image", mime="image/png", data="AAAA")
SOURCE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
URL = "data:image/png;base64,AAAA"


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


@pytest.mark.parametrize("mime", ["image/jpg", "IMAGE/JPEG", "image/jpeg;charset=utf-8", "image/pjpeg"])
def test_a_mime_type_is_read_by_its_usual_name(mime):
    assert from_url("image", f"data:{mime};base64,AAAA").mime == "image/jpeg"
    block = {"type": "image", "source": {"type": "base64", "media_type": mime, "data": "AAAA"}}
    usual = {**block, "source": {**block["source"], "media_type": "image/jpeg"}}
    assert to_anthropic(from_any(block)) == usual
    (message,) = decode_all([{"role": "user", "content": [block]}], "anthropic")
    assert message.parts == (Media("image", mime="image/jpeg", data="AAAA"),)
    assert message.native.mended
    assert b"image/jpeg" in message.native.raw


FORMS = [
    {"type": "image", "source": SOURCE},
    {"type": "image_url", "image_url": {"url": URL}},
    {"type": "input_image", "image_url": URL},
    {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    {"type": "media", "data": "AAAA", "mediaType": "image/png"},
    {"type": "image", "source_type": "base64", "data": "AAAA", "mime_type": "image/png"},
]


def in_result(dialect, block):
    """Return a list in which the result of a tool holds a block."""
    if dialect == "openai-chat":
        call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        asked = {"role": "assistant", "content": None, "tool_calls": [call]}
        return [asked, {"role": "tool", "tool_call_id": "c", "content": [block]}]
    if dialect == "openai-responses":
        asked = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
        return [asked, {"type": "function_call_output", "call_id": "c", "output": [block]}]
    asked = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    told = {"type": "tool_result", "tool_use_id": "c", "content": [block]}
    return [{"role": "assistant", "content": [asked]}, {"role": "user", "content": [told]}]


@pytest.mark.parametrize("block", FORMS)
@pytest.mark.parametrize("dialect", ["anthropic", "openai-responses"])
def test_media_of_any_form_in_a_result_become_the_dialects_own(dialect, block):
    assert decode_all(in_result(dialect, block), dialect)[-1].results[0].content == (PNG,)


@pytest.mark.parametrize("block", [block for block in FORMS if block["type"] != "image_url"])
def test_media_of_any_form_that_only_text_may_replace_are_named(block):
    (result,) = decode_all(in_result("openai-chat", block), "openai-chat")[-1].results
    assert result.text == placeholder(PNG)
    failed = in_result("anthropic", block)
    failed[1]["content"][0]["is_error"] = True
    assert decode_all(failed, "anthropic")[-1].results[0].text == placeholder(PNG)


def test_what_is_no_media_stays_text():
    block = {"type": "file", "path": "a.py", "content": "print()"}
    assert from_any(block) is None
    assert "print()" in decode_all(in_result("anthropic", block), "anthropic")[-1].results[0].text


@pytest.mark.parametrize("url", ["data:image/svg+xml;utf8,<svg/>", "file-id:file_1", "ftp://ex.org/a.png"])
def test_only_what_anybody_can_read_is_linked(url):
    media = Media("image", url=url)
    for write in (to_anthropic, to_openai, to_responses, to_gemini):
        assert write(media) is None


@pytest.mark.parametrize(
    ("url", "mime"),
    [
        ("https://ex.org/a.png?w=1#top", {"mimeType": "image/png"}),
        ("https://ex.org/a.webp", {"mimeType": "image/webp"}),
        ("https://youtu.be/abc", {}),
    ],
)
def test_gemini_is_told_the_type_that_a_url_ends_in(url, mime):
    assert to_gemini(Media("image", url=url)) == {"fileData": {**mime, "fileUri": url}}


def test_placeholders_name_what_is_missing():
    assert placeholder(Media("document", mime="application/pdf", name="a.pdf")) == (
        "[document left out: a.pdf, application/pdf]"
    )
    assert placeholder(Media("image")) == "[image left out]"
