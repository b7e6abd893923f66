"""Scripts for a model that answers prompts and summary requests, and views of the requests it received."""

from __future__ import annotations

import json
import re

from foldline.providers import Patience
from foldline.summarizers import ModelSummarizer
from foldline.testing import Answer, call

QUICK = Patience(attempts=2, first=0.001, longest=0.002, jitter=0.001)
SUMMARY_MARK = "Use exactly these headings"
FILLER = "It goes the way that was agreed, and nothing else was touched. "


def text_of(message):
    """The text of a message of the chat completions API."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def headings(asked):
    """The headings of the summary that a request asks for; empty for other requests."""
    _, is_summary, layout = text_of(asked.messages[-1]).partition(SUMMARY_MARK)
    return list(dict.fromkeys(re.findall(r"^## (.+)$", layout, re.MULTILINE))) if is_summary else []


def summary(asked, **sections):
    """A summary with the requested headings; `sections` gives texts by the first word of a heading."""
    rows = [
        f"## {heading}\n{next((text for name, text in sections.items() if heading.startswith(name)), '(none)')}"
        for heading in headings(asked)
    ]
    return "\n\n".join(rows)


def token_limit(asked):
    """The tokens that a request gives to a summary; the user's words, which code adds, take the rest."""
    return int(re.search(r"Take at most ([\d,]+) tokens", text_of(asked.messages[-1]))[1].replace(",", ""))


def script(reply, **sections):
    """A script that answers summary requests with `sections`, and all other requests by `reply`."""
    return lambda asked: summary(asked, **sections) if headings(asked) else reply(asked)


def long_reply(tokens):
    """A script that replies to every prompt with a text of about so many tokens."""
    return lambda asked: f"Reply to “{text_of(asked.messages[-1])[:40]}”. " + FILLER * (tokens // 13)


def scripted_moves(moves):
    """A script that plays a list of answers for each prompt; `moves` maps the text of a prompt to its answers."""

    def reply(asked):
        messages = [(message["role"], text_of(message)) for message in asked.messages]
        place = max(
            number for number, (role, text) in enumerate(messages) if role == "user" and text in moves
        )
        return moves[messages[place][1]][sum(role == "assistant" for role, _ in messages[place:])]

    return reply


def step(text, *commands):
    """An answer with a text and a bash call for each command."""
    return Answer(text=text, calls=tuple(call("bash", command=command).calls[0] for command in commands))


def outline(asked):
    """The first word of each message after the system prompt; "summary" for a checkpoint."""
    texts = [text_of(message) for message in asked.messages[1:]]
    return ["summary" if text.startswith("<foldline-checkpoint") else text.split()[0] for text in texts]


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


def receipts(host):
    """The receipts of the session's compactions so far."""
    return [event.receipt for event in host.heard.named("compacted")]


def last_request(host):
    """The texts of the newest request of the conversation, without the system prompt."""
    return [text_of(message) for message in reply_requests(host.scripted)[-1].messages[1:]]


async def talk(host, first, last):
    """Have the prompts u<first> to u<last> answered, and wait for the folds that they cause."""
    for number in range(first, last + 1):
        assert (await host.prompt(f"u{number}")).how == "done"
        await host.session.settled()
