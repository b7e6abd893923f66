"""Commands and code that connect agents and frameworks to this service."""

from __future__ import annotations

import re
from importlib.util import find_spec
from typing import Any, Final

import msgspec
from starlette.responses import Response

from foldline.service.web.page_request import PageRequest

USUAL: Final = "http://127.0.0.1:8400"  # the default gateway of `foldline wrap`
AGENTS: Final = (
    ("Claude Code", "claude"),
    ("Codex", "codex"),
    ("OpenCode", "opencode"),
    ("pi", "pi"),
    ("Hermes", "hermes"),
)
_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+")  # needs no quoting in a shell
IN_PLACE: Final = 'use_foldline(agent{and}, session="my-session")'
# a framework, its extra, the name in its module of foldline.adapters, the line; {} is the store
FRAMEWORKS: Final = (
    (
        "LangChain, LangGraph, deepagents",
        "langchain",
        "FoldlineMiddleware",
        "create_agent(model, tools, middleware=[FoldlineMiddleware({})])",
    ),
    ("pydantic-ai", "pydantic-ai", "Foldline", "Agent(model, capabilities=[Foldline({})])"),
    (
        "OpenAI Agents SDK",
        "openai-agents",
        "FoldlineSession",
        's = FoldlineSession("mine"{and})\nRunner.run(agent, text, session=s, run_config=s.run_config())',
    ),
    (
        "Google ADK",
        "adk",
        "FoldlinePlugin",
        'App(name="app", root_agent=agent, plugins=[FoldlinePlugin({})])',
    ),
    (
        "Microsoft Agent Framework",
        "agent-framework",
        "FoldlineChatMiddleware",
        "Agent(client, middleware=[FoldlineChatMiddleware({})])",
    ),
    ("Strands Agents", "strands", "use_foldline", IN_PLACE),
    ("LlamaIndex", "llama-index", "use_foldline", f"{IN_PLACE}  # its memory: WholeMemory()"),
    ("smolagents", "smolagents", "use_foldline", IN_PLACE),
    ("Agno", "agno", "use_foldline", "use_foldline(agent{and})"),
    (
        "AutoGen",
        "autogen",
        "FoldlineContext",
        'c = FoldlineContext({})  # and session=, window=\nAssistantAgent("coder", client, model_context=c)',
    ),
    ("Inspect", "inspect", "FoldlineCompaction", "react(tools=[...], compaction=FoldlineCompaction({}))"),
    ("LiteLLM", "litellm", "FoldlineLogger", "litellm.callbacks = [FoldlineLogger({})]"),
)


class Recipe(msgspec.Struct, frozen=True):
    """How one agent, SDK or framework is connected."""

    name: str
    lines: str


def address_of(request: PageRequest) -> str:
    """Return the address of this service, as the browser knows it."""
    address = f"{request.http.url.scheme}://{request.http.url.netloc}"
    return address if _ADDRESS.fullmatch(address) else USUAL


def agents(url: str) -> list[Recipe]:
    """Return how to connect each agent to the gateway at a URL."""
    gateway = "" if url == USUAL else f" --gateway {url}"
    tools = "" if find_spec("mcp") else " --no-mcp"
    wrapped = [
        Recipe(name, f"foldline wrap {program}{gateway}{tools if program != 'pi' else ''}\n{program}")
        for name, program in AGENTS
    ]
    return [
        *wrapped,
        Recipe("An agent or SDK for OpenAI", f"export OPENAI_BASE_URL={url}/v1"),
        Recipe("An agent or SDK for Anthropic", f"export ANTHROPIC_BASE_URL={url}"),
        Recipe("Google's Gen AI SDK", f'Client(http_options={{"base_url": "{url}"}})'),
    ]


def frameworks(store: str) -> list[Recipe]:
    """Return how to connect each framework; `store` is the URL to name, "" for that of the settings."""
    argument = f'"{store}"' if store else ""
    found: list[Recipe] = []
    for name, extra, imported, line in FRAMEWORKS:
        module = extra.replace("-", "_")
        lines = line.replace("{and}", f", {argument}" if argument else "").replace("{}", argument)
        start = f"pip install 'foldline[{extra}]'\n"
        found.append(Recipe(name, f"{start}from foldline.adapters.{module} import {imported}\n{lines}"))
    return found


def _named_store(request: PageRequest) -> str:
    """Return the store's URL for programs on this machine; "" if their settings have it.

    Clients elsewhere must not learn where the store is.
    """
    own = request.serve.store
    if own is None or own == request.settings.store:
        return ""
    return own if own.startswith("sqlite:") and not request.serve.tokens else "URL of the store"


def recipes(request: PageRequest) -> dict[str, Any]:
    """Return the context of the template `connecting.html`."""
    return {
        "agents": agents(address_of(request)),
        "frameworks": frameworks(_named_store(request)),
        "token": bool(request.serve.tokens),
    }


async def connect_page(request: PageRequest) -> Response:
    """Show how to connect an agent or a framework."""
    return request.page("connect.html", here="connect", **recipes(request))
