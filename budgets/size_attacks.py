"""Does any text take more than linear time? Seconds at n and 4n characters for each payload in each place.

    python -m budgets.size_attacks [--save] [NAME]    all attacks, or those whose name holds NAME

Seconds are those of the processor, so that other work on the machine counts little. Each is folded once by
`foldline.compact`, appended to a live session and sent, folded with a model whose summary says it all again, by the
command, and sent to the gateway and to `/api/fold`.
A process of its own runs each, since a regular expression cannot be interrupted.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import multiprocessing
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any, NamedTuple

import httpx2
from budgets.table import Row
from tests.service.served import run_service
from tools.results import Table, save

import foldline
from foldline.cli import app as cli
from foldline.summarizers import ModelSummarizer
from foldline.testing import Scripted

N = 20_000  # characters; four times as many are measured beside them
LONGEST = 60.0  # seconds after which a run is ended
GROWS = 6.0  # how much longer four times the text may take
NOISE = 0.25  # seconds at 4n below which a ratio says nothing
TIMES = 3  # measurements at most of an attack whose ratio is above that; the shortest times count
SHOWN = 0.5  # seconds at 4n from which the saved table shows an attack
TARGET = 3_000

Messages = list[dict[str, Any]]


def _repeated(unit: str) -> Callable[[int], str]:
    return lambda n: (unit * (n // len(unit) + 1))[:n]


def _random(alphabet: str) -> Callable[[int], str]:
    return lambda n: "".join(random.Random(n).choices(alphabet, k=n))


PAYLOADS: dict[str, Callable[[int], str]] = {
    "spaces": _repeated(" "),
    "spaces and a word": lambda n: f"x{' ' * n}y.",
    "tabs": _repeated("\t"),
    "line breaks": _repeated("\n"),
    "spaces and line breaks": _repeated(" \n"),
    "carriage returns": _repeated("\r\n"),
    "double quotes": _repeated('"'),
    "single quotes": _repeated("'"),
    "backticks": _repeated("`"),
    "opening brackets": _repeated("["),
    "opening braces": _repeated("{"),
    "opening parentheses": _repeated("("),
    "angle brackets": _repeated("<"),
    "backslashes": _repeated("\\"),
    "stars": _repeated("*"),
    "dashes": _repeated("-"),
    "hashes": _repeated("#"),
    "dots": _repeated("."),
    "colons": _repeated("a:"),
    "equal signs": _repeated("a="),
    "a.a.a.": _repeated("a."),
    "a. a. a.": _repeated("a. "),
    "slashes": _repeated("/"),
    "a/a/a/": _repeated("a/"),
    "digits": _repeated("7"),
    "digits and dots": _repeated("1."),
    "never": _repeated("never "),
    "never, commas": _repeated("never, "),
    "do not": _repeated("don't "),
    "should": _repeated("should "),
    "we decided": _repeated("we decided to use "),
    "replaced": _repeated("replaced "),
    "error": _repeated("error: "),
    "key = value": _repeated("password = "),
    "key = value, variables": _repeated("token=${a}b"),
    "key = value, quotes": _repeated("password=''"),
    "one long word": _repeated("a"),
    "one long word, capitals": _repeated("aA"),
    "underscores": _repeated("a_"),
    "a-a-a-": _repeated("a-"),
    "fences": _repeated("```\n"),
    "fences, nested": lambda n: "".join("`" * (3 + i % 40) + "\n" for i in range(n // 24)),
    "tildes": _repeated("~~~\nx\n"),
    "open tags": _repeated("<system-reminder>"),
    "open tags of any name": _repeated("<a>"),
    "open tags with attributes": _repeated("<task "),
    "tags, one in another": lambda n: "<task>" * (n // 13) + "</task>" * (n // 13),
    "base64": lambda n: base64.b64encode(random.Random(n).randbytes(n))[:n].decode(),
    "hexadecimal": _random("0123456789abcdef"),
    "Chinese": _random("的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多定行学法所民得经十三之进着等部度家电力里如水化高自二理起小物现实加量都两体制机当使点从业本去把性好应开它合还因由其些然前外天政四日那社义事平形相全表间样与关各重新线内数正心反你明看原又么利比或但质气第向道命此变条只没结解问意建月公无系军很情者最立代想已通并提直题党程展五果料象员革位入常文总次品式活设及管特件长求老头基资边流路级少图山统接知较将组见计别她手角期根论运农指几九区强放决西被干做必战先回则任取据处队南给色光门即保治北造百规热领七海口东导器压志世金增争济阶油思术极交受联什认六共权收证改清己美再采转更单风切打白教速花带安场身车例真务具万每目至达走积示议声报斗完类八离华名确才科张信马节话米整空元况今集温传土许步群广石记需段研界拉林律叫且究观越织装影算低持音众书布复容儿须际商非验连断深难近矿千周委素技备半办青省列习响约支般史感劳便团往酸历市克何除消构府称太准精值号率族维划选标写存候毛亲快效斯院查江型眼王按格养易置派层片始却专状育厂京识适属圆包火住调满县局照参红细引听该铁价严龙飞"),
    "emoji with joiners": _repeated("👩‍👩‍👧‍👦"),
    "combining marks": _repeated("e\u0301"),
    "at signs": _repeated("@"),
    "a@a@": _repeated("a@"),
    "a@a.a@": _repeated("a@a."),
    "private keys, begun": _repeated("-----BEGIN "),
    "private keys, whole heads": _repeated("-----BEGIN RSA PRIVATE KEY-----\n"),
    "addresses": _repeated("https://a.b/c?d=e&"),
    "address heads": _repeated("https://"),
    "tokens": _repeated("sk-"),
    "JWT heads": _repeated("eyJ."),
    "percent signs": _repeated("%20"),
    "escapes": _repeated("\x1b["),
    "null characters": _repeated("\0"),
    "diff": _repeated("+a\n-b\n"),
    "patches, begun": _repeated("*** Begin Patch\n*** Update File: a.py\n"),
    "table": _repeated("| a "),
    "list items": _repeated("- a\n"),
    "log lines": _repeated("12:00:01 INFO a.b: c\n"),
    "stack frames": _repeated('  File "a.py", line 1, in b\n'),
    "shell pipes": _repeated("cat a | "),
    "shell quotes": _repeated("echo \"a'"),
    "heredocs": _repeated("cat <<EOF\n"),
    "shell substitutions": _repeated("$("),
    "and and and": _repeated("cd a && "),
    "deep JSON": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "deep JSON objects": lambda n: '{"a":' * (n // 6) + "1" + "}" * (n // 6),
    "placeholders": _repeated("[image] "),
    "hook heads": _repeated("Stop hook feedback: "),
}  # fmt: skip


def _turn(index: int, argument: str, result: str) -> Messages:
    call = {"id": f"call_{index}", "type": "function", "function": {"name": "bash", "arguments": argument}}
    return [
        {"role": "assistant", "content": "I look at it.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{index}", "content": result},
    ]


def _talk(
    *, system: str = "Be brief.", user: str = "Look at it.", argument: str = "ls", result: str = "a.py"
) -> Messages:
    command = json.dumps({"command": argument})
    messages: Messages = [
        {"role": "system", "content": system},
        {"role": "user", "content": "Fix the build."},
    ]
    messages += [{"role": "assistant", "content": "Which one?"}, {"role": "user", "content": user}]
    messages += _turn(0, command, result)
    for index in range(1, 9):
        messages += _turn(
            index, '{"command": "make"}', f"step {index}: the build of module_{index} failed\n" * 40
        )
    return [*messages, {"role": "assistant", "content": "Done."}, {"role": "user", "content": "Go on."}]


def _in(place: str, payload: Callable[[int], str]) -> Callable[[int], Messages]:
    return lambda n: _talk(**{place: payload(n)})


def _many_messages(n: int) -> Messages:
    pair = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    return [*(pair * (n // 20)), {"role": "user", "content": "Go on."}]


def _many_calls(n: int) -> Messages:
    count = n // 20
    calls = [
        {"id": f"c{i}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        for i in range(count)
    ]
    results = [{"role": "tool", "tool_call_id": f"c{i}", "content": "x"} for i in range(count)]
    said: Messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": None, "tool_calls": calls},
    ]
    return [*said, *results, {"role": "assistant", "content": "b"}, {"role": "user", "content": "Go on."}]


def _many_calls_unanswered(n: int) -> Messages:
    return [one for one in _many_calls(n) if one["role"] != "tool"]


def attacks() -> Iterator[tuple[str, Callable[[int], Messages]]]:
    """Yield the name of each attack and what makes its messages."""
    for place in ("user", "result", "argument", "system"):
        for name, payload in PAYLOADS.items():
            yield f"{name}, {place}", _in(place, payload)
    yield "many tiny messages", _many_messages
    yield "many calls in one batch", _many_calls
    yield "many calls in one batch, four times as many", lambda n: _many_calls(4 * n)
    yield "many calls in one batch, unanswered", _many_calls_unanswered
    yield "500,000 and 2,000,000 letters", lambda n: _talk(user=_repeated("abcde fghij ")(25 * n))


def _fold(messages: Messages) -> None:
    try:
        foldline.compact(messages, target=TARGET)
    except foldline.FloorExceeded:
        return


async def _live(messages: Messages) -> None:
    try:
        async with foldline.open("memory://", "bench", window=6_000) as session:
            for message in messages:
                await session.append(message)
            await session.context()
    except (foldline.FloorExceeded, foldline.CallsOpen):
        return


def _by_command(messages: Messages) -> None:
    """Have the command fold a file."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(messages, file)
        file.flush()
        with redirect_stdout(TextIOWrapper(BytesIO())), redirect_stderr(StringIO()), suppress(SystemExit):
            cli.main(["compact", file.name, "--target", str(TARGET), "--json"])


def _served(path: str, messages: Messages) -> None:
    """Send the messages to the service: refused or not, they are read."""
    body = json.dumps({"model": "m", "messages": messages, "compact": True}).encode()
    with run_service(window=6_000, openai_upstream="http://127.0.0.1:9", store="memory://") as url:
        httpx2.post(
            f"{url}{path}", content=body, headers={"content-type": "application/json"}, timeout=LONGEST
        )


async def _with_a_model(messages: Messages) -> None:
    """Fold by a model that says the longest text of the messages in its summary."""
    texts = (str(one.get("content") or "") for one in messages)
    said = f"## Goal\n{max(texts, key=len)}\n\n## Next Steps\n1. Go on.\n"
    model = Scripted(lambda _: said, window=10**9)
    with suppress(foldline.FoldlineError):
        async with foldline.open(
            "memory://", "bench", window=6_000, summarizer=ModelSummarizer(model)
        ) as session:
            await session.append(*messages)
            await session.compact()


WORKS: dict[str, Callable[[Messages], None]] = {
    "fold": _fold,
    "session": lambda messages: asyncio.run(_live(messages)),
    "model": lambda messages: asyncio.run(_with_a_model(messages)),
    "command": _by_command,
    "gateway": lambda messages: _served("/v1/chat/completions", messages),
    "service": lambda messages: _served("/api/fold", _as_ui(messages)),
}


def _as_ui(messages: Messages) -> Messages:
    return [
        {
            "id": str(n),
            "role": "user",
            "parts": [{"type": "text", "text": json.dumps(one, ensure_ascii=False)}],
        }
        for n, one in enumerate(messages)
    ]


def _measure(make: Callable[[int], Messages], n: int, answer: Any) -> None:
    messages, taken = make(n), list[float]()
    for work in WORKS.values():
        work(_talk())  # what is made at the first use
        start = time.process_time()
        work(messages)
        taken.append(time.process_time() - start)
        answer.send(taken)


def seconds(make: Callable[[int], Messages], n: int) -> list[float]:
    """Return how long each work on n characters takes; `LONGEST` for one that does not end, and those after it."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(make, n, there))
    process.start()
    there.close()
    taken: list[float] = []
    missing = LONGEST
    try:
        while len(taken) < len(WORKS) and here.poll(LONGEST):
            taken = here.recv()
    except EOFError:
        missing = -1.0
    finally:
        process.kill()
        process.join()
    return taken + [missing] * (len(WORKS) - len(taken))


class Figure(NamedTuple):
    """The seconds of one attack at n and at 4n; what did not end has `LONGEST`, what crashed -1."""

    name: str
    work: str
    once: float
    four: float

    @property
    def ratio(self) -> float:
        return self.four / max(self.once, 0.001)

    @property
    def bad(self) -> bool:
        return self.four < 0 or (self.four >= NOISE and self.ratio > GROWS)


def figures(names: str = "") -> Iterator[Figure]:
    """Yield each attack whose name holds `names`, work by work."""
    for name, make in attacks():
        if names in name:
            best = _pair(name, make)
            for _ in range(TIMES - 1):
                if any(figure.bad for figure in best):
                    best = [_shorter(*pair) for pair in zip(best, _pair(name, make), strict=True)]
            yield from best


def _pair(name: str, make: Callable[[int], Messages]) -> list[Figure]:
    once, four = seconds(make, N), seconds(make, 4 * N)
    return [Figure(name, work, once[i], four[i]) for i, work in enumerate(WORKS)]


def _shorter(one: Figure, other: Figure) -> Figure:
    return one._replace(once=min(one.once, other.once), four=min(one.four, other.four))


def table(found: Sequence[Figure]) -> Table:
    """Return the slowest of what was measured, and in the notes what they say together."""
    rows = [
        (one.name, one.work, f"{one.once:.2f} s", f"{one.four:.2f} s", f"{one.ratio:.1f} x")
        for one in sorted(found, key=lambda one: -one.four)
        if one.four >= SHOWN or one.bad
    ]
    timed = [one.ratio for one in found if one.four >= NOISE]
    notes = (
        f"{len(found) // len(WORKS)} attacks, {len(found)} figures; {len(timed)} take {NOISE:g} s or more at {4 * N:,} characters.",
        f"Their ratios: half of them below {statistics.median(timed):.1f}, the largest {max(timed):.1f}.",
    )
    columns = ("payload and its place", "work", f"{N:,} characters", f"{4 * N:,} characters", "ratio")
    return Table(columns, rows, notes=notes, left=2)


def main(*, full: bool = False) -> list[Row]:
    """Report the seconds and the ratio of each attack that takes some time; the quick run has user text alone."""
    rows: list[Row] = []
    for one in figures("" if full else ", user"):
        if one.four >= NOISE or one.four < 0:
            name = f"{one.name}: {one.work}"
            rows.append(Row(f"{name}, {4 * N:,} characters", round(one.four, 2), "s"))
            rows.append(Row(f"{name}: four times the text", round(one.ratio, 1), "x", most=GROWS))
    return rows


def _command() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", nargs="*")
    parser.add_argument(
        "--save", action="store_true", help="write docs/results/size-attacks.json and the page"
    )
    given = parser.parse_args()
    found: list[Figure] = []
    for one in figures(" ".join(given.name)):
        flag = " <<<" if one.bad else ""
        what = f"{one.name}: {one.work}"
        print(f"{what:60} {one.once:8.3f} {one.four:8.3f} {one.ratio:6.1f}{flag}", flush=True)
        found.append(one)
    if given.save:
        save("size-attacks", "python -m budgets.size_attacks --save", [table(found)])


if __name__ == "__main__":
    _command()
