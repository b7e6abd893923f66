"""Scripts for a model that also writes the summaries that it is asked for, and what it was asked."""

from __future__ import annotations

import json
import re

from foldline.providers import Patience
from foldline.summarizers import ModelSummarizer
from foldline.testing import Answer, call

QUICK = Patience(attempts=2, first=0.001, longest=0.002, jitter=0.001)
ASKS = "Use exactly these headings"
FILLER = "It goes the way that was agreed, and nothing else was touched. "


def text_of(message):
    """The text of a message of the chat completions API."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def headings(asked):
    """The headings of the summary that a request asks for; none where it asks for no summary."""
    _, asks, layout = text_of(asked.messages[-1]).partition(ASKS)
    return list(dict.fromkeys(re.findall(r"^## (.+)$", layout, re.MULTILINE))) if asks else []


def summary(asked, **told):
    """A summary in the form that is asked for, with `told` under the heading that begins so."""
    rows = [
        f"## {heading}\n{next((text for name, text in told.items() if heading.startswith(name)), '(none)')}"
        for heading in headings(asked)
    ]
    return "\n\n".join(rows)


def token_limit(asked):
    """The tokens that a request gives to a summary; the user's words, which code adds, take the rest."""
    return int(re.search(r"Take at most ([\d,]+) tokens", text_of(asked.messages[-1]))[1].replace(",", ""))


def script(says, **told):
    """A script that answers requests for summaries with what is `told`, and others by `says`."""
    return lambda asked: summary(asked, **told) if headings(asked) else says(asked)


def long_reply(tokens):
    """A script whose every reply is a numbered text of some many tokens."""
    return lambda asked: f"Reply to “{text_of(asked.messages[-1])[:40]}”. " + FILLER * (tokens // 13)


def scripted_moves(moves):
    """A script of what is answered to each prompt, step by step; a prompt is known by its words."""

    def says(asked):
        said = [(message["role"], text_of(message)) for message in asked.messages]
        place = max(number for number, (role, text) in enumerate(said) if role == "user" and text in moves)
        return moves[said[place][1]][sum(role == "assistant" for role, _ in said[place:])]

    return says


def step(text, *commands):
    """An answer that says something and runs commands."""
    return Answer(text=text, calls=tuple(call("bash", command=one).calls[0] for one in commands))


def outline(asked):
    """The first word of each message of a request, but for the system prompt; of a checkpoint, "summary"."""
    texts = [text_of(message) for message in asked.messages[1:]]
    return ["summary" if text.startswith("<foldline-checkpoint") else text.split()[0] for text in texts]


def settings(folder, text):
    """Write the user's own settings of a machine whose home is in that folder."""
    file = folder / "home/.foldline/settings.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def reply_requests(model):
    """The requests of the conversation."""
    return [asked for asked in model.requests if not headings(asked)]


def summary_requests(model):
    """The requests for summaries."""
    return [asked for asked in model.requests if headings(asked)]


def summarize_by_model(host, **more):
    """Have the host's scripted model write the summaries of its session."""
    model = host.scripted
    host.session.summarizer = ModelSummarizer(model, window=model.window, patience=QUICK, **more)


async def export_json(host, form):
    """The session in another system's form, as JSON."""
    return json.loads(await host.session.export(form))
