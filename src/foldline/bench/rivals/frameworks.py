"""Agent frameworks: the part of each that shortens a history, called as its agents call it.

Foldline's adapters convert the messages; a view has the messages that the framework sends.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from foldline.bench.rivals.registry import (
    SUMMARY,
    count_tokens,
    module,
    rival,
    run_async,
    scripted_summary,
    temporary_folder,
    use_local_vocabulary,
    with_tool_names,
)
from foldline.bench.system import Fold, Messages, message_texts, size
from foldline.dialects import get
from foldline.dialects.payload import items_of


def _converted(messages: Messages, dialect: str) -> list[Any]:
    """Convert Chat Completions messages to another dialect; messages of an earlier fold are already in it."""
    decoded = [
        get(dialect if _is_bedrock(message) else "openai-chat").decode(message) for message in messages
    ]
    return get(dialect).render([(message, ()) for message in decoded]).messages


def _is_bedrock(message: dict[str, Any]) -> bool:
    """Return whether a message is Bedrock's: its blocks have no type."""
    content = message.get("content")
    return isinstance(content, list) and not any("type" in block for block in items_of(content))


# ---- LangChain and deepagents


def _langchain(fold: Any) -> Fold:
    """Return a fold of Chat Completions messages from one of LangChain's messages."""
    core = module("langchain_core.messages")
    return lambda messages: core.convert_to_openai_messages(fold(core.convert_to_messages(messages)))


def _model() -> Any:
    """Return a chat model that always answers with `SUMMARY`."""
    fake = module("langchain_core.language_models.fake_chat_models")
    model = fake.GenericFakeChatModel(messages=iter(lambda: SUMMARY, None))
    model.profile = {"max_input_tokens": 1_000_000}
    return model


def _sent(middleware: Any, state: dict[str, Any], messages: list[Any]) -> list[Any]:
    """Return the messages that a middleware sends to the model, and update the state."""
    types = module("langchain.agents.middleware.types")
    sent: list[Any] = []

    def handler(request: Any) -> Any:
        sent[:] = request.messages
        return types.ModelResponse(result=[])

    state["messages"] = messages
    result = middleware.wrap_model_call(
        types.ModelRequest(model=getattr(middleware, "model", None), messages=messages, state=state), handler
    )
    state.update(getattr(getattr(result, "command", None), "update", None) or {})
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
    langchain = module("langchain.agents.middleware")
    middleware = langchain.ContextEditingMiddleware(edits=[langchain.ClearToolUsesEdit(trigger=budget)])
    return _langchain(partial(_sent, middleware, {}))


@rival("langchain", replaces=True, writer=True)
def langchain_summarization(budget: int) -> Fold:
    """SummarizationMiddleware(model, trigger=("tokens", budget), keep=("tokens", budget // 2))"""
    middleware = module("langchain.agents.middleware").SummarizationMiddleware(
        _model(), trigger=("tokens", budget), keep=("tokens", budget // 2)
    )

    def fold(messages: list[Any]) -> list[Any]:
        changed = middleware.before_model({"messages": messages}, None)
        return messages if changed is None else changed["messages"][1:]  # the first removes all others

    return _langchain(fold)


@rival("deepagents", writer=True)
def deepagents_summarization(budget: int) -> Fold:
    """SummarizationMiddleware(model, backend=..., trigger=("tokens", budget), keep=("tokens", budget //
    2))"""
    path = temporary_folder()
    backend = module("deepagents.backends").FilesystemBackend(root_dir=path(), virtual_mode=True)
    middleware = module("deepagents.middleware.summarization").SummarizationMiddleware(
        _model(), backend=backend, trigger=("tokens", budget), keep=("tokens", budget // 2)
    )
    state: dict[str, Any] = {"folder": path}  # a reference, so that the folder lives as long as the fold
    return _langchain(partial(_sent, middleware, state))


# ---- pydantic-ai


def _pydantic(capability: Any) -> Fold:
    """Return the fold of a capability; pydantic-ai's OpenAI model converts its messages."""
    pydantic_ai, models = module("pydantic_ai"), module("pydantic_ai.models")
    openai = module("pydantic_ai.models.openai")
    provider = module("pydantic_ai.providers.openai").OpenAIProvider(api_key="none")
    model = openai.OpenAIChatModel("gpt-5.2", provider=provider)
    form = module("foldline.adapters.pydantic_ai").FORM
    parameters = models.ModelRequestParameters()

    async def fold(messages: Messages) -> Any:
        encoded = form.encode(with_tool_names(messages))
        usage = module("pydantic_ai.usage").RunUsage()
        context = pydantic_ai.RunContext(deps=None, model=model, usage=usage, messages=encoded)
        request = models.ModelRequestContext(
            model=model, messages=encoded, model_settings=None, model_request_parameters=parameters
        )
        changed = await capability.before_model_request(context, request)
        return await model._map_messages(changed.messages, parameters)  # noqa: SLF001 - as it sends them

    return lambda messages: run_async(fold(messages))


@rival("pydantic-ai-harness", replaces=True)
def pydantic_ai_sliding_window(budget: int) -> Fold:
    """SlidingWindowCompaction(max_tokens=budget, keep_tokens=budget // 2)"""
    compaction = module("pydantic_ai_harness.compaction")
    return _pydantic(compaction.SlidingWindowCompaction(max_tokens=budget, keep_tokens=budget // 2))


@rival("pydantic-ai-harness", replaces=True)
def pydantic_ai_tiered(budget: int) -> Fold:
    """TieredCompaction(tiers=[ClearToolResults(max_tokens=1), SlidingWindowCompaction(max_tokens=1,
    keep_tokens=budget // 2)], target_tokens=budget)"""
    compaction = module("pydantic_ai_harness.compaction")
    tiers = [
        compaction.ClearToolResults(max_tokens=1),
        compaction.SlidingWindowCompaction(max_tokens=1, keep_tokens=budget // 2),
    ]
    return _pydantic(compaction.TieredCompaction(tiers=tiers, target_tokens=budget))


# ---- OpenAI Agents


@rival("openai-agents", dialect="openai-responses")
def openai_agents_trimmer(budget: int) -> Fold:
    """RunConfig(call_model_input_filter=ToolOutputTrimmer())"""
    del budget  # it takes none
    run = module("agents.run")
    trimmer = module("agents.extensions").ToolOutputTrimmer()

    def fold(messages: Messages) -> list[Any]:
        data = run.ModelInputData(input=_converted(messages, "openai-responses"), instructions=None)
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
        contents = [content.model_validate(message) for message in _converted(messages, "gemini")]
        request = SimpleNamespace(contents=contents)
        run_async(plugin.before_model_callback(callback_context=None, llm_request=request))
        return [kept.model_dump(mode="json", by_alias=True, exclude_none=True) for kept in request.contents]

    return fold


# ---- Microsoft Agent Framework


def _maf(strategy: Any) -> Fold:
    framework = module("agent_framework")
    adapter = module("foldline.adapters.agent_framework")
    form, tokenizer = adapter.FORM, framework.CharacterEstimatorTokenizer()

    def fold(messages: Messages) -> list[Any]:
        encoded = form.encode(messages)
        kept = run_async(framework.apply_compaction(encoded, strategy=strategy, tokenizer=tokenizer))
        return [payload for message in kept for payload in adapter.chat_payloads(message)]

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
    overflow = module("strands.types.exceptions").ContextWindowOverflowException
    manager = module("strands.agent.conversation_manager").SlidingWindowConversationManager(per_turn=True)

    def fold(messages: Messages) -> list[Any]:
        agent = SimpleNamespace(messages=_converted(messages, "bedrock-converse"))
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

    def count(messages: list[Any], tools: Any) -> int:
        del tools
        return sum(count_tokens(_agno(message)) for message in messages)

    use_local_vocabulary()
    kind = module("agno.models.message").Message
    compaction = module("agno.compaction").Compaction(
        compact_at_tokens=budget, uncompacted_tokens=budget // 2, token_counter=count
    )
    compaction._summarize = scripted_summary  # noqa: SLF001 - it would call a model
    records: list[Any] = [None]

    def fold(messages: Messages) -> list[Any]:
        encoded = [kind.model_validate({**message, "id": str(n)}) for n, message in enumerate(messages)]
        view = compaction.apply_record(encoded, records[0]) if records[0] else encoded
        if compaction.should_compact(view):
            records[0] = compaction.compact(encoded, previous=records[0], session_id="bench")
            view = compaction.apply_record(encoded, records[0])
        return [_agno(message) for message in view]

    return fold


def _agno(message: Any) -> dict[str, Any]:
    fields = ("role", "content", "tool_calls", "tool_call_id")
    return {name: value for name in fields if (value := getattr(message, name)) is not None}


# ---- LlamaIndex


@rival("llama-index-core")
def llama_index_memory(budget: int) -> Fold:
    """Memory.from_defaults(session_id="id", token_limit=budget)"""
    adapter = module("foldline.adapters.llama_index")

    def tokenize(text: str) -> list[str]:
        return [text[start : start + 4] for start in range(0, len(text), 4)]

    memory = module("llama_index.core.memory").Memory.from_defaults(
        session_id="bench", token_limit=budget, tokenizer_fn=tokenize
    )
    stored = [0]  # messages

    def fold(messages: Messages) -> list[Any]:
        new = messages[stored[0] :]
        stored[0] = len(messages)
        if new:
            memory.put_messages(adapter.FORM.encode(new))
        return [adapter.chat_payload(message) for message in memory.get()]

    return fold
