"""Worker processes: fresh interpreters that answer calls, and end with this process however that ends.

Each holds one end of a socket whose other end only this process has. When that is closed, by the end of the `with`
block or because this process is gone, a thread of the worker sees it and ends the worker at once, whatever it computes.
A worker has a process group of its own: Ctrl-C reaches this process alone, which may then ask its workers to stop.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, TypeVar

from planner.errors import InputError
from planner.process import stopping
from planner.process.news import LENGTH, News, Parent, message

K = TypeVar("K")
Call = Callable[[], Any]
"""What can be pickled: a function of a module, or a partial of one."""
MOST_LOSSES = 3
"""Worker processes that one call may lose before it is given up."""
START = ("import gc, os, sys; os.nice({behind}); sys.path[:] = {path!r}; gc.set_threshold(*{gc}); "
         "from planner.process.workers import serve; serve()")
PIECE = 1 << 20
_Heard = Callable[[Any, Any], None]


class LostWorker(InputError):
    """A call lost its worker process each time that it was tried."""

    def __init__(self) -> None:
        super().__init__(f"its worker process was lost {MOST_LOSSES} times: killed, perhaps for memory; fewer "
                         "--workers need less")


@dataclass(frozen=True, slots=True)
class Answer(Generic[K]):
    """What became of the call that was given with `key`."""

    key: K
    value: Any = None
    error: BaseException | None = None

    def result(self) -> Any:  # noqa: ANN401 - what the call returns
        """Return the value, or raise what the call raised, or LostWorker."""
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(slots=True, eq=False)
class _Worker:
    """One process, the socket to it, and what has arrived of its answer."""

    process: subprocess.Popen[bytes]
    socket: socket.socket
    arrived: bytearray = field(default_factory=bytearray)

    def ask(self, call: Call) -> None:
        """Send a call. Raises OSError where the process is gone."""
        self.socket.sendall(message(call))

    @property
    def answered(self) -> bool:
        """Whether an answer has arrived as a whole."""
        return len(self.arrived) >= LENGTH.size + (LENGTH.unpack_from(self.arrived)[0]
                                                   if len(self.arrived) >= LENGTH.size else 0)

    def taken(self) -> bytes:
        """Return the first message that has arrived as a whole, and keep what came after it."""
        size = LENGTH.unpack_from(self.arrived)[0]
        message = bytes(self.arrived[LENGTH.size:LENGTH.size + size])
        del self.arrived[:LENGTH.size + size]
        return message

    def end(self) -> None:
        """End the process, and wait until it is gone."""
        self.process.kill()
        self.socket.close()
        self.process.wait()


class Workers(Generic[K]):
    """Up to `count` processes, started when there is something to do; a `with` block ends them all."""

    def __init__(self, count: int, heard: _Heard | None = None, most_losses: int = MOST_LOSSES, behind: int = 0
                 ) -> None:
        """Start none yet. heard: is told the key and the news of calls that report; other calls say nothing.

        behind: by how much the processes yield to others, from their first moment.
        """
        self.count, self.heard, self.most_losses, self.behind = count, heard, most_losses, behind
        self.idle: list[_Worker] = []
        self.busy: dict[_Worker, tuple[K, Call]] = {}
        self.waiting: deque[tuple[K, Call]] = deque()
        self.losses: Counter[K] = Counter()
        self.stopped = False

    def __enter__(self) -> Workers[K]:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """End all processes, whatever they compute; more calls start others."""
        for worker in (*self.idle, *self.busy):
            worker.end()
        self.idle.clear()
        self.busy.clear()

    def add(self, key: K, call: Call) -> None:
        """Put a call in line."""
        self.waiting.append((key, call))
        self.stopped = False

    def stop(self) -> None:
        """Start nothing more, and ask what runs to end soon, with what it has."""
        self.waiting.clear()
        self.stopped = True
        for worker in self.busy:
            with suppress(OSError):  # gone, which answers() will see
                worker.socket.sendall(LENGTH.pack(0))

    def answers(self, seconds: float | None = None) -> Iterator[Answer[K]]:
        """Yield answers as they arrive, to the end or for so long. Raises InputError where no process can be started.

        What Ctrl-C breaks off loses nothing: the next iteration goes on.
        """
        until = None if seconds is None else time.monotonic() + seconds
        while self.waiting or self.busy:
            while self.waiting and len(self.busy) < self.count:
                self._start()
            if not (heard := self._heard(until)):
                return
            for worker in heard:
                answer = self._answer(worker) if worker.answered else self._lost(worker)
                if answer is not None:
                    yield answer

    def ready(self) -> bool:
        """Say whether a worker waits for a call; those that were lost while they waited are forgotten."""
        for worker in [worker for worker in self.idle if worker.process.poll() is not None]:
            self.idle.remove(worker)
            worker.end()
        return bool(self.idle)

    def _start(self) -> None:
        """Give the first call in line to a worker that is idle or new."""
        worker = self.idle.pop() if self.ready() else _started(self.behind)
        self.busy[worker] = self.waiting.popleft()
        with suppress(OSError):  # gone, which answers() will see
            worker.ask(self.busy[worker][1])

    def _heard(self, until: float | None) -> list[_Worker]:
        """Return workers whose answer has arrived, or that are lost; none where time ran out."""
        while not (heard := [worker for worker in self.busy if worker.answered]):
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                break
            ready = select.select([worker.socket for worker in self.busy], [], [], left)[0]
            for worker in [worker for worker in self.busy if worker.socket in ready]:
                data = _received(worker.socket)
                worker.arrived += data
                if not data:
                    return [worker]
        return heard

    def _answer(self, worker: _Worker) -> Answer[K] | None:
        """Return the answer that has arrived; none for news."""
        said = pickle.loads(worker.taken())
        if isinstance(said, News):
            if self.heard is not None:
                self.heard(self.busy[worker][0], said.content)
            return None
        key, _ = self.busy.pop(worker)
        self.idle.append(worker)
        return Answer(key, *said)

    def _lost(self, worker: _Worker) -> Answer[K] | None:
        """Put the call of a lost worker in line again, or give it up."""
        key, call = self.busy.pop(worker)
        worker.end()
        self.losses[key] += 1
        if self.losses[key] >= self.most_losses or self.stopped:
            return Answer(key, None, LostWorker())
        self.waiting.appendleft((key, call))
        return None


def _started(behind: int) -> _Worker:
    here, there = socket.socketpair()
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined] # as multiprocessing does
    start = START.format(path=sys.path, gc=gc.get_threshold(), behind=behind)
    try:
        process = subprocess.Popen([sys.executable, *flags, "-c", start], stdin=there.fileno(),
                                   stdout=subprocess.DEVNULL, process_group=0)
    except OSError as error:
        here.close()
        raise InputError(f"cannot start a worker process: {error.strerror}; try fewer --workers") from None
    finally:
        there.close()
    return _Worker(process, here)


def _received(end: socket.socket) -> bytes:
    """Return what has arrived; nothing where the other end is closed."""
    try:
        return end.recv(PIECE)
    except OSError:
        return b""


def serve() -> None:
    """Answer the calls of the process that started this one: the life of a worker."""
    end = Parent.end = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    calls: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_listen, args=(end, calls), daemon=True).start()
    while True:
        data = calls.get()
        answer: tuple[Any, BaseException | None]
        try:
            stopping.begin()
            answer = pickle.loads(data)(), None
            stopping.rest()
        except BaseException as error:  # also KeyboardInterrupt: it is for the other side to know
            with suppress(KeyboardInterrupt):
                stopping.rest()
            answer = None, _portable(error)
        try:
            end.sendall(message(answer))
        except (OSError, KeyboardInterrupt):
            os._exit(1)  # nobody hears it


def _portable(error: BaseException) -> BaseException:
    """Return what was raised, or its text where it cannot be sent."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _listen(end: socket.socket, calls: SimpleQueue[bytes]) -> None:
    """Pass on what is asked, and end this process when its parent is gone."""
    data = bytearray()
    while piece := _received(end):
        data += piece
        while len(data) >= LENGTH.size and len(data) >= LENGTH.size + (size := LENGTH.unpack_from(data)[0]):
            if size:
                stopping.forget()  # it was meant for the call before
                calls.put(bytes(data[LENGTH.size:LENGTH.size + size]))
            else:
                stopping.tell()
            del data[:LENGTH.size + size]
    os._exit(1)
