"""Foldline as a program of its own that starts in milliseconds: forked from an interpreter that has loaded it.

`python -m foldline` needs about a second of processor time before it does anything. Here one process without
threads loads it once for all tests of a worker, and forks at each start. What it forks has arguments, a folder,
an environment, streams and signals of its own, and ends as any interpreter does. `tests/e2e` starts the command
itself.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
from functools import cache
from tempfile import TemporaryFile

LOADED = (
    "foldline.cli.commands.run",
    "foldline.cli.commands.rpc",
    "foldline.cli.commands.compact",
    "foldline.cli.commands.import_",
    "openai.lib.streaming.chat",
    "openai.resources.chat",
    "httpcore2",
    "anyio._backends._asyncio",
)


class Program:
    """A running `foldline`; `streams` are the descriptors of its standard input, output and error."""

    def __init__(self, words, *, folder, env, streams):
        self.args, self.returncode = list(words), None
        self._told, told = os.pipe()
        request = json.dumps([[os.fspath(word) for word in words], os.fspath(folder), dict(env)])
        try:
            socket.send_fds(_server(), [request.encode() + b"\n"], [*streams, told])
        finally:
            os.close(told)
        self.pid = self._number()

    def _number(self):
        return int.from_bytes(os.read(self._told, 8))

    def poll(self, seconds=0):
        """Return the exit code, as `subprocess` counts it; None while it runs."""
        if self.returncode is None and select.select([self._told], [], [], seconds)[0]:
            self.returncode = os.waitstatus_to_exitcode(self._number())
            os.close(self._told)
        return self.returncode

    def wait(self, timeout=None):
        """Wait for its end; return the exit code."""
        if self.poll(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class Piped(Program):
    """A program with pipes to this process, for text."""

    def __init__(self, words, *, folder, env):
        (given, stdin), (stdout, out), (stderr, error) = (os.pipe() for _ in range(3))
        super().__init__(words, folder=folder, env=env, streams=(given, out, error))
        for one in (given, out, error):
            os.close(one)
        self.stdin, self.stdout, self.stderr = open(stdin, "w"), open(stdout), open(stderr)  # noqa: PTH123

    def close(self):
        """Kill it, and close the pipes."""
        self.kill()
        self.wait()
        for pipe in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(BrokenPipeError):  # what it did not read any more
                pipe.close()


def run(words, *, folder, env, stdin="", timeout):
    """Run a command to its end, as `subprocess.run` does; one that takes too long is killed."""
    with TemporaryFile("w+") as given, TemporaryFile("w+") as out, TemporaryFile("w+") as error:
        given.write(stdin)
        given.seek(0)
        streams = [one.fileno() for one in (given, out, error)]
        program = Program(words, folder=folder, env=env, streams=streams)
        try:
            code = program.wait(timeout)
        finally:
            program.kill()
        for one in (out, error):
            one.seek(0)
        return subprocess.CompletedProcess(program.args, code, out.read(), error.read())


@cache
def _server():
    """Start the process that forks, which ends with this one; return the connection to it."""
    ours, theirs = socket.socketpair()
    atexit.register(ours.close)
    with theirs:  # -P: the names of files beside this one are names of modules
        words = [sys.executable, "-P", __file__, str(theirs.fileno())]
        subprocess.Popen(words, pass_fds=[theirs.fileno()]).returncode = 0  # it ends with this process
    return ours


def _serve(link):
    """Fork for each request; return in the child with what it is to run."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        request, streams, *_ = socket.recv_fds(link, 65_536, 4)
        while request and not request.endswith(b"\n"):
            request += link.recv(65_536)
        if not request:
            raise SystemExit
        if os.fork() == 0:
            link.close()
            return _begun(json.loads(request), streams)
        for one in streams:
            os.close(one)


def _begun(request, streams):
    """Return the words of a program, in its process; another one waits for it and tells how it ended."""
    told = streams.pop()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if pid := os.fork():
        for one in streams:
            os.close(one)
        os.write(told, pid.to_bytes(8))
        os.write(told, os.waitpid(pid, 0)[1].to_bytes(8))
        os._exit(0)
    os.close(told)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    words, folder, environment = request
    for number, one in enumerate(streams):
        os.dup2(one, number)
        os.close(one)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return words


if __name__ == "__main__":
    from importlib import import_module

    for name in LOADED:
        import_module(name)
    from foldline.cli.app import main

    with socket.socket(fileno=int(sys.argv[1])) as link:
        words = _serve(link)
    main(words)
