"""What only LangChain has: agents inside tools, tools of the middleware, agents without a thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.adapters.drivers import installed

if not installed("langchain"):
    pytest.skip("langchain is not installed: run `make adapters`", allow_module_level=True)

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from foldline.adapters.langchain import FoldlineMiddleware

pytestmark = pytest.mark.slow


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self


def calls(name: str, **arguments: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call_{name}"}])


@pytest.fixture
def middleware(tmp_path: Path):
    made = FoldlineMiddleware(f"sqlite:///{tmp_path}/sessions.db", window=16_000)
    yield made
    made.histories.close()


def test_an_agent_inside_a_tool_has_a_session_of_its_own(middleware: FoldlineMiddleware) -> None:
    inner = create_agent(Scripted(messages=iter([AIMessage("Inner answer.")])), [], middleware=[middleware])

    def delegate(task: str) -> str:
        """Give a task to another agent."""
        return inner.invoke({"messages": [{"role": "user", "content": task}]})["messages"][-1].text

    outer = create_agent(
        Scripted(messages=iter([calls("delegate", task="Count."), AIMessage("Done."), AIMessage("Yes.")])),
        [delegate],
        middleware=[middleware],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "talk"}}
    outer.invoke({"messages": [{"role": "user", "content": "Go."}]}, config)
    outer.invoke({"messages": [{"role": "user", "content": "Sure?"}]}, config)
    sessions = middleware.histories.run("talk", lambda history: history.session.store.sessions())
    found = {one.id: one.messages for one in sessions}
    assert found.pop("talk") == 5  # but for the last answer
    assert list(found.values()) == [1]
    branches = middleware.histories.run("talk", lambda history: history.session.branches())
    assert len(branches) == 1


def test_the_agent_finds_what_was_folded_away(middleware: FoldlineMiddleware) -> None:
    agent = create_agent(
        Scripted(
            messages=iter([AIMessage("Noted."), calls("recall_search", query="XK-42"), AIMessage("Yes.")])
        ),
        [],
        middleware=[middleware],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": "talk"}}
    agent.invoke({"messages": [{"role": "user", "content": "The order is XK-42."}]}, config)
    out = agent.invoke({"messages": [{"role": "user", "content": "Which order?"}]}, config)
    assert "The order is XK-42." in out["messages"][-2].text


def test_without_a_thread_each_run_is_a_session(middleware: FoldlineMiddleware) -> None:
    agent = create_agent(
        Scripted(messages=iter([AIMessage("One."), AIMessage("Two.")])), [], middleware=[middleware]
    )
    agent.invoke({"messages": [{"role": "user", "content": "First."}]})
    agent.invoke({"messages": [{"role": "user", "content": "Second."}]})
    sessions = middleware.histories.run("x", lambda history: history.session.store.sessions())
    assert [one.messages for one in sessions] == [1, 1]


def test_an_agent_that_is_a_node_of_a_graph_goes_on_with_its_session(middleware: FoldlineMiddleware) -> None:
    answers = [AIMessage(f"Answer {turn}.") for turn in range(3)]
    agent = create_agent(Scripted(messages=iter(answers)), [], middleware=[middleware])
    builder = StateGraph(MessagesState)
    builder.add_node("coder", agent)
    builder.add_edge(START, "coder")
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "talk"}}
    for turn in range(3):
        graph.invoke({"messages": [{"role": "user", "content": f"Question {turn}."}]}, config)
    sessions = middleware.histories.run("talk-coder", lambda history: history.session.store.sessions())
    assert {one.id: one.messages for one in sessions} == {"talk-coder": 5}


def test_without_a_thread_the_agent_looks_into_its_own_past(middleware: FoldlineMiddleware) -> None:
    agent = create_agent(
        Scripted(messages=iter([calls("recall_search", query="XK-42"), AIMessage("Yes.")])),
        [],
        middleware=[middleware],
    )
    out = agent.invoke({"messages": [{"role": "user", "content": "The order is XK-42. Look it up."}]})
    assert "The order is XK-42." in out["messages"][-2].text


def test_a_node_that_calls_its_model_itself_sends_the_view(middleware: FoldlineMiddleware) -> None:
    model = Scripted(messages=iter([AIMessage("Noted."), calls("recall_search", query="XK-42")]))
    sent: list[int] = []

    def ask(state: MessagesState, config: RunnableConfig) -> Any:
        view = middleware.histories.view(config["configurable"]["thread_id"], state["messages"])
        sent.append(len(view))
        return {"messages": [model.invoke(view)]}

    builder = StateGraph(MessagesState)
    builder.add_node("ask", ask)
    builder.add_node("tools", ToolNode(middleware.tools))
    builder.add_edge(START, "ask")
    builder.add_conditional_edges("ask", tools_condition, {"tools": "tools", END: END})
    graph = builder.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "talk"}}
    graph.invoke({"messages": [{"role": "user", "content": "The order is XK-42. " * 4_000}]}, config)
    out = graph.invoke({"messages": [{"role": "user", "content": "Which order?"}]}, config)
    assert "The order is XK-42." in out["messages"][-1].text
    assert sent == [1, 2]  # of three
