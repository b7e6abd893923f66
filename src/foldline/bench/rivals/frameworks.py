"""Agent frameworks: the part of each that shrinks a history, called as its agents call it.

Messages are converted by the forms of Foldline's adapters; the result is what the framework sends.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from foldline.bench.rivals.registry import (
    NOTE,
    count,
    folder,
    module,
    named,
    note,
    rival,
    wait,
    with_vocabulary,
)
from foldline.bench.system import Fold, Messages, message_texts, size
from foldline.dialects import get
from foldline.dialects.payload import items_of


def _written(messages: Messages, dialect: str) -> list[Any]:
    """Convert Chat Completions messages to another dialect; those of an earlier fold are in it already."""
    said = [(get(dialect if _is_bedrock(one) else "openai-chat").decode(one), ()) for one in messages]
    return get(dialect).render(said).messages


def _is_bedrock(message: dict[str, Any]) -> bool:
    """Return whether a message is Bedrock's: its blocks have no type."""
    content = message.get("content")
    return isinstance(content, list) and not any("type" in one for one in items_of(content))


# ---- LangChain and deepagents


def _langchain(fold: Any) -> Fold:
    """Make a fold of one of LangChain's messages."""
    messages = module("langchain_core.messages")
    return lambda given: messages.convert_to_openai_messages(fold(messages.convert_to_messages(given)))


def _model() -> Any:
    """Return a chat model that always says the same."""
    fake = module("langchain_core.language_models.fake_chat_models")
    model = fake.GenericFakeChatModel(messages=iter(lambda: NOTE, None))
    model.profile = {"max_input_tokens": 1_000_000}
    return model


def _sent(middleware: Any, state: dict[str, Any], messages: list[Any]) -> list[Any]:
    """Return what a middleware sends the model, and update the state."""
    types = module("langchain.agents.middleware.types")
    sent: list[Any] = []

    def handler(request: Any) -> Any:
        sent[:] = request.messages
        return types.ModelResponse(result=[])

    state["messages"] = messages
    done = middleware.wrap_model_call(
        types.ModelRequest(model=getattr(middleware, "model", None), messages=messages, state=state), handler
    )
    command = getattr(done, "command", None)
    state.update(getattr(command, "update", None) or {})
    return sent


@rival("langchain-core")
def langchain_trim(budget: int) -> Fold:
    """trim_messages(messages, max_tokens=budget, strategy="last", start_on="human")"""
    core = module("langchain_core.messages")
    trim = partial(
        core.trim_messages,
        max_tokens=budget,
        token_counter=core.utils.count_tokens_approximately,
        strategy="last",
        start_on="human",
        include_system=True,
    )
    return _langchain(trim)


@rival("langchain")
def langchain_clear_tool_uses(budget: int) -> Fold:
    """ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=budget)])"""
    kind = module("langchain.agents.middleware")
    middleware = kind.ContextEditingMiddleware(edits=[kind.ClearToolUsesEdit(trigger=budget)])
    return _langchain(partial(_sent, middleware, {}))


@rival("langchain", replaces=True, writer=True)
def langchain_summarization(budget: int) -> Fold:
    """SummarizationMiddleware(model, trigger=("tokens", budget), keep=("tokens", budget // 2))"""
    kind = module("langchain.agents.middleware")
    middleware = kind.SummarizationMiddleware(
        _model(), trigger=("tokens", budget), keep=("tokens", budget // 2)
    )

    def fold(messages: list[Any]) -> list[Any]:
        changed = middleware.before_model({"messages": messages}, None)
        return messages if changed is None else changed["messages"][1:]  # the first removes what was

    return _langchain(fold)


@rival("deepagents", writer=True)
def deepagents_summarization(budget: int) -> Fold:
    """SummarizationMiddleware(model, backend=..., trigger=("tokens", budget), keep=("tokens", budget //
    2))"""
    place = folder()
    kind, backends = module("deepagents.middleware.summarization"), module("deepagents.backends")
    middleware = kind.SummarizationMiddleware(
        _model(),
        backend=backends.FilesystemBackend(root_dir=place(), virtual_mode=True),
        trigger=("tokens", budget),
        keep=("tokens", budget // 2),
    )
    state: dict[str, Any] = {"place": place}  # it is there as long as the fold
    return _langchain(partial(_sent, middleware, state))


# ---- pydantic-ai


def _pydantic(capability: Any) -> Fold:
    """Make a fold of a capability; messages are written by pydantic-ai's own OpenAI model."""
    pydantic_ai, models = module("pydantic_ai"), module("pydantic_ai.models")
    openai = module("pydantic_ai.models.openai")
    provider = module("pydantic_ai.providers.openai").OpenAIProvider(api_key="none")
    model = openai.OpenAIChatModel("gpt-5.2", provider=provider)
    form = module("foldline.adapters.pydantic_ai").FORM
    asked = models.ModelRequestParameters()

    async def folded(messages: Messages) -> Any:
        said = form.encode(named(messages))
        usage = module("pydantic_ai.usage").RunUsage()
        context = pydantic_ai.RunContext(deps=None, model=model, usage=usage, messages=said)
        request = models.ModelRequestContext(
            model=model, messages=said, model_settings=None, model_request_parameters=asked
        )
        changed = await capability.before_model_request(context, request)
        return await model._map_messages(changed.messages, asked)  # noqa: SLF001 - what it sends

    return lambda messages: wait(folded(messages))


@rival("pydantic-ai-harness", replaces=True)
def pydantic_ai_sliding_window(budget: int) -> Fold:
    """SlidingWindowCompaction(max_tokens=budget, keep_tokens=budget // 2)"""
    kind = module("pydantic_ai_harness.compaction")
    return _pydantic(kind.SlidingWindowCompaction(max_tokens=budget, keep_tokens=budget // 2))


@rival("pydantic-ai-harness", replaces=True)
def pydantic_ai_tiered(budget: int) -> Fold:
    """TieredCompaction(tiers=[ClearToolResults(max_tokens=1), SlidingWindowCompaction(max_tokens=1,
    keep_tokens=budget // 2)], target_tokens=budget)"""
    kind = module("pydantic_ai_harness.compaction")
    tiers = [
        kind.ClearToolResults(max_tokens=1),
        kind.SlidingWindowCompaction(max_tokens=1, keep_tokens=budget // 2),
    ]
    return _pydantic(kind.TieredCompaction(tiers=tiers, target_tokens=budget))


# ---- OpenAI Agents


@rival("openai-agents", dialect="openai-responses")
def openai_agents_trimmer(budget: int) -> Fold:
    """RunConfig(call_model_input_filter=ToolOutputTrimmer())"""
    del budget  # it takes none
    run = module("agents.run")
    trimmer = module("agents.extensions").ToolOutputTrimmer()

    def fold(messages: Messages) -> list[Any]:
        data = run.ModelInputData(input=_written(messages, "openai-responses"), instructions=None)
        return trimmer(run.CallModelData(model_data=data, agent=None, context=None)).input

    return fold


# ---- Google ADK


@rival("google-adk", dialect="gemini")
def adk_context_filter(budget: int) -> Fold:
    """ContextFilterPlugin(num_invocations_to_keep=5)"""
    del budget  # it takes none
    plugin = module("google.adk.plugins.context_filter_plugin").ContextFilterPlugin(num_invocations_to_keep=5)
    content = module("google.genai.types").Content

    def fold(messages: Messages) -> list[Any]:
        given = [content.model_validate(one) for one in _written(messages, "gemini")]
        request = SimpleNamespace(contents=given)
        wait(plugin.before_model_callback(callback_context=None, llm_request=request))
        return [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in request.contents]

    return fold


# ---- Microsoft Agent Framework


def _maf(strategy: Any) -> Fold:
    framework = module("agent_framework")
    adapter = module("foldline.adapters.agent_framework")
    form, tokenizer = adapter.FORM, framework.CharacterEstimatorTokenizer()

    def fold(messages: Messages) -> list[Any]:
        given = form.encode(messages)
        kept = wait(framework.apply_compaction(given, strategy=strategy, tokenizer=tokenizer))
        return [payload for one in kept for payload in adapter.chat_payloads(one)]

    return fold


@rival("agent-framework-core")
def maf_context_window(budget: int) -> Fold:
    """ContextWindowCompactionStrategy(max_context_window_tokens=budget, max_output_tokens=budget // 10)"""
    framework = module("agent_framework")
    return _maf(
        framework.ContextWindowCompactionStrategy(
            max_context_window_tokens=budget,
            max_output_tokens=budget // 10,
            tokenizer=framework.CharacterEstimatorTokenizer(),
        )
    )


@rival("agent-framework-core")
def maf_truncation(budget: int) -> Fold:
    """TruncationStrategy(max_n=budget, compact_to=budget // 2, tokenizer=...,
    preserve_first_user_group=True)"""
    framework = module("agent_framework")
    return _maf(
        framework.TruncationStrategy(
            max_n=budget,
            compact_to=budget // 2,
            tokenizer=framework.CharacterEstimatorTokenizer(),
            preserve_first_user_group=True,
        )
    )


# ---- Strands


@rival("strands-agents", replaces=True, dialect="bedrock-converse")
def strands_sliding_window(budget: int) -> Fold:
    """SlidingWindowConversationManager(per_turn=True), reduced as after an overflow until it fits"""
    kind = module("strands.agent.conversation_manager").SlidingWindowConversationManager
    overflow = module("strands.types.exceptions").ContextWindowOverflowException
    manager = kind(per_turn=True)

    def fold(messages: Messages) -> list[Any]:
        agent = SimpleNamespace(messages=_written(messages, "bedrock-converse"))
        manager.apply_management(agent)
        while sum(map(size, message_texts(agent.messages))) > budget:
            before = len(agent.messages), message_texts(agent.messages)
            manager.reduce_context(agent, overflow("too large"))
            if (len(agent.messages), message_texts(agent.messages)) == before:
                break
        return agent.messages

    return fold


# ---- Agno


@rival("agno", writer=True)
def agno_compaction(budget: int) -> Fold:
    """Agent(compaction=Compaction(compact_at_tokens=budget, uncompacted_tokens=budget // 2,
    token_counter=...))"""

    def counted(messages: list[Any], tools: Any) -> int:
        del tools
        return sum(count(_agno(one)) for one in messages)

    with_vocabulary()
    kind, message = module("agno.compaction").Compaction, module("agno.models.message").Message
    compaction = kind(compact_at_tokens=budget, uncompacted_tokens=budget // 2, token_counter=counted)
    compaction._summarize = note  # noqa: SLF001 - what a model would write
    records: list[Any] = [None]

    def fold(messages: Messages) -> list[Any]:
        given = [message.model_validate({**one, "id": str(place)}) for place, one in enumerate(messages)]
        view = compaction.apply_record(given, records[0]) if records[0] else given
        if compaction.should_compact(view):
            records[0] = compaction.compact(given, previous=records[0], session_id="bench")
            view = compaction.apply_record(given, records[0])
        return [_agno(one) for one in view]

    return fold


def _agno(message: Any) -> dict[str, Any]:
    fields = ("role", "content", "tool_calls", "tool_call_id")
    return {name: value for name in fields if (value := getattr(message, name)) is not None}


# ---- LlamaIndex


@rival("llama-index-core")
def llama_index_memory(budget: int) -> Fold:
    """Memory.from_defaults(session_id="id", token_limit=budget)"""
    kind = module("llama_index.core.memory").Memory
    adapter = module("foldline.adapters.llama_index")
    form = adapter.FORM

    def tokens(text: str) -> list[str]:
        return [text[at : at + 4] for at in range(0, len(text), 4)]

    memory = kind.from_defaults(session_id="bench", token_limit=budget, tokenizer_fn=tokens)
    taken = [0]

    def fold(messages: Messages) -> list[Any]:
        new = messages[taken[0] :]
        taken[0] = len(messages)
        if new:
            memory.put_messages(form.encode(new))
        return [adapter.chat_payload(one) for one in memory.get()]

    return fold
