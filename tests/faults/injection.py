"""Runs of gmpll in which something goes wrong at a chosen moment.

A server process imports everything once and forks a child for every run, so a run costs no
imports and what is done to it ends with it. In the child an audit hook, which Python calls before
it opens, renames or removes anything, counts the operations inside of the sandbox folder and does
the harm when the chosen one comes. Writing itself is disturbed by limits of the operating system:
a largest file size, or a small file system.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
#: Audit events that touch the disk; the first argument names what they touch.
TIDYING = ("os.remove", "os.rmdir", "shutil.rmtree", "os.scandir", "os.listdir")
EVENTS = ("open", "os.rename", "os.mkdir", "os.truncate", "sqlite3.connect", *TIDYING)
#: A child that takes longer hangs.
HANGING_SECONDS = 300.0
ERRORS = {"full": errno.ENOSPC, "denied": errno.EACCES, "broken": errno.EIO}
SIGNALS = {"kill": signal.SIGKILL, "interrupt": signal.SIGINT, "end": signal.SIGTERM}


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and when.

    ``kind`` is a signal (``kill``, ``interrupt``, ``end``) or an error (``full``, ``denied``,
    ``broken``). It comes with operation number ``operation``, or ``seconds`` after the start
    (signals only), or when a file grows beyond ``size`` bytes (``kill`` and ``full`` only).
    """

    kind: str
    operation: int | None = None
    seconds: float | None = None
    size: int | None = None

    def __str__(self) -> str:
        when = {"operation": self.operation, "second": self.seconds, "byte": self.size}
        return f"{self.kind} at " + " ".join(f"{k} {v}" for k, v in when.items() if v is not None)

    def hits_tidying(self, operations: list[str]) -> bool:
        """Whether an error kept the process from removing what it had begun."""
        if self.kind in SIGNALS or self.operation is None or self.operation > len(operations):
            return False
        return operations[self.operation - 1].startswith(TIDYING)

    @property
    def is_kill(self) -> bool:
        """Whether the process has no chance to tidy up."""
        return self.kind == "kill"


@dataclass(frozen=True)
class Outcome:
    """How a run ended; a negative code is the signal that ended it."""

    code: int
    out: str
    err: str
    seconds: float
    operations: list[str]


class Runs:
    """Runs jobs of :mod:`scenarios` in forked processes."""

    def __init__(self) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
        self._server = subprocess.Popen(
            [sys.executable, str(HERE / "injection.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, job: str, sandbox: Path, *arguments: str, fault: Fault | None = None) -> Outcome:
        """Run a job in a folder, with a fault or without."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        asked = {
            "job": job,
            "sandbox": str(sandbox),
            "arguments": arguments,
            "fault": None if fault is None else asdict(fault),
        }
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        if not answer:
            raise RuntimeError("The server of the fault bench has died.")
        return Outcome(**json.loads(answer))

    def close(self) -> None:
        """End the server."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait(HANGING_SECONDS)
        self._server.stdout.close()


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[bool]:
    """Put a file system of ``size`` bytes in the place of a folder; False where it is forbidden."""
    options = f"size={size},mode=0777"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        mounted = False
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)


# What follows runs in the server and in its children.


def _serve(jobs: dict[str, Callable[..., None]]) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        fault = None if asked["fault"] is None else Fault(**asked["fault"])
        sandbox = Path(asked["sandbox"])
        print(json.dumps(_forked(jobs[asked["job"]], sandbox, asked["arguments"], fault)))
        sys.stdout.flush()


def _forked(
    job: Callable[..., None], sandbox: Path, arguments: list[str], fault: Fault | None
) -> dict[str, Any]:
    pipes = {name: _roomy_pipe() for name in ("out", "err", "operations")}
    logs = {name: pipe[1] for name, pipe in pipes.items()}
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        _be_the_child(job, sandbox, arguments, fault, logs)
    code = _wait(child, start, fault)
    seconds = time.perf_counter() - start
    texts = {}
    for name, (reading, writing) in pipes.items():
        os.close(writing)
        with open(reading, encoding="utf-8", errors="replace") as file:
            texts[name] = file.read()
    operations = texts["operations"].splitlines()
    return {
        "code": code,
        "out": texts["out"],
        "err": texts["err"],
        "seconds": seconds,
        "operations": operations,
    }


def _roomy_pipe() -> tuple[int, int]:
    """Make a pipe that holds all that a run says: nobody reads before its end."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 2**20)
    return reading, writing


def _wait(child: int, start: float, fault: Fault | None) -> int:
    pending = fault is not None and fault.seconds is not None
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        passed = time.perf_counter() - start
        if pending and fault is not None and passed >= (fault.seconds or 0.0):
            os.kill(child, SIGNALS[fault.kind])
            pending = False
        if passed > HANGING_SECONDS:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.001)


def _be_the_child(
    job: Callable[..., None],
    sandbox: Path,
    arguments: list[str],
    fault: Fault | None,
    logs: dict[str, int],
) -> None:
    """Do a job and exit; never returns."""
    code = 70
    try:
        for stream, name in ((0, None), (1, "out"), (2, "err")):
            descriptor = os.open(os.devnull, os.O_RDONLY) if name is None else logs[name]
            os.dup2(descriptor, stream)
        sys.stdout = os.fdopen(1, "w", closefd=False, encoding="utf-8")
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False, encoding="utf-8")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = _report_unless_interrupted
        os.chdir(sandbox)
        _arrange(fault, sandbox, logs["operations"])
        try:
            job(sandbox, *arguments)
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except BaseException:
            traceback.print_exc()
            code = 1
        for name in (signal.SIGINT, signal.SIGTERM):  # the command is over: nobody is interrupted
            signal.signal(name, signal.SIG_IGN)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    os._exit(code)


def _report_unless_interrupted(unraisable: Any) -> None:
    """Python drops an interrupt that arrives while objects are taken away: no command can help."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)


def _arrange(fault: Fault | None, sandbox: Path, log: int) -> None:
    if fault is not None and fault.size is not None:
        # Python asks to be told instead of ended; the system's own answer is to end the process.
        action = signal.SIG_DFL if fault.is_kill else signal.SIG_IGN
        signal.signal(signal.SIGXFSZ, action)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault.size, resource.RLIM_INFINITY))
    root, count = str(sandbox), 0

    def touched(event: str, path: object) -> None:
        nonlocal count
        count += 1
        os.write(log, f"{event} {os.path.relpath(str(path), root)}\n".encode())
        if fault is not None and fault.operation == count:
            _harm(fault, event, path)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event in EVENTS and arguments:
            path = arguments[0]
            if isinstance(path, (str, bytes, os.PathLike)) and _inside(os.fsdecode(path), root):
                touched(event, os.fsdecode(path))

    sys.addaudithook(hook)
    fsync = os.fsync

    def audited_fsync(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if _inside(path, root):
            touched("fsync", path)
        fsync(descriptor)

    os.fsync = audited_fsync


def _inside(path: str, root: str) -> bool:
    return os.path.abspath(path).startswith(root + os.sep)


def _harm(fault: Fault, event: str, path: object) -> None:
    if fault.kind in SIGNALS:
        os.kill(os.getpid(), SIGNALS[fault.kind])
        return
    if event == "sqlite3.connect":
        raise sqlite3.OperationalError("unable to open database file")
    number = ERRORS[fault.kind]
    raise OSError(number, os.strerror(number), str(path))


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    import scenarios

    scenarios.import_everything()
    _serve(scenarios.JOBS)
