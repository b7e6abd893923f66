"""Images made smaller by Pillow, and folds that do so in every dialect."""

from __future__ import annotations

import base64
import io
import json
import sys

import msgspec
import pytest
from PIL import Image

import foldline
from foldline.core.decide.presets import preset
from foldline.core.log.messages import Media
from foldline.dialects import get
from foldline.images import scaled

POLICY = msgspec.structs.replace(preset("foldline"), images=1, image_size=32)
DIALECTS = ("openai-chat", "anthropic", "openai-responses", "gemini", "bedrock-converse", "ui-message")


def picture(kind: str = "PNG", size: tuple[int, int] = (200, 100), mode: str = "RGB") -> str:
    out = io.BytesIO()
    Image.new(mode, size, 90 if mode == "L" else None).save(out, kind)
    return base64.b64encode(out.getvalue()).decode()


PICTURE = picture()


def opened(media: Media) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(media.data or "")))


@pytest.mark.parametrize(
    ("kind", "mode", "becomes"),
    [
        ("PNG", "RGB", "JPEG"),
        ("PNG", "RGBA", "PNG"),
        ("JPEG", "L", "JPEG"),
        ("GIF", "P", "JPEG"),
        ("WEBP", "RGB", "JPEG"),
    ],
)
def test_the_longer_side_is_made_as_small_as_asked(kind: str, mode: str, becomes: str) -> None:
    small = scaled(Media("image", f"image/{kind.lower()}", picture(kind, mode=mode), name="a"), 50)
    assert (opened(small).size, opened(small).format) == ((50, 25), becomes)
    assert (small.mime, small.name) == (f"image/{becomes.lower()}", "a")


def test_a_small_one_stays_the_same() -> None:
    media = Media("image", "image/png", PICTURE)
    assert scaled(media, 200) is media


@pytest.mark.parametrize(
    "data", ["", "AAAA", "not base64!", base64.b64encode(b"<svg/>").decode(), picture()[:60]]
)
def test_what_cannot_be_read_is_none(data: str) -> None:
    assert scaled(Media("image", "image/png", data), 50) is None


def test_a_picture_of_too_many_pixels_is_not_opened() -> None:
    assert scaled(Media("image", "image/png", picture(size=(20_000, 4_000), mode="1")), 50) is None


def test_without_pillow_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert scaled(Media("image", "image/png", PICTURE), 50) is None


def talk(turns: int) -> list[dict]:
    url = f"data:image/png;base64,{PICTURE}"
    return [
        one
        for turn in range(turns)
        for one in (
            {"role": "user", "content": [
                {"type": "text", "text": f"Look at {turn}."},
                {"type": "image_url", "image_url": {"url": url}},
            ]},
            {"role": "assistant", "content": f"I see {turn}."},
        )
    ]  # fmt: skip


@pytest.mark.parametrize("pillow", [True, False])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_fold_reduces_old_images_in_every_dialect(dialect: str, pillow: bool, monkeypatch) -> None:
    if not pillow:
        monkeypatch.setitem(sys.modules, "PIL", None)
    messages = foldline.convert([*talk(6), {"role": "user", "content": "Next?"}], dialect).messages
    done = foldline.compact(messages, 9_000, POLICY, dialect=dialect)
    sent = json.dumps(done.messages, default=str)
    edits = [edit for edit in done.boundary.edits if edit.kind == "reduced"]
    assert edits
    assert get(dialect).validate(done.messages, done.system) == []
    assert sent.count("[Old image left out") == (0 if pillow else len(edits))
    assert done.receipt.dropped["edits"]["reduced"] == len(edits)
    if pillow:
        assert {max(opened(edit.replacement).size) for edit in edits} == {32}
        assert all(edit.replacement.data in sent for edit in edits) or dialect == "bedrock-converse"


async def test_a_session_reduces_them_at_boundaries_alone_and_undoes_it() -> None:
    window = foldline.Window(context=40_000, output=1_000)
    async with foldline.open("memory://", "s", window=window, policy=POLICY) as session:
        await session.append(*talk(4))
        before = await session.context()
        assert json.dumps(before).count(PICTURE) == 4
        receipt = await session.compact(target=5_000)
        assert receipt.dropped["edits"]["reduced"] >= 1
        after = await session.context()
        assert json.dumps(after).count(PICTURE) == 1
        await session.append(*talk(2))
        assert (await session.context())[: len(after)] == after
        await session.undo()
        assert (await session.context())[: len(before)] == before


async def test_a_request_of_too_many_images_is_folded_as_one_that_did_not_fit() -> None:
    refused = RuntimeError("too many images and documents: 104 + 1 > 100")
    window = foldline.Window(context=1_000_000, output=1_000)
    async with foldline.open("memory://", "s", window=window, policy="claude-code") as session:
        await session.append(*talk(105), {"role": "user", "content": "Next?"})
        assert json.dumps(await session.context()).count(PICTURE) == 105
        assert json.dumps(await session.overflowed(refused)).count(PICTURE) < 100


def test_images_in_results_are_reduced_there() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    content = [{"type": "text", "text": "The page."}, {"type": "image", "source": source}]
    messages = [
        one
        for n in range(6)
        for one in (
            {"role": "user", "content": f"Shoot {n}."},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": f"t{n}", "name": "shoot", "input": {"n": n}}],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": f"t{n}", "content": content}],
            },
            {"role": "assistant", "content": f"I see {n}."},
        )
    ]
    policy = msgspec.structs.replace(POLICY, enable_pruning=False)  # else one blanked result would be enough
    done = foldline.compact(
        [*messages, {"role": "user", "content": "Next?"}], 9_000, policy, dialect="anthropic"
    )
    assert get("anthropic").validate(done.messages, done.system) == []
    small = [edit for edit in done.boundary.edits if edit.kind == "reduced"]
    assert small
    assert all(edit.replacement.content[1].data in json.dumps(done.messages) for edit in small)
