"""Run one command, and kill all that it started when it ends: a program that `processes.py` starts.

Its arguments are a file descriptor and the words of the command. The descriptor is the read end of a pipe: it
is closed when the parent wants to stop the command, or dies in any way. On Linux, orphans become children of
this program (a subreaper, prctl(2)), even if they started a new session. Elsewhere only the process group of
the command is killed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys

SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, <linux/prctl.h>


def main(lifeline: int, words: list[str]) -> int:
    """Run a command until it ends or the lifeline closes; return its exit code, as in a shell."""
    adopt_orphans()
    awake, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    seen: list[int] = []
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, lambda number, _: seen.append(number))
    try:
        process = subprocess.Popen(words, start_new_session=True)  # noqa: S603 - its purpose
    except OSError as error:
        sys.stderr.write(f"{words[0]}: {error.strerror}\n")
        return 127
    while process.poll() is None and not set(seen) - {signal.SIGCHLD}:
        if lifeline in select.select([lifeline, awake], [], [])[0]:
            break
        os.read(awake, 1_024)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    while [pid for pid in children() if kill(pid)]:
        os.waitpid(-1, 0)
    return code if code >= 0 else 128 - code


def adopt_orphans() -> None:
    """Become the parent of orphaned processes, on Linux with /proc."""
    if sys.platform == "linux" and os.path.exists("/proc/self/stat"):  # noqa: PTH110 - it starts faster
        import ctypes  # noqa: PLC0415  costs a few milliseconds

        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def children() -> list[int]:
    """Return the ids of this program's children; empty without /proc."""
    found: list[int] = []
    own = str(os.getpid())
    try:
        names = [name for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208
    except OSError:
        return found
    for name in names:
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
            # pid (name) state parent; the name may hold blanks and brackets
            if file.read().rpartition(b")")[2].split()[1] == own.encode():
                found.append(int(name))
    return found


def kill(pid: int) -> bool:
    """Kill a process; return whether that was allowed."""
    with contextlib.suppress(ProcessLookupError):
        try:
            os.kill(pid, signal.SIGKILL)
        except PermissionError:
            return False
    return True


if __name__ == "__main__":
    raise SystemExit(main(int(sys.argv[1]), sys.argv[2:]))
