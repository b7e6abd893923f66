"""The simulated prompt cache, as both providers document theirs."""

from foldline.core.log.messages import Usage
from foldline.core.measure.tokens import OFFLINE, message_tokens
from foldline.dialects import get
from foldline.providers import Call
from foldline.testing import Answer, Asked, Scripted
from foldline.testing.meter import CACHE_STEP

LONG = "word " * 1_500
MARK = {"cache_control": {"type": "ephemeral"}}


def text(value, **more):
    return {"type": "text", "text": value, **more}


def user(*blocks):
    return {"role": "user", "content": list(blocks)}


def said(value):
    return {"role": "assistant", "content": value}


async def usage(model, dialect, messages, **more):
    body = {"model": "m", "max_tokens": 100, "messages": messages, **more}
    wire = await model.answer(Asked(dialect, body))
    assert wire.status == 200, wire.pieces
    return get(dialect).decode_reply(wire.reply).usage


def tokens(message, dialect="anthropic"):
    return message_tokens(get(dialect).decode(message), OFFLINE)


async def test_anthropic_caches_what_stands_before_a_mark():
    model = Scripted(lambda asked: "ok")
    first = [user(text(LONG, **MARK))]
    one = await usage(model, "anthropic", first)
    assert one == Usage(input=0, cache_write=tokens(first[0]), output=1)
    grown = [user(text(LONG)), said("ok"), user(text("and now?", **MARK))]  # the mark has moved on
    two = await usage(model, "anthropic", grown)
    assert two.cache_read == one.cache_write
    assert two.cache_write == tokens(grown[1]) + tokens(grown[2])
    assert two.input == 0
    unmarked = await usage(model, "anthropic", [user(text(LONG)), said("ok"), user(text("and now?"))])
    assert unmarked == Usage(input=two.cache_read + two.cache_write, output=1)


async def test_a_changed_beginning_reads_nothing_back():
    model = Scripted(lambda asked: "ok")
    await usage(model, "anthropic", [user(text(LONG, **MARK))], system="Be brief.")
    again = await usage(model, "anthropic", [user(text(LONG, **MARK))], system="Be verbose.")
    assert (again.cache_read, again.cache_write > 1_400) == (0, True)


async def test_a_model_reads_no_cache_of_another():
    model = Scripted(lambda asked: "ok")
    for dialect, content in (("anthropic", [text(LONG, **MARK)]), ("openai-chat", LONG)):
        body = {"max_tokens": 100, "messages": [{"role": "user", "content": content}]}
        read: list[int] = []
        for name in ("a", "b", "a"):
            wire = await model.answer(Asked(dialect, {**body, "model": name}))
            read.append(get(dialect).decode_reply(wire.reply).usage.cache_read)
        assert (read[:2], read[2] > 1_400) == ([0, 0], True)


async def test_a_short_prompt_is_not_cached():
    model = Scripted(lambda asked: "ok")
    for _ in range(2):
        assert await usage(model, "anthropic", [user(text("Hello", **MARK))]) == Usage(input=5, output=1)


async def test_openai_caches_by_itself_in_whole_steps():
    model = Scripted(lambda asked: "ok")
    first = [{"role": "user", "content": LONG}]
    one = await usage(model, "openai-chat", first)
    assert (one.cache_read, one.cache_write) == (0, 0)
    two = await usage(model, "openai-chat", [*first, said("ok"), {"role": "user", "content": "and now?"}])
    assert 0 < two.cache_read <= one.input
    assert two.cache_read % CACHE_STEP == 0
    assert one.input - two.cache_read < CACHE_STEP
    other = await usage(model, "openai-chat", [{"role": "user", "content": LONG + "!"}])
    assert other.cache_read == 0


async def test_usage_given_by_the_script_stands():
    given = Usage(input=7, cache_read=11, cache_write=13, output=17)
    for dialect in ("anthropic", "openai-chat"):
        model = Scripted([Answer("ok", usage=given)], dialect=dialect)
        found = await usage(model, dialect, [{"role": "user", "content": "Hello"}])
        if dialect == "openai-chat":  # it has no figure for what was written
            assert found == Usage(input=20, cache_read=11, output=17)
        else:
            assert found == given


async def test_only_the_newest_requests_are_kept_where_that_is_wished():
    model = Scripted(lambda asked: str(asked.index), keep=2)
    for _ in range(5):
        await model.complete(Call([{"role": "user", "content": "Hello"}]))
    assert [asked.index for asked in model.requests] == [3, 4]
