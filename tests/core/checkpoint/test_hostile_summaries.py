"""Summaries that a model writes to take time: judged, mended and stored in step with their size."""

from __future__ import annotations

import time

import pytest

import foldline
from foldline.core.checkpoint.check import unwrapped
from foldline.core.checkpoint.request import SummaryReply

pytestmark = pytest.mark.slow

HOSTILE = [
    "a", "A", "\n", " ", "x\n", "\t\n", "#", "#\n", "# \n", "## a\n", ">\n", "*", "`", "``", "```\n", "- ", "- a\n",
    "/", "a/", "a.", "_", "(", "[", "[a](", "<", "<think>", "<Analysis>\n", "<summary>", "</think>", "<think><summary>",
    "## ", "a (unverified) ", "<|", "<invoke ", "user: ", "never ", "**", "'", '"', "1. ", "key: ", "a=", "http://a", "## Goal\n",
]  # fmt: skip


class Writer:
    """Writes the summary that it was given."""

    name = "test:writer"

    def __init__(self, text):
        self.text = text
        self.asked = 0

    async def summarize(self, request):
        del request
        self.asked += 1
        return SummaryReply(self.text, self.name, stop="end")


def talk():
    said = []
    for number in range(30):
        said.append({"role": "user", "content": f"Step {number}: mend `src/part_{number}.py`. " * 12})
        said.append({"role": "assistant", "content": f"Part {number} is mended, its check passes. " * 30})
    return [*said, {"role": "user", "content": "Go on."}]


def spent(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def summary(unit, size):
    return "## Goal\nMend it.\n" + unit * (size // len(unit)) + "\n## Next steps\n1. Go on.\nx"


def test_the_summary_is_what_is_judged():
    writer = Writer(summary("a", 1_000))
    foldline.compact(talk(), target=3_000, summarizer=writer)
    assert writer.asked


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_summary_takes_time_in_step_with_its_size(unit):
    def seconds(size):
        text = summary(unit, size)
        return spent(lambda: foldline.compact(talk(), target=3_000, summarizer=Writer(text)))

    seconds(8_000)  # what is made at the first use
    short = max(min(seconds(8_000) for _ in range(2)), 0.01)
    assert (
        min(seconds(128_000) for _ in range(1)) < 90 * short
    )  # 16 times the text; quadratic takes 256 times


@pytest.mark.parametrize("name", ["think", "Thinking", "ANALYSIS", "scratchpad"])
def test_reasoning_is_taken_off_up_to_its_own_end(name):
    assert unwrapped(f"a<{name}>b</{name.lower()}>c<{name}>d") == f"ac<{name}>d"
    assert unwrapped(f"<{name}>b<summary>c</summary>") == "c"
    assert unwrapped(f"<{name}>b</other></{name}><{name}></{name}>c") == "c"
    assert unwrapped(f"<{name}><analysis><think>b</{name}>c") in ("c", "<analysis>c")
    assert unwrapped("<think>a<analysis>b</analysis>c") == "<think>ac"
    assert unwrapped("<summary>\n\n a b \n\n</SUMMARY> c") == "a b"
    assert unwrapped("Here it is.\n<checkpoint>a\n") == "a"
