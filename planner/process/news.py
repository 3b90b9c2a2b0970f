"""Messages between a worker and the process that started it, and what a call tells before it has ended."""

from __future__ import annotations

import pickle
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

LENGTH = struct.Struct("!Q")
"""What precedes a message. A message without content asks a worker to stop."""
EVERY = 0.2
"""Seconds between news."""


@dataclass(frozen=True, slots=True)
class News:
    """What a call says before it has ended."""

    content: object


class Parent:
    """The socket to the process that started this one, the same if that wants news, who hears news in this process, and
    when there was news.
    """

    end: socket.socket | None = None
    told: socket.socket | None = None
    heard: Callable[[object], None] | None = None
    when = -EVERY


def message(content: object) -> bytes:
    """Return what can be pickled as it is sent."""
    data = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


def report_on() -> None:
    """Let what this worker tells from now on reach the process that started it."""
    Parent.told = Parent.end


@contextmanager
def hearing(heard: Callable[[object], None]) -> Iterator[None]:
    """What is told meanwhile is heard in this process."""
    Parent.heard = heard
    try:
        yield
    finally:
        Parent.heard = None


def tell(news: Callable[[], object]) -> None:
    """Say how far the call is, where somebody wants to know and was not just told; else nothing is asked."""
    if (Parent.told is not None or Parent.heard is not None) and time.monotonic() - Parent.when > EVERY:
        Parent.when = time.monotonic()
        content = news()
        if Parent.told is not None:
            Parent.told.sendall(message(News(content)))
        if Parent.heard is not None:
            Parent.heard(content)
