"""The provider's own compaction as a strategy: asked for by the policy, kept in the log, undone like any other."""

from __future__ import annotations

import msgspec
import pytest
from tests.support.talk import assistant, user

import foldline
from foldline import providers
from foldline.core.decide.presets import preset
from foldline.core.measure.window import Amount
from foldline.dialects import get
from foldline.providers import Call, Reply
from foldline.summarizers import OfflineSummarizer
from foldline.testing import Answer, Refusal, Scripted, serve_in_thread

NAMES = {"anthropic": "anthropic:claude-sonnet-4-6", "openai-responses": "openai-responses:gpt-5.2"}
POLICY = msgspec.structs.replace(
    preset("foldline"), provider_compaction=Amount(tokens=50_000), background=False
)
OLD = "The amber lantern hangs in the east tower. "
WINDOW = 200_000


@pytest.fixture(params=NAMES)
def name(request, monkeypatch):
    for key in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(key, "sk-test")
    return NAMES[request.param]


async def asked(session, provider, *, stream):
    """Ask as an agent does, and append what came."""
    messages = await session.context()
    call = Call(messages, session.system, max_tokens=1_000, compact_at=session.compact_at)
    if stream:
        reply = [piece async for piece in provider.stream(call)][-1]
        assert isinstance(reply, Reply)
    else:
        reply = await provider.complete(call)
    await session.append(reply.native)
    return reply


@pytest.mark.parametrize("stream", [False, True])
async def test_the_provider_compacts_and_the_log_keeps_all(name, stream):
    model = Scripted(
        lambda asked: Answer(text=f"Answer {asked.index}.", summary="It hangs in a tower."), window=WINDOW
    )
    heard = []
    with serve_in_thread(model) as url:
        provider = providers.get(name, base_url=url)
        async with foldline.open(
            "memory://", "s", model=name, window=WINDOW, policy=POLICY, dialect=provider.dialect
        ) as session:
            session.on("provider_compacted", heard.append)
            await session.append(user("Hello."), assistant("Hello."), user(OLD * 6_000))
            reply = await asked(session, provider, stream=stream)
            assert "Answer 0." in reply.text
            assert [one.entry for one in heard] == [session.leaf]
            assert session.view_tokens == heard[0].size < 2_000  # not what its usage says
            await session.append({"role": "user", "content": "Where is it?"})
            await asked(session, provider, stream=stream)
            sent = model.requests[-1]
            assert OLD not in str(sent.messages)  # the compaction stands for it
            assert "compaction" in str(sent.messages)
            assert len(heard) == 1
            assert OLD in str(await session.history())
            assert await session.verify() == []

            undone = await session.undo()
            assert undone == heard[0].entry
            view = await session.context()
            assert OLD in str(view)
            assert "compaction" not in str(view)  # else its server would leave out what stands before it
            assert "Answer 0." in str(view)
            assert get(session.dialect).validate(view, session.system) == []
            assert await session.undo() is None
            assert await session.redo() == undone
            assert OLD not in str(await session.context())
        await provider.close()


async def test_an_undone_one_stays_undone_over_a_reopening_and_a_fold(name, tmp_path):
    store = f"sqlite:///{tmp_path / 's.db'}"
    model = Scripted(lambda asked: Answer(text=f"Answer {asked.index}.", summary="A tower."), window=WINDOW)
    given = {"model": name, "window": WINDOW, "policy": POLICY, "summarizer": OfflineSummarizer()}
    with serve_in_thread(model) as url:
        provider = providers.get(name, base_url=url)
        async with foldline.open(store, "s", dialect=provider.dialect, **given) as session:
            await session.append(user("Hello."), assistant("Hello."), user(OLD * 6_000))
            await asked(session, provider, stream=False)
            await session.undo()
        async with foldline.open(store, "s", dialect=provider.dialect, **given) as session:
            assert OLD in str(await session.context())
            await session.append({"role": "user", "content": "Thanks."})
            await session.compact(target=20_000)
            view = await session.context()
            assert "'compaction'" not in str(view)
            assert session.view_tokens < 20_000
            assert await session.undo() is not None
            assert OLD in str(await session.context())
        await provider.close()


async def test_a_server_that_does_not_know_the_field_is_asked_without_it(name):
    def answer(asked):
        if "context_management" in asked.body:
            raise Refusal(400, "context_management: Extra inputs are not permitted")
        return "Fine."

    model = Scripted(answer, window=WINDOW)
    with serve_in_thread(model) as url:
        provider = providers.get(name, base_url=url)
        reply = await provider.complete(
            Call([{"role": "user", "content": "Hi"}], max_tokens=500, compact_at=60_000)
        )
        assert reply.text == "Fine."
        await provider.close()


@pytest.mark.parametrize("dialect", ["anthropic", "openai-responses", "openai-chat"])
async def test_what_the_sdk_is_to_be_given(dialect):
    async with foldline.open("memory://", "s", window=WINDOW, policy=POLICY, dialect=dialect) as session:
        fields = session.compaction_fields
    if dialect == "openai-chat":
        assert fields == {}
    elif dialect == "anthropic":
        edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 50_000}}
        assert fields == {"context_management": {"edits": [edit]}, "betas": ["compact-2026-01-12"]}
    else:
        entry = {"type": "compaction", "compact_threshold": 50_000}
        assert fields == {"context_management": [entry]}
    assert get("anthropic").compaction(49_999) == {}  # the API refuses it


async def test_the_fake_refuses_what_the_api_refuses(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    with serve_in_thread(Scripted(["never"] * 9)) as url:
        import anthropic

        client = anthropic.AsyncAnthropic(base_url=url.removesuffix("/v1"), max_retries=0, timeout=60)
        given = {"model": "scripted", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        small = {"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 9}}]}
        with pytest.raises(anthropic.BadRequestError, match="Extra inputs"):
            await client.messages.create(**given, extra_body={"context_management": small})
        with pytest.raises(anthropic.BadRequestError, match="at least 50000"):
            await client.beta.messages.create(**given, betas=["compact-2026-01-12"], context_management=small)
        clear = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
        known = {**given, "betas": ["context-management-2025-06-27"]}
        assert (await client.beta.messages.create(**known, context_management=clear)).content[
            0
        ].text == "never"
        with pytest.raises(anthropic.BadRequestError, match="unexpected type 'compact_20260112'"):
            await client.beta.messages.create(**known, context_management=small)
        await client.close()
