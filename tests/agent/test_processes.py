"""A command leaves nothing behind, however it or the agent ends, and what it prints is bounded as it comes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tracemalloc
from pathlib import Path

import pytest
from tests.agent.program import environment, serve_model, settings
from tests.agent.working import host_on
from tests.support import forked
from tests.support.waiting import until, wait_until

from foldline.agent import processes
from foldline.agent.processes import Beginning, run_process
from foldline.agent.tools import bash
from foldline.agent.workspace import Workspace
from foldline.testing import call

pytestmark = pytest.mark.slow

linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone finds what has left its parents")
HOLD = "echo $$ >> pids; exec sleep 1000"  # says who it is, and stays
STAYS = {
    "in the background": f"sh -c '{HOLD}' &",
    "with its output closed": f"sh -c '{HOLD}' >/dev/null 2>&1 </dev/null &",
    "deaf to hang-ups and TERM": f"nohup sh -c \"trap '' TERM INT HUP; {HOLD}\" >/dev/null 2>&1 &",
}
LEAVES = {
    "a session of its own": f"setsid sh -c '{HOLD}' &",
    "two forks and a session": f"(setsid sh -c 'setsid sh -c \"{HOLD}\" & exit' &)",
    "an empty environment": f"env -i /bin/sh -c 'setsid /bin/sh -c \"{HOLD}\" &'",
    "a family": f'setsid sh -c \'sh -c "{HOLD}" & sh -c "{HOLD}" & {HOLD}\' &',
}
COMMANDS = [
    *(pytest.param(text, id=name) for name, text in STAYS.items()),
    *(pytest.param(text, id=name, marks=linux) for name, text in LEAVES.items()),
]


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """However long the system takes to end what was killed, it is waited for."""
    monkeypatch.setattr(processes, "PATIENCE", 600)


class Printed:
    def __init__(self, most=10_000_000):
        self.data, self.most = b"", most

    def take(self, piece):
        self.data += piece
        return len(self.data) < self.most


def pids(folder):
    with contextlib.suppress(OSError):
        return [int(line) for line in (folder / "pids").read_text().split("\n")[:-1]]
    return []


def alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except FileNotFoundError:
        if Path("/proc/self").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return stat.rpartition(b")")[2].split()[0] != b"Z"


def gone(folder):
    return not any(alive(pid) for pid in pids(folder))


def expected(command):
    return command.count("exec sleep")


def begun(folder, command):
    return len(pids(folder)) == expected(command)


def tool(folder, **outputs):
    return bash.make(Workspace(folder, **outputs))


@pytest.mark.parametrize("command", COMMANDS)
async def test_nothing_is_left_when_a_command_ends(tmp_path, command):
    wait = f"{command}\nwhile [ $(cat pids 2>/dev/null | wc -l) -lt {expected(command)} ]; do sleep 0.01; done; echo ok"
    output = await tool(tmp_path).run({"command": wait})
    assert (output.text, output.failed) == ("ok", False)
    assert begun(tmp_path, command)
    assert gone(tmp_path)


@pytest.mark.parametrize("command", COMMANDS)
async def test_nothing_is_left_when_a_command_is_cancelled(tmp_path, command):
    running = asyncio.ensure_future(tool(tmp_path).run({"command": f"{command}\nsleep 1000"}))
    await until(lambda: begun(tmp_path, command))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert gone(tmp_path)


async def test_nothing_is_left_when_the_time_is_up(tmp_path, monkeypatch):
    command = f"echo before; (sh -c '{HOLD}' &) ; sleep 1000"
    running = asyncio.ensure_future(tool(tmp_path).run({"command": command, "timeout": 500}))
    await until(lambda: begun(tmp_path, command))
    loop = asyncio.get_running_loop()
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + 500)
    output = await running
    assert output.text == "before\n[not finished after 500 s: stopped]"
    assert output.failed
    assert gone(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP], ids=lambda one: one.name)
@pytest.mark.parametrize("face", ["run", "rpc"])
def test_nothing_is_left_when_the_agent_is_ended(tmp_path, number, face):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{number.name} is ignored here, as nohup has it: run without that")
    command = f"sh -c '{HOLD}' &\n" + (f"setsid sh -c '{HOLD}' &\n" if sys.platform == "linux" else "")
    (tmp_path / "work").mkdir()
    words = ["run", "-p", "Go."] if face == "run" else ["rpc"]
    with serve_model([call("bash", command=f"{command} sleep 1000")]) as (_, name):
        options = ["--model", name, "--allow", "bash"]
        process = forked.Piped([*words, *options], folder=tmp_path / "work", env=environment(tmp_path))
        try:
            if face == "rpc":
                process.stdin.write('{"type": "prompt", "message": "Go."}\n')
                process.stdin.flush()
            else:
                process.stdin.close()
            wait_until(lambda: begun(tmp_path / "work", command))
            process.send_signal(number)
            process.wait(60)
        finally:
            process.close()
    wait_until(lambda: gone(tmp_path / "work"))


@pytest.mark.parametrize(
    "command", ["yes", "yes >&2", "cat /dev/zero", "yes & yes & wait", "(yes &) ; sleep 1000"], ids=str
)
async def test_what_prints_without_end_is_stopped_when_it_has_printed_too_much(tmp_path, command):
    tracemalloc.start()
    try:
        output = await tool(tmp_path, outputs=tmp_path / "outputs").run({"command": command})
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    (kept,) = (tmp_path / "outputs").iterdir()
    assert output.text.endswith("[more than 50,000,000 bytes of output: stopped]")
    assert output.failed
    assert f"[full output: read {kept}]" in output.text
    assert kept.stat().st_size == 50_000_000
    assert kept.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "outputs").stat().st_mode & 0o777 == 0o700
    assert most < 5_000_000


@pytest.mark.parametrize("size", [29_999, 30_000, 30_001, 200_000])
async def test_a_long_output_is_shown_in_part_and_kept_in_full(tmp_path, size):
    text = "".join(f"{number} é\n" for number in range(size // 3))[:size]
    (tmp_path / "text").write_text(text, encoding="utf-8")
    output = await tool(tmp_path, outputs=tmp_path / "outputs").run({"command": "cat text"})
    kept = list((tmp_path / "outputs").iterdir())
    if size <= 30_000:
        assert (output.text, kept) == (text.rstrip("\n"), [])
    else:
        assert output.text.startswith(f"{text[:10_000]}\n[… {size - 30_000:,} characters left out …]\n")
        assert output.text.endswith(f"{text[-20_000:].rstrip(chr(10))}\n[full output: read {kept[0]}]")
        assert kept[0].read_text(encoding="utf-8") == text
    assert (await tool(tmp_path).run({"command": "cat text"})).text.count("full output") == 0


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        ("exit 3", 3, ""),
        ("kill -9 $$", 137, ""),
        ("kill -TERM $$", 143, ""),
        ("printf 'a\\303'; printf '\\251\\377'", 0, "aé\ufffd"),
        ("exec >&- 2>&-; exit 4", 4, ""),
        ("echo out; echo err >&2", 0, "out\nerr\n"),
        ('cat; echo "$PAGER"', 0, "\n"),
    ],
)
async def test_the_end_of_a_command_is_told_as_a_shell_tells_it(tmp_path, command, code, told):
    printed = Printed()
    assert (
        await run_process(
            ["/bin/sh", "-c", command], tmp_path, 60, output=printed.take, variables={"PAGER": ""}
        )
        == code
    )
    assert printed.data.decode("utf-8", "replace") == told


async def test_standard_input_is_what_is_given_and_need_not_be_read(tmp_path):
    given, output, error = b"x" * 1_000_000, Printed(), Printed()
    words = ["/bin/sh", "-c", "wc -c; echo e >&2"]
    assert await run_process(words, tmp_path, 60, output=output.take, error=error.take, stdin=given) == 0
    assert (output.data.split(), error.data) == ([b"1000000"], b"e\n")
    assert await run_process(["/bin/true"], tmp_path, 60, output=output.take, stdin=given) == 0


async def test_both_outputs_are_read_at_once_and_kept_in_part(tmp_path):
    output, error = Beginning(10, 600_000), Beginning(10)
    flood = "head -c 500000 /dev/zero | tr '\\0' "
    words = ["/bin/sh", "-c", f"{flood} e >&2; {flood} o; {flood} e >&2"]
    assert await run_process(words, tmp_path, 60, output=output.take, error=error.take) == 0
    assert (output.data, error.data, output.full) == (b"o" * 10, b"e" * 10, False)
    output = Beginning(10, 400_000)
    assert await run_process(words, tmp_path, 60, output=output.take, error=error.take) is None
    assert (output.data, output.full) == (b"o" * 10, True)


async def test_what_cannot_be_started_or_kept_is_an_error(tmp_path):
    printed = Printed()
    assert await run_process(["/nonexistent/shell"], tmp_path, 60, output=printed.take) == 127
    assert b"/nonexistent/shell: No such file" in printed.data
    with pytest.raises(OSError):
        await run_process(["/bin/true"], tmp_path / "gone", 60, output=printed.take)

    def full(_piece):
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        await run_process(["/bin/sh", "-c", f"echo x; {HOLD}"], tmp_path, 900, output=full)
    assert gone(tmp_path)


def open_files():
    return list(Path("/dev/fd").iterdir())


async def test_commands_leave_no_files_open(tmp_path):
    shell = tool(tmp_path)
    await shell.run({"command": "true"})
    before = len(open_files())
    for _ in range(5):
        await asyncio.gather(
            *(shell.run({"command": command}) for command in ("echo x", "exit 1", "sleep 1000 &"))
        )
    assert len(open_files()) <= before


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("yes", "more than 1,000,000 bytes printed"),
        ("yes >&2", "more than 1,000,000 bytes printed"),
        (f"(sh -c '{HOLD}' &) ; sleep 1000", "not finished after 1 s"),
    ],
)
async def test_a_hook_is_bounded_and_leaves_nothing(tmp_path, caplog, command, told):
    timeout = 1 if "not finished" in told else 600
    settings(tmp_path, f'[hooks]\nbefore_compaction = ["""{command}"""]\ntimeout = {timeout}\n')
    async with host_on(tmp_path, ["One. " * 2_000, "Two."]) as host:
        await host.prompt("Hello. " * 2_000)
        await host.prompt("Again.")
        await host.session.compact()
    assert told in caplog.text
    assert gone(tmp_path / "work")
