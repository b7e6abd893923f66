"""Converse messages against the model of the service that botocore ships, which comes with Strands."""

from __future__ import annotations

import pytest
from tests.dialects.converse_samples import ALL, asked, thought, told

import foldline

pytest.importorskip("botocore")


def test_what_is_made_has_the_shapes_of_the_service() -> None:
    from botocore.session import get_session
    from botocore.validate import ParamValidator

    shape = get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    long = [one for n in range(12) for one in (asked(f"q{n} " + "dry quay " * 60), told(thought(), f"a{n}"))]
    folded = foldline.compact(long, target=900)
    chat = foldline.convert(ALL, "openai-chat").messages
    there = foldline.convert(chat, "bedrock-converse", system="Be kind.")
    for messages, system in ((ALL[:4], None), (folded.messages, None), (there.messages, there.system)):
        beside = {} if system is None else {"system": system}
        report = ParamValidator().validate({"modelId": "m", "messages": messages, **beside}, shape)
        assert not report.has_errors(), report.generate_report()
