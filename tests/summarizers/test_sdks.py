"""Summaries by models over HTTP, by the official SDKs: named as users name them, in sessions and without."""

import msgspec
import pytest
from tests.summarizers.talking import GOOD, POLICY, RULE, coding_session

import foldline
from foldline import providers
from foldline.providers import Call
from foldline.summarizers import ModelSummarizer
from foldline.testing import Answer, Refusal, Scripted, serve, serve_in_thread

NAMES = {
    "openai-chat": "openai-compatible:scripted@{}/v1",
    "openai-responses": "openai-compatible:scripted@{}/v1",
    "anthropic": "anthropic-compatible:scripted@{}",
}
TARGET = 3_000
WINDOW = foldline.Window(context=30_000, output=4_000)


@pytest.fixture(params=list(NAMES))
def dialect(request):
    return request.param


@pytest.mark.parametrize("kind", ["openai-chat", "anthropic"])
async def test_a_list_is_folded_by_the_model_that_is_named(kind):
    served = Scripted([Refusal(500, "try again", kind="server_error"), GOOD])
    async with serve(served) as url:
        done = await foldline.acompact(coding_session(), TARGET, POLICY, model=NAMES[kind].format(url))
    assert done.receipt.summarizer == NAMES[kind].format(url)
    assert [request.dialect for request in served.requests] == [kind, kind]
    assert done.receipt.usage.output > 100
    assert f"- {RULE}" in done.summary
    assert done.view_tokens <= TARGET


def test_code_that_is_not_async_may_ask_a_model():
    with serve_in_thread(Scripted([GOOD])) as url:
        done = foldline.compact(coding_session(), TARGET, POLICY, model=NAMES["openai-chat"].format(url))
    assert done.receipt.summarizer.startswith("openai-compatible:scripted@")


async def test_inside_a_running_loop_too():
    with serve_in_thread(Scripted([GOOD])) as url:
        done = foldline.compact(coding_session(), TARGET, POLICY, model=NAMES["openai-chat"].format(url))
    assert done.receipt.summarizer.startswith("openai-compatible:scripted@")


async def asked_for_a_summary(dialect, request):
    """Run an agent loop that begins with a request; return what was asked for the summary, and the receipt."""
    said = [Answer(f"Part {number} is read. " + "It looks fine. " * 300) for number in range(6)]
    served = Scripted([*said, GOOD, "Next."], window=WINDOW)
    async with serve(served) as url:
        name = NAMES[dialect].format(url)
        provider = providers.get(name, dialect=dialect)
        async with foldline.open(
            "memory://", "s", model=name, window=WINDOW, policy=POLICY, dialect=dialect
        ) as session:
            await session.append({"role": "user", "content": request})
            for number in range(6):
                if number:
                    await session.append({"role": "user", "content": f"Look at part {number}."})
                reply = await provider.complete(Call(messages=await session.context(), max_tokens=2_000))
                await session.append(reply.native)
            await session.append({"role": "user", "content": "And now?"})
            receipt = await session.compact()
            assert receipt.summarizer == name
            reply = await provider.complete(Call(messages=await session.context(), max_tokens=2_000))
            assert reply.text == "Next."
        await provider.close()
    assert all(asked.refused is None for asked in served.requests)
    return served.requests[6], receipt


async def test_a_session_asks_its_own_model_in_its_own_dialect(dialect):
    """A whole agent loop: replies with usage go in, the summary comes back, and the view is valid for the API."""
    asked, receipt = await asked_for_a_summary(dialect, f"{coding_session()[0]['content']} Begin.")
    assert asked.dialect == dialect
    in_session = len(asked.messages) > 3
    assert in_session == (dialect != "anthropic"), "OpenAI caches by itself; Anthropic only what was marked"
    if in_session:
        assert receipt.usage.cache_read > 3_000
        assert "in-session" in receipt.notes[-1]


async def test_a_session_that_holds_a_secret_is_not_asked_within(dialect):
    """Its messages still say the secret; the model is sent the text without it."""
    secret = "ghp_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2"
    asked, receipt = await asked_for_a_summary(
        dialect, f"{coding_session()[0]['content']} Begin with {secret}."
    )
    assert len(asked.messages) <= 3
    assert secret[4:16] not in str(asked.body)
    assert "[redacted: " in str(asked.body)
    assert not any("in-session" in note for note in receipt.notes)


async def test_anthropics_cache_pays_for_the_summary_where_the_session_marks_it():
    said = [Answer(f"Part {number} is read. " + "It looks fine. " * 300) for number in range(6)]
    served = Scripted([*said, GOOD], window=WINDOW)
    async with serve(served) as url:
        name = NAMES["anthropic"].format(url)
        provider = providers.get(name)
        async with foldline.open("memory://", "s", model=name, window=WINDOW, policy=POLICY) as session:
            for number in range(6):
                await session.append({"role": "user", "content": f"Look at part {number}. {RULE}"})
                messages = await session.context()
                messages[-1]["content"] = [
                    {"type": "text", "text": messages[-1]["content"], "cache_control": {"type": "ephemeral"}}
                ]
                reply = await provider.complete(Call(messages=messages, max_tokens=2_000))
                await session.append(reply.native)
            await session.append({"role": "user", "content": "And now?"})
            receipt = await session.compact()
        await provider.close()
    assert receipt.summarizer == name
    assert receipt.usage.cache_read > 3_000
    assert receipt.usage.input < receipt.usage.cache_read


async def test_another_model_in_mid_session_writes_from_then_on():
    first, second = Scripted([], model="scripted"), Scripted([GOOD])
    async with serve(first) as one, serve(second) as two:
        async with foldline.open(
            "memory://", "s", model=NAMES["openai-chat"].format(one), window=WINDOW, policy=POLICY
        ) as session:
            await session.append(*coding_session())
            await session.use_model(NAMES["openai-chat"].format(two), window=WINDOW)
            receipt = await session.compact(target=TARGET)
    assert receipt.summarizer == NAMES["openai-chat"].format(two)
    assert len(first.requests) == 0


# ---- names


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("anthropic:claude-sonnet-4-6", "no key: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"),
        ("openai:gpt-5.2", "no key: set OPENAI_API_KEY"),
        ("claude-sonnet-4-6", "unknown provider 'claude-sonnet-4-6'"),
    ],
)
async def test_a_model_that_cannot_be_asked_is_no_error_and_the_receipt_says_why(monkeypatch, model, why):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    done = foldline.compact(coding_session(), TARGET, POLICY, model=model)
    assert done.receipt.summarizer == "offline"
    assert any(note.startswith("written without a model: ") and why in note for note in done.receipt.notes)
    async with foldline.open("memory://", "s", model=model, policy=POLICY) as session:
        await session.append(*coding_session())
        receipt = await session.compact(target=TARGET)
    assert receipt.summarizer == "offline"
    assert any(why in note for note in receipt.notes)


async def test_with_no_model_named_nothing_is_noted():
    done = foldline.compact(coding_session(24, result="def login(): return session\n" * 30), TARGET, POLICY)
    assert (done.receipt.summarizer, done.receipt.notes) == ("offline", ())


async def test_a_key_in_the_environment_is_enough_to_ask(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    async with serve(Scripted([GOOD], models=None), api_key="test") as url:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        done = await foldline.acompact(coding_session(), TARGET, POLICY, model="openai:gpt-5.2")
    assert done.receipt.summarizer == "openai:gpt-5.2"
    assert done.receipt.price > 0


async def test_the_policys_model_for_summaries_is_asked(monkeypatch):
    served = Scripted([GOOD, GOOD])
    async with serve(served) as url:
        name = NAMES["openai-chat"].format(url)
        rules = msgspec.structs.replace(POLICY, summary_model=name)
        done = await foldline.acompact(coding_session(), TARGET, rules)
        assert done.receipt.summarizer == name
        monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
        done = await foldline.acompact(coding_session(), TARGET, rules, model="anthropic:claude-sonnet-4-6")
        assert done.receipt.summarizer == name
    assert len(served.requests) == 2


async def test_a_summariser_of_ones_own_stands_for_the_models():
    served = Scripted([GOOD])
    async with foldline.open(
        "memory://",
        "s",
        model="anthropic:claude-sonnet-4-6",
        policy=POLICY,
        summarizer=ModelSummarizer(served),
    ) as session:
        await session.append(*coding_session())
        receipt = await session.compact(target=TARGET)
    assert receipt.summarizer == "scripted:scripted"


async def test_the_receipt_says_whether_it_pays():
    async with foldline.open("memory://", "s", model="anthropic:claude-sonnet-4-6", policy=POLICY) as session:
        await session.append(*coding_session())
        receipt = await session.compact(target=TARGET)
    assert any(note.startswith("pays at once: each request costs $0.") for note in receipt.notes), (
        receipt.notes
    )
