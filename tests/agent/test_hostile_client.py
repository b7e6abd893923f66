"""A client of `foldline rpc` that keeps to no order: what it does costs it an error at most, and loses nothing."""

from __future__ import annotations

import json
import random
import threading
import time

import pytest
from tests.agent.program import Rpc, run_foldline, serve_model

from foldline.testing import Answer, Gate, call

pytestmark = pytest.mark.slow


def answers(asked):
    return f"Answer {asked.index}. " + "It is done as you said. " * 40


def opened(folder, name, *words, window=60_000):
    return Rpc(folder, "--model", name, "--window", str(window), *words)


@pytest.fixture
def remote(tmp_path):
    with serve_model(answers) as (_, name):
        rpc = opened(tmp_path, name)
        yield rpc
        code, error = rpc.close()
        assert (code, error) == (0, "")


def whole(folder, *rpcs):
    """The stored session is whole; returns its messages, oldest first, as (role, text)."""
    verified = run_foldline(folder, "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    exported = run_foldline(folder, "export", rpcs[0].session, "--format", "openai-chat")
    messages = (
        json.loads(exported.stdout)
        if exported.stdout.startswith("[")
        else [json.loads(line) for line in exported.stdout.splitlines()]
    )
    return [(one["role"], one.get("content")) for one in messages]


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"type": "prompt", "message": ' + "[" * 100_000,
        '{"type": "command", "line": "/model openai:x many"}',
        '{"type": "command", "line": "/model openai:x -5"}',
        '{"type": "command", "line": "/export markdown a\\u0000b"}',
        '{"type": "command", "line": "/export markdown /proc/x/y"}',
        '{"type": "command", "line": ""}',
        '{"type": "command", "line": "/tree 99999999999999999999999"}',
        '{"type": "command", "line": "/pin nosuch"}',
        '{"type": "command", "line": "/autocompact keep nonsense"}',
        '{"type": "compact", "target": -5}',
        '{"type": "compact", "target": 1e400}',
        '{"type": "branch", "entry": ""}',
        '{"type": "permission", "request": "1", "answer": "once"}',
        '{"type": "prompt", "message": "half a pair: \\ud800"}',
    ],
)
def test_what_cannot_be_done_is_an_error_and_no_more(remote, line):
    remote.prompt("Hello.")
    remote.raw(line)
    found = remote.wait("error")
    assert set(found) == {"type", "error"}
    assert found["error"]
    assert remote.prompt("Still there?")["how"] == "done"


@pytest.mark.parametrize(
    "message",
    [
        "@~nosuchuser/x",
        "@" + "a" * 5_000,
        "NUL \0 in it",
        "@a\0b",
        "\u2028 \x85 \x1b[2J \r\n end",
        "",
        " ",
        "@/root/",
        "@.",
    ],
)
def test_every_text_is_a_prompt(remote, message):
    assert remote.prompt(message)["how"] == "done"


def test_half_a_pair_in_what_a_tool_says_reaches_the_client(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/odd.txt").write_bytes(b"\xed\xa0\x80 and \xff")
    with serve_model([call("read", path="odd.txt"), call("nosuch\udc80", path="\udc80"), "ok"]) as (_, name):
        rpc = opened(tmp_path, name)
        ended = rpc.prompt("Read it.")
        assert ended["how"] == "done", ended
        assert rpc.close() == (0, "")


def test_prompts_in_a_burst_are_all_worked_on_in_order(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.txt").write_text("a")
    count = 12
    with serve_model(answers) as (_, name):
        rpc = opened(tmp_path, name)
        texts = [f"Prompt {n}{' @a.txt' if n % 3 == 0 else ''}" for n in range(count)]
        for n, text in enumerate(texts):
            rpc.send(type="prompt", message=text, id=n)
        rpc.process.stdin.close()
        seen = [json.loads(line) for line in rpc.process.stdout]
        assert rpc.process.wait() == 0
        assert [one["text"] for one in seen if one["type"] == "prompt"] == texts
        assert len([one for one in seen if one["type"] == "turn"]) == count


def test_an_abort_right_behind_a_prompt_stops_it(tmp_path):
    with serve_model([Answer(text="slow", wait=Gate()), "Then."]) as (_, name):
        rpc = opened(tmp_path, name)
        rpc.send(type="prompt", message="Go.")
        rpc.send(type="abort")
        assert rpc.wait("response", command="abort")["data"] == {"stopped": True}
        assert rpc.wait("turn")["how"] == "interrupted"
        rpc.close()
    assert whole(tmp_path, rpc) == [("user", "Go.")]


def test_undo_and_branch_right_behind_a_prompt_are_refused(tmp_path):
    gates = [Gate(), Gate(), Gate()]
    with serve_model(["First.", *(Answer(text="Next.", wait=gate) for gate in gates)]) as (_, name):
        rpc = opened(tmp_path, name)
        rpc.prompt("One.")
        entry = rpc.ask(type="prompts")["prompts"][0]["entry"]
        requests = (
            {"type": "branch", "entry": entry},
            {"type": "undo"},
            {"type": "command", "line": "/clear"},
        )
        for request, gate in zip(requests, gates, strict=True):
            rpc.send(type="prompt", message="Next.")
            rpc.send(**request)
            assert rpc.wait("error")["error"].startswith("the agent is busy")
            gate.open()
            rpc.wait("turn")
        assert rpc.close() == (0, "")
    assert [text for role, text in whole(tmp_path, rpc) if role == "user"] == ["One."] + ["Next."] * 3


def test_the_end_of_the_input_refuses_the_permission_that_is_asked_for(tmp_path):
    with serve_model(
        [call("write", path="a.txt", content="x"), call("write", path="b.txt", content="x"), "No then."]
    ) as (_, name):
        rpc = opened(tmp_path, name)
        rpc.send(type="prompt", message="Write.")
        rpc.wait("permission")
        assert rpc.close() == (0, "")
    assert not (tmp_path / "work/a.txt").exists()
    assert whole(tmp_path, rpc)[-1] == ("assistant", "No then.")


def test_a_turn_that_goes_on_by_a_command_can_be_stopped_and_asked(tmp_path):
    with serve_model([call("bash", command="sleep 1000"), call("bash", command="sleep 1000"), "Done."]) as (
        _,
        name,
    ):
        rpc = opened(tmp_path, name, "--allow", "bash")
        rpc.send(type="prompt", message="Go.")
        rpc.wait("call")
        session = rpc.session
        rpc.kill()
        rpc = opened(tmp_path, name, "--allow", "bash", "--resume", session)
        rpc.send(type="command", line="/continue")
        rpc.wait("call")
        assert rpc.ask(type="stats")["busy"]
        assert rpc.ask(type="prompt", message="And this.") == {"queued": True}
        assert rpc.ask(type="abort") == {"stopped": True}
        assert rpc.wait("turn")["how"] == "interrupted"
        assert rpc.wait("turn")["text"] == "Done."
        assert rpc.close() == (0, "")


def test_the_input_ends_in_the_middle_of_a_turn_and_of_a_line(tmp_path):
    gate = Gate()
    with serve_model([Answer(text="First.", wait=gate), "Second."]) as (_, name):
        rpc = opened(tmp_path, name)
        rpc.send(type="prompt", message="One.")
        rpc.send(type="prompt", message="Two.")
        rpc.process.stdin.write('{"type": "prompt", "mess')
        rpc.process.stdin.close()
        gate.open()
        assert rpc.close() == (0, "")
    assert whole(tmp_path, rpc) == [
        ("user", "One."),
        ("assistant", "First."),
        ("user", "Two."),
        ("assistant", "Second."),
    ]


def test_what_is_queued_behind_a_failed_turn_is_worked_on_before_the_end(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.bin").write_bytes(b"a\0b")
    gate = Gate()
    with serve_model([Answer(text="First.", wait=gate), "Third."]) as (_, name):
        rpc = opened(tmp_path, name)
        for text in ("One.", "Two: @a.bin", "Three."):
            rpc.send(type="prompt", message=text)
        gate.open()
        assert "is binary" in rpc.wait("error")["error"]
        assert rpc.close() == (0, "")
    assert [text for _, text in whole(tmp_path, rpc)] == ["One.", "First.", "Three.", "Third."]


def test_lines_of_megabytes(tmp_path):
    with serve_model(answers, window=20_000) as (_, name):
        rpc = opened(tmp_path, name)
        rpc.raw("x" * 2_000_000)
        assert set(rpc.next()) == {"type", "error"}
        rpc.raw(json.dumps({"type": "nosuch", "more": "y" * 2_000_000}))
        assert len(rpc.next()["error"]) < 1_000
        ended = rpc.prompt("z " * 200_000)
        assert ended["how"] == "done"
        prompts = rpc.ask(type="prompts")["prompts"]
        while rpc.seen[-1]["type"] == "error":
            prompts = rpc.next()["data"]["prompts"]
        rpc.ask(type="branch", entry=prompts[-1]["entry"])
        assert rpc.prompt("Shorter.")["how"] == "done"
        assert rpc.close() == (0, "")


def test_a_compaction_in_the_middle_of_a_turn(tmp_path):
    gate = Gate()

    def says(asked):
        if asked.messages[-1]["content"] == "slow one":  # the request for a summary holds it too
            return Answer(text="Slowly.", wait=gate)
        return answers(asked)

    with serve_model(says, window=30_000) as (_, name):
        rpc = opened(tmp_path, name)
        for n in range(6):
            rpc.prompt(f"Prompt {n}. " + "word " * 200)
        rpc.send(type="prompt", message="slow one")
        rpc.wait("prompt")
        done = rpc.ask(type="compact")
        assert done["folded"]
        gate.open()
        assert rpc.wait("turn")["text"] == "Slowly."
        assert rpc.close() == (0, "")
    texts = [text for _, text in whole(tmp_path, rpc)]
    assert len(texts) == 14


def test_two_programs_on_one_session(tmp_path):
    with serve_model(lambda asked: Answer(text=answers(asked), wait=0.05), window=20_000) as (_, name):
        first = opened(tmp_path, name)
        first.prompt("Begin.")
        second = opened(tmp_path, name, "--resume", first.session)
        for n in range(8):
            for who, rpc in (("first", first), ("second", second)):
                rpc.send(type="prompt", message=f"{who} {n}")
                if n % 4 == 3:
                    rpc.send(type="compact")
        for rpc in (first, second):
            code, error = rpc.close()
            assert (code, error) == (0, "")
    whole(tmp_path, first)


KINDS = (
    *["prompt"] * 3,
    *["abort"] * 2,
    *("compact", "preview", "commit", "undo", "redo", "stats", "prompts", "branch"),
    *["command"] * 2,
)
COMMANDS = (
    *("/context", "/tree", "/pin last", "/compact", "/rewind", "/continue", "/stats", "/constraints"),
    *("/recall word", "/policy pi", "/cost", "/clear", "/fork", "/resume 2"),
)


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 12))])
def test_anything_at_any_moment(tmp_path, seed):
    some = random.Random(seed)

    def says(asked):
        kind = some.random()
        text = str(asked.messages[-1])
        wait = some.choice((0.0, 0.0, 0.05, 0.2))
        if "You write checkpoints" in str(asked.messages[0]) or "## " in text:
            return Answer(text=answers(asked), wait=wait)
        if kind < 0.4:
            return call("bash", command=f"sleep {some.choice((0, 0.05, 0.2))}; echo {asked.index}")
        return Answer(text=answers(asked), wait=wait)

    with serve_model(says, window=9_000) as (_, name):
        rpc = opened(tmp_path, name, "--allow", "bash")
        sent = 0
        reader = []
        thread = threading.Thread(
            target=lambda: reader.extend(json.loads(line) for line in rpc.process.stdout)
        )
        thread.start()
        for n in range(120):
            kind = some.choice(KINDS)
            more = {}
            if kind == "prompt":
                more = {"message": f"Prompt {n}. " + "word " * some.choice((1, 50))}
            elif kind == "branch":
                more = {"entry": str(some.randint(1, 4))}
            elif kind == "command":
                more = {"line": some.choice(COMMANDS)}
            rpc.send(type=kind, id=n, **more)
            sent += 1
            time.sleep(some.choice((0, 0, 0.01, 0.05, 0.15)))
        rpc.process.stdin.close()
        thread.join()
        code = rpc.process.wait()
        error = rpc.process.stderr.read()
        assert code == 0, error
        # of a window that is smaller than it was told, the summariser learns by being refused
        assert all(line.startswith("summary by ") for line in error.splitlines()), error
        assert sum(one["type"] == "response" for one in reader) > 20
    verified = run_foldline(tmp_path, "verify")
    assert verified.returncode == 0, verified.stdout + verified.stderr


def test_a_client_that_reads_nothing_any_more(tmp_path):
    with serve_model(answers) as (_, name):
        rpc = opened(tmp_path, name)
        rpc.process.stdout.close()
        rpc.send(type="prompt", message="One.")
        rpc.send(type="prompt", message="Two.")
        assert rpc.close() == (0, "")
    assert [text for role, text in whole(tmp_path, rpc) if role == "user"] == ["One.", "Two."]
