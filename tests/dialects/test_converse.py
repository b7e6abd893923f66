"""Messages of Bedrock's Converse API: bytes, cache points, documents, replies, and what a view makes of them."""

# pyright: basic

from __future__ import annotations

import copy
import json

from tests.dialects.converse_samples import ALL, POINT, document, image, reasoning, reply, result, use, user

import foldline
from foldline.core.log.entries import Edit
from foldline.core.log.messages import Media, Opaque, Text, Thinking, ToolResult, Usage
from foldline.dialects import decode_all, detect, get
from foldline.dialects.base import decode_reply, reply_dialect

CONVERSE = get("bedrock-converse")
REPLY = {
    "output": {"message": reply({"reasoningContent": {"redactedContent": b"sealed"}}, use("t1"))},
    "stopReason": "tool_use",
    "usage": {
        "inputTokens": 10,
        "outputTokens": 5,
        "totalTokens": 115,
        "cacheReadInputTokens": 80,
        "cacheWriteInputTokens": 20,
    },
    "metrics": {"latencyMs": 7},
}


def rendered(messages, **how):
    return CONVERSE.render([(message, ()) for message in messages], **how)


def test_every_kind_of_block_is_read():
    user, said, results, *_ = decode_all(ALL)
    guarded, picture, file, cited, film = (user.parts[at] for at in (1, 2, 4, 5, 6))
    assert (guarded, picture) == (Text("Never push."), Media("image", "image/png", "iVBORw=="))
    assert (file.mime, file.name, cited.mime, film.url) == (
        "text/plain",
        "notes",
        "text/plain",
        "file-id:s3://bucket/a.mp4",
    )
    assert len(user.parts) == 7  # a cache point is none
    assert said.parts[0] == Thinking("hm", "sig")
    assert isinstance(said.parts[1], Opaque)
    assert (said.text, [call.name for call in said.calls]) == ("As you said.", ["read", "shot"])
    assert [answer.is_error for answer in results.results] == [True, False]
    assert results.results[1].text == '{"size":[1,2]}'
    assert results.text == "T\nweb\nfound\ngo on"


def test_what_was_given_comes_back_bytes_as_bytes_and_base64_as_base64():
    assert detect(ALL) == "bedrock-converse"
    read = decode_all(ALL)
    assert rendered(read).messages == ALL
    assert rendered(read, whole=True).messages == ALL
    raw = [json.loads(message.native.raw) for message in read]
    assert raw[0]["content"][3] == ALL[0]["content"][3]
    assert rendered([CONVERSE.decode(message) for message in ALL]).messages == ALL


async def test_a_session_gives_them_back_and_shares_none():
    async with foldline.open("memory://", "s", window=90_000) as session:
        await session.append(*ALL)
        first = await session.context()
        assert (session.dialect, list(first)) == ("bedrock-converse", ALL)
        first[0]["content"].clear()
        assert list(await session.context()) == ALL


async def test_neighbours_of_one_role_are_one_message_as_it_grows():
    async with foldline.open("memory://", "s", window=90_000) as session:
        steps = [
            [user("a")],
            [reply(" ")],
            [user("b")],
            [reply("c")],
            [reply(use()), user(result())],
            [user("d")],
        ]
        sent = []
        for step in steps:
            await session.append(*step)
            sent = await session.context()
            assert CONVERSE.validate(sent) == []
        answer = result("t1", "[no output]")
        assert list(sent) == [user("a", "b"), reply("c", use()), user(answer, "d")]


def test_plain_text_is_taken_where_the_dialect_is_named():
    done = foldline.compact([{"role": "user", "content": "hi"}], target=4_000, dialect="bedrock-converse")
    assert done.messages == [{"role": "user", "content": "hi"}] or done.messages == [user("hi")]
    assert CONVERSE.validate(done.messages) == []


def test_a_reply_has_usage_and_stop():
    assert reply_dialect(REPLY) == "bedrock-converse"
    message = decode_reply(REPLY, "bedrock-converse")
    assert message.usage == Usage(input=10, cache_read=80, cache_write=20, output=5)
    assert (message.stop, message.calls[0].id) == ("tools", "t1")
    assert rendered([message]).messages == [REPLY["output"]["message"]]


def test_documents_have_a_text_and_a_name_of_their_own_in_a_request():
    lists = [
        user("see", document()),
        reply(use()),
        user(result("t1", document())),
        reply("ok"),
        user(document()),
    ]
    out = rendered(decode_all(lists), whole=True)
    assert CONVERSE.validate(out.messages) == []
    assert out.messages[-1] == user(document("notes-3"), "[See the document.]")
    assert lists[-1] == user(document())


async def test_documents_of_later_turns_have_names_of_their_own():
    async with foldline.open("memory://", "s", window=90_000) as session:
        for turn in range(3):
            await session.append(user("see", document()))
            assert CONVERSE.validate(await session.context()) == []
            await session.append(reply(f"seen {turn}"))


def test_an_edit_leaves_cache_points_and_all_else_as_received():
    said = CONVERSE.decode(user(POINT, result("t1", "long", image(), x=1), "so", POINT))
    edits = [Edit("e", 0, "elided", ToolResult("t1", (Text("short"), said.results[0].content[1])))]
    out = CONVERSE.render([(said, edits)]).messages
    assert out == [user(POINT, result("t1", "short", image(), x=1), "so", POINT)]
    gone = [Edit("e", 0, "elided", None), Edit("e", 1, "elided", None)]
    assert CONVERSE.render([(CONVERSE.decode(user("a", POINT, "b")), gone)]).messages == []
    guarded = CONVERSE.decode(user({"guardContent": {"text": {"text": "a", "qualifiers": ["query"]}}}))
    (new,) = CONVERSE.render([(guarded, [Edit("e", 0, "redacted", Text("b"))])]).messages
    assert new["content"] == [{"guardContent": {"text": {"text": "b", "qualifiers": ["query"]}}}]


def test_a_reply_does_not_end_in_thinking_or_in_a_cache_point_behind_it():
    said = CONVERSE.decode(reply(reasoning(), "long", POINT))
    assert CONVERSE.render([(said, [Edit("e", 1, "elided", None)])]).messages == []
    given = [user("a"), reply(reasoning(), POINT, "b"), user("c")]
    assert rendered(decode_all(given), whole=True).messages[1] == reply(reasoning(), "b")


def test_other_dialects_get_what_they_can_hold():
    chat = foldline.convert(ALL, "openai-chat")
    assert get("openai-chat").validate(chat.messages) == []
    assert "field 'cachePoint' left out (3)" in chat.warnings
    claude = foldline.convert(ALL, "anthropic")
    assert get("anthropic").validate(claude.messages) == []
    back = foldline.convert(claude.messages, "bedrock-converse", system="Be kind.")
    assert CONVERSE.validate(back.messages, back.system) == []
    assert back.system == [{"text": "Be kind."}]
    assert back.messages[0]["content"][2] == image()
    assert back.messages[1]["content"][0] == reasoning()


def test_a_fold_keeps_the_newest_cache_points():
    turns = [one for n in range(8) for one in (user(f"q{n} " + "dry quay " * 60, POINT), reply(f"a{n}"))]
    before = copy.deepcopy(turns)
    for target in (90_000, 800):
        done = foldline.compact(turns, target=target, system=[{"text": "Be kind."}, POINT])
        assert CONVERSE.validate(done.messages, done.system) == []
        assert json.dumps(done.messages).count("cachePoint") == 3 if target > 800 else True
        assert done.system == [{"text": "Be kind."}, POINT]
    assert turns == before
    assert done.summary


def test_tools_of_a_session_are_defined_as_the_api_takes_them():
    from foldline.session.definitions import definitions
    from foldline.session.tools import RECALL_TOOLS

    (first, *_) = definitions("bedrock-converse", RECALL_TOOLS)
    assert first["toolSpec"]["inputSchema"]["json"]["type"] == "object"
