"""Scripts for a model that also writes the summaries that it is asked for, and what it was asked."""

from __future__ import annotations

import json
import re

from foldline.providers import Patience
from foldline.summarizers import ModelSummarizer

QUICK = Patience(attempts=2, first=0.001, longest=0.002, jitter=0.001)
ASKS = "Use exactly these headings"
FILLER = "It goes the way that was agreed, and nothing else was touched. "


def words(message):
    """The text of a message of the chat completions API."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def headings(asked):
    """The headings of the summary that a request asks for; none where it asks for no summary."""
    _, asks, layout = words(asked.messages[-1]).partition(ASKS)
    return list(dict.fromkeys(re.findall(r"^## (.+)$", layout, re.MULTILINE))) if asks else []


def summary(asked, **told):
    """A summary in the form that is asked for, with `told` under the heading that begins so."""
    rows = [
        f"## {heading}\n{next((text for name, text in told.items() if heading.startswith(name)), '(none)')}"
        for heading in headings(asked)
    ]
    return "\n\n".join(rows)


def script(says, **told):
    """A script that answers requests for summaries with what is `told`, and others by `says`."""
    return lambda asked: summary(asked, **told) if headings(asked) else says(asked)


def long_reply(tokens):
    """A script whose every reply is a numbered text of some many tokens."""
    return lambda asked: f"Reply to “{words(asked.messages[-1])[:40]}”. " + FILLER * (tokens // 13)


def asked_to_reply(model):
    """The requests of the conversation."""
    return [asked for asked in model.requests if not headings(asked)]


def asked_to_sum_up(model):
    """The requests for summaries."""
    return [asked for asked in model.requests if headings(asked)]


def sum_up_by_model(host, **more):
    """Have the host's scripted model write the summaries of its session."""
    model = host.scripted
    host.session.summarizer = ModelSummarizer(model, window=model.window, patience=QUICK, **more)


async def exported(host, form):
    """The session in another system's form, as JSON."""
    return json.loads(await host.session.export(form))
