"""Messages between a worker and the process that started it, and what a call tells before it has ended."""

from __future__ import annotations

import pickle
import socket
import struct
import time
from collections.abc import Callable
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
    """The socket to the process that started this one, the same if that wants news, and when there was news."""

    end: socket.socket | None = None
    told: socket.socket | None = None
    when = -EVERY


def message(content: object) -> bytes:
    """Return what can be pickled as it is sent."""
    data = pickle.dumps(content, pickle.HIGHEST_PROTOCOL)
    return LENGTH.pack(len(data)) + data


def report_on() -> None:
    """Let what this worker tells from now on reach the process that started it."""
    Parent.told = Parent.end


def tell(news: Callable[[], object]) -> None:
    """Send how far the call is, where this is a worker that reports and has not just done so; else nothing is asked."""
    if Parent.told is not None and time.monotonic() - Parent.when > EVERY:
        Parent.when = time.monotonic()
        Parent.told.sendall(message(News(news())))
