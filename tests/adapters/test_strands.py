"""Strands' messages keep all that Converse can hold, and have the shapes of the service's model in botocore."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.dialects.converse_samples import ALL, POINT, image, reasoning, reply, result, use, user

import foldline
from foldline.dialects import get

pytest.importorskip("strands")


def wrong(messages: Sequence[Any], system: Any = None) -> str:
    """Return what botocore finds wrong in a request."""
    from botocore.session import get_session
    from botocore.validate import ParamValidator

    shape = get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    beside = {} if system is None else {"system": system}
    report = ParamValidator().validate({"modelId": "m", "messages": list(messages), **beside}, shape)
    return report.generate_report()


def test_what_is_made_has_the_shapes_of_the_service() -> None:
    long = [
        one for n in range(12) for one in (user(f"q{n} " + "dry quay " * 60), reply(reasoning(), f"a{n}"))
    ]
    folded = foldline.compact(long, target=900)
    chat = foldline.convert(ALL, "openai-chat").messages
    there = foldline.convert(chat, "bedrock-converse", system="Be kind.")
    assert folded.summary
    for messages, system in ((ALL[:4], None), (folded.messages, None), (there.messages, there.system)):
        assert wrong(messages, system) == ""


def test_images_reasoning_and_cache_points_stay_through_folds(tmp_path: Path) -> None:
    from foldline.adapters.histories import FrameworkHistories
    from foldline.adapters.strands import FORM, requested

    histories = FrameworkHistories(f"sqlite:///{tmp_path}/s.db", FORM, window=12_000)
    said: list[Any] = []
    for n in range(12):
        call = f"call_{n}"
        said += [
            user(f"Look at picture {n}. " + "dry quay " * 200, POINT),
            reply(reasoning(), use(call, "shot")),
            user(result(call, image(bytes([n])), {"json": {"n": n}}, status="success")),
            reply(f"Seen {n}."),
        ]
        view = requested(histories.view("s", said))
        assert get("bedrock-converse").validate(view) == []
        assert wrong(view) == ""
    assert len(view) < len(said)
    assert any(one is said[-2] for one in view)
    assert histories.run("s", lambda history: history.session.stats()).total_messages == len(said)
    histories.close()
