"""One bad request a rule, sent by Anthropic's own SDK: refused with the API's status and words."""

import anthropic
import pytest
from tests.dialects.samples import by_model, result, text, thinking, use
from tests.testing.clients import MODEL, anthropic_client

from foldline.core.log.messages import ToolCall
from foldline.core.measure.overflow import Overflow, overflow
from foldline.core.measure.window import Window
from foldline.testing import Answer, Asked, Scripted, serve
from foldline.testing.apis.anthropic import MIN_THINKING

HI = {"role": "user", "content": "Hello"}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


THINK = {"type": "enabled", "budget_tokens": 2000}
PAIR = [HI, by_model(use("t1"), use("t2"))]
MARK = {"cache_control": {"type": "ephemeral"}}
MARKED = user(*(text("Hello", **MARK) for _ in range(4)))
FIVE = "A maximum of 4 blocks with cache_control may be provided. Found 5."

BAD = {
    "a mark too many, on a tool": (
        {"messages": [MARKED], "tools": [{"name": "read", "input_schema": {"type": "object"}, **MARK}]},
        FIVE,
    ),
    "a mark too many, on the request": ({"messages": [MARKED], "extra_body": MARK}, FIVE),
    "orphaned result": (
        {"messages": [user(result("t9"))]},
        (
            "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t9. "
            "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        ),
    ),
    "calls without results": (
        {"messages": [*PAIR, HI]},
        (
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1, t2. "
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        ),
    ),
    "results behind other blocks": (
        {"messages": [*PAIR, user(text("so"), result("t1"), result("t2"))]},
        (
            "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1, t2. "
            "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        ),
    ),
    "two results of one call": (
        {"messages": [*PAIR, user(result("t1"), result("t2"), result("t1"))]},
        (
            "messages.2.content.2: each tool_use must have a single result. "
            "Found multiple `tool_result` blocks with id: t1"
        ),
    ),
    "an id used twice": (
        {"messages": [HI, by_model(use("t1"), use("t1")), user(result("t1"))]},
        "messages.1.content.1: `tool_use` ids must be unique",
    ),
    "an empty text block": (
        {"messages": [user(text(""))]},
        "messages: text content blocks must be non-empty",
    ),
    "a blank text block": (
        {"messages": [user(text(" \n"))]},
        "messages: text content blocks must contain non-whitespace text",
    ),
    "an empty system block": (
        {"messages": [HI], "system": [text("")]},
        "system: text content blocks must be non-empty",
    ),
    "an empty message": (
        {"messages": [HI, by_model(), HI]},
        "messages.1: all messages must have non-empty content except for the optional final assistant message",
    ),
    "no messages": ({"messages": []}, "messages: at least one message is required"),
    "a system message": (
        {"messages": [{"role": "system", "content": "Be brief."}, HI]},
        (
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.'
        ),
    ),
    "the assistant first": (
        {"messages": [by_model(text("Hi.")), HI]},
        'messages: first message must use the "user" role',
    ),
    "white space at the end of a prefill": (
        {"messages": [HI, by_model(text("So "))]},
        "messages: final assistant content cannot end with trailing whitespace",
    ),
    "a turn that ends in thinking": (
        {"messages": [HI, by_model(text("a"), thinking()), HI]},
        "messages.1: The final block in an assistant message cannot be `thinking`.",
    ),
    "thinking without signature": (
        {"messages": [HI, by_model({"type": "thinking", "thinking": "hm"}, text("a")), HI]},
        "messages.1.content.0.thinking.signature: Field required",
    ),
    "a call id that is none": (
        {"messages": [HI, by_model(use("a b")), user(result("a b"))]},
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    "an error without words": (
        {"messages": [HI, by_model(use("t1")), user(result("t1", "", is_error=True))]},
        "messages.2.content.0.tool_result: content cannot be empty if `is_error` is true",
    ),
    "a budget below the least": (
        {"messages": [HI], "thinking": {"type": "enabled", "budget_tokens": 100}, "max_tokens": 4000},
        f"thinking.enabled.budget_tokens: Input should be greater than or equal to {MIN_THINKING}",
    ),
    "a budget above the cap": (
        {"messages": [HI], "thinking": THINK, "max_tokens": 2000},
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
    ),
    "a tool loop without its thinking": (
        {"messages": [HI, by_model(use("t1")), user(result("t1"))], "thinking": THINK, "max_tokens": 4000},
        (
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
            "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the "
            "lastmost set of `tool_use` and `tool_result` blocks). To avoid this requirement, disable `thinking`."
        ),
    ),
    "a prefill with thinking": (
        {"messages": [HI, by_model(text("So"))], "thinking": THINK, "max_tokens": 4000},
        "This model does not support assistant message prefill. The conversation must end with a user message.",
    ),
    "a signature of somebody else's": (
        {"messages": [HI, by_model(thinking(), text("a")), HI]},
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    "too large a cap": (
        {"messages": [HI], "max_tokens": 9000},
        "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens for scripted",
    ),
    "no room at all": ({"messages": [HI], "max_tokens": 0}, "max_tokens: must be greater than or equal to 1"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_bad_request_is_refused_in_the_words_of_the_api(name):
    fields, words = BAD[name]
    model = Scripted(["never"], window=Window(context=200_000, output=8_192))
    async with serve(model) as url, anthropic_client(url) as client:
        with pytest.raises(anthropic.BadRequestError) as caught:
            await client.messages.create(**{"model": MODEL, "max_tokens": 100, **fields})
        error = caught.value
    assert error.status_code == 400
    assert error.body["type"] == "error"
    assert error.body["error"] == {"type": "invalid_request_error", "message": words}
    assert error.body["request_id"] == error.request_id
    assert model.left == 1
    assert model.requests[0].refused == words


async def test_a_cap_is_required():
    async with serve(Scripted(["never"])) as url, anthropic_client(url) as client:
        with pytest.raises(anthropic.BadRequestError, match="max_tokens: Field required"):
            await client.post("/v1/messages", body={"model": MODEL, "messages": [HI]}, cast_to=object)
        with pytest.raises(anthropic.BadRequestError, match="model: Field required"):
            await client.post("/v1/messages", body={"messages": [HI]}, cast_to=object)
        with pytest.raises(anthropic.BadRequestError, match="messages: Field required"):
            await client.post("/v1/messages", body={"model": MODEL, "max_tokens": 1}, cast_to=object)


async def test_an_unknown_model_is_not_found():
    async with serve(Scripted(["never"], models=["claude-a"])) as url, anthropic_client(url) as client:
        with pytest.raises(anthropic.NotFoundError) as caught:
            await client.messages.create(model="claude-b", max_tokens=10, messages=[HI])
    assert caught.value.body["error"] == {"type": "not_found_error", "message": "model: claude-b"}


async def test_a_wrong_key_and_bad_json_are_refused():
    async with serve(Scripted(["never"]), api_key="right") as url, anthropic_client(url) as client:
        with pytest.raises(anthropic.AuthenticationError) as caught:
            await client.messages.create(model=MODEL, max_tokens=10, messages=[HI])
        assert caught.value.body["error"]["type"] == "authentication_error"
    async with serve(Scripted(["never"])) as url, anthropic_client(url) as client:
        with pytest.raises(anthropic.BadRequestError, match="The request body is not valid JSON"):
            await client.post("/v1/messages", content=b'{"model": ', cast_to=object)
        with pytest.raises(anthropic.NotFoundError):
            await client.post("/v1/nothing", body={}, cast_to=object)


async def test_a_prompt_that_is_too_long_names_both_sizes():
    model = Scripted(["never"], window=Window(context=1_000, output=500))
    long = {"role": "user", "content": "word " * 2_000}
    async with serve(model) as url, anthropic_client(url) as client:
        with pytest.raises(anthropic.BadRequestError) as caught:
            await client.messages.create(model=MODEL, max_tokens=100, messages=[long])
    used = model.requests[0].tokens
    assert caught.value.body["error"]["message"] == f"prompt is too long: {used} tokens > 1000 maximum"
    assert overflow(str(caught.value), 400) == Overflow(limit=1_000, asked=used)


async def test_the_cap_counts_against_the_window():
    model = Scripted(["never", "fits"], window=Window(context=1_000, output=500))
    most = {"role": "user", "content": "word " * 700}
    async with serve(model) as url, anthropic_client(url) as client:
        with pytest.raises(anthropic.BadRequestError) as caught:
            await client.messages.create(model=MODEL, max_tokens=400, messages=[most])
        used = model.requests[0].tokens
        assert caught.value.body["error"]["message"] == (
            f"input length and `max_tokens` exceed context limit: {used} + 400 > 1000, "
            "decrease input length or `max_tokens` and try again"
        )
        assert overflow(str(caught.value), 400) == Overflow(limit=1_000, asked=used, max_tokens=400)
        await client.messages.create(model=MODEL, max_tokens=1_000 - used, messages=[most])


async def test_tools_and_the_system_prompt_count_as_well():
    model = Scripted(["a", "b"])
    tools = [{"name": "read", "description": "Read a file. " * 50, "input_schema": {"type": "object"}}]
    bare = Asked("anthropic", {"model": MODEL, "max_tokens": 9, "messages": [HI]})
    full = Asked("anthropic", bare.body | {"tools": tools, "system": "Be brief. " * 50})
    await model.answer(bare)
    await model.answer(full)
    assert full.tokens > bare.tokens + 200


async def _thought(url):
    """A first reply that thinks and calls a tool, as the next request has to send it."""
    async with anthropic_client(url) as client:
        reply = await client.messages.create(
            model=MODEL, max_tokens=4000, thinking=THINK, system="Be brief.", messages=[HI]
        )
    said = {"role": "assistant", "content": [block.to_dict() for block in reply.content]}
    return said, user(result(reply.content[-1].id))


@pytest.fixture
def thinker():
    step = Answer(calls=(ToolCall("", "read", {"path": "a.py"}),), thinking="I should look.")
    return Scripted([step, "Done.", "Done."])


async def _next(url, messages, **more):
    fields = {"model": MODEL, "max_tokens": 4000, "thinking": THINK, "system": "Be brief.", **more}
    async with anthropic_client(url) as client:
        return await client.messages.create(messages=messages, **fields)


async def test_a_signature_holds_while_what_stands_before_it_is_the_same(thinker):
    async with serve(thinker) as url:
        said, answer = await _thought(url)
        reply = await _next(url, [HI, said, answer])
        assert reply.content[-1].text == "Done."
        marked = user(text("Hello", cache_control={"type": "ephemeral"}))  # a mark is no part of the prompt
        await _next(url, [marked, said, answer])


CHANGED = {
    "another message before": lambda said, answer: [user(text("Hi there")), said, answer],
    "a message taken out": lambda said, answer: [HI, by_model(text("Yes?")), HI, said, answer],
    "edited thinking": lambda said, answer: [HI, _edited(said, thinking="I should not look."), answer],
}


def _edited(said, **fields):
    first, *rest = said["content"]
    return {"role": "assistant", "content": [{**first, **fields}, *rest]}


@pytest.mark.parametrize("name", CHANGED)
async def test_a_signature_is_bound_to_its_prefix_and_its_thinking(name, thinker):
    async with serve(thinker) as url:
        said, answer = await _thought(url)
        messages = CHANGED[name](said, answer)
        n = len(messages) - 2
        with pytest.raises(anthropic.BadRequestError) as caught:
            await _next(url, messages)
        assert caught.value.body["error"]["message"] == (
            f"messages.{n}.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message "
            "cannot be modified. These blocks must remain as they were in the original response."
        )
        later = [*messages, by_model(text("Done.")), HI]
        with pytest.raises(anthropic.BadRequestError) as caught:
            await _next(url, later)
        assert caught.value.body["error"]["message"] == (
            f"messages.{n}.content.0: Invalid `signature` in `thinking` block"
        )


async def test_another_system_prompt_breaks_a_signature_too(thinker):
    async with serve(thinker) as url:
        said, answer = await _thought(url)
        with pytest.raises(anthropic.BadRequestError, match="cannot be modified"):
            await _next(url, [HI, said, answer], system="Be verbose.")


async def test_a_signature_bound_to_its_block_alone_lets_the_prefix_change():
    step = Answer(calls=(ToolCall("", "read", {"path": "a.py"}),), thinking="I should look.")
    model = Scripted([step, "Done.", "Done."], signatures="block")
    async with serve(model) as url:
        said, answer = await _thought(url)
        await _next(url, [user(text("Hi there")), said, answer])
        with pytest.raises(anthropic.BadRequestError, match="cannot be modified"):
            await _next(url, [HI, _edited(said, thinking="Other."), answer])


async def test_signatures_of_another_run_hold(thinker):
    async with serve(thinker) as url:
        said, answer = await _thought(url)
    async with serve(Scripted(["Done."])) as url:
        assert (await _next(url, [HI, said, answer])).content[-1].text == "Done."


async def test_two_messages_of_one_role_are_taken_or_refused_as_the_model_has_it():
    fields = {"model": MODEL, "max_tokens": 9, "messages": [HI, HI]}
    async with serve(Scripted(["a"])) as url, anthropic_client(url) as client:
        await client.messages.create(**fields)
    async with serve(Scripted(["a"], alternation=True)) as url, anthropic_client(url) as client:
        with pytest.raises(anthropic.BadRequestError, match='but found multiple "user" roles in a row'):
            await client.messages.create(**fields)


async def test_a_prefill_is_taken_or_refused_as_the_model_has_it():
    fields = {"model": MODEL, "max_tokens": 9, "messages": [HI, by_model(text("So"))]}
    async with serve(Scripted(["a"])) as url, anthropic_client(url) as client:
        await client.messages.create(**fields)
    async with serve(Scripted(["a"], prefill=False)) as url, anthropic_client(url) as client:
        with pytest.raises(anthropic.BadRequestError, match="does not support assistant message prefill"):
            await client.messages.create(**fields)
