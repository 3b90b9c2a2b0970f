"""Ctrl-C from the first moment of the process to its last: exit code 130 and at most one line, never a traceback.

Until there is a command that could be told, Ctrl-C ends the process at once. Then it is a KeyboardInterrupt, which a
search takes as the word to answer with what it has. Whatever becomes of that exception, Ctrl-C is remembered here.
What this file imports is there as soon as Python is, so that the first moment is early.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from types import FrameType
else:
    import _signal as signal  # what signal is made of, without its enumerations

EXIT_INTERRUPTED = 130
"""As in planner.errors, which is not imported yet at the first moment."""
SAME = 1.0
"""Seconds within which a second Ctrl-C is the first one, passed on by a wrapper."""


class _Watch:
    """When Ctrl-C came first, by a monotonic clock, and whether it is still to be raised."""

    came: float | None = None
    due = True


def leave_at_once() -> None:
    """Let Ctrl-C end this process from now on: there is nothing yet that could answer."""
    signal.signal(signal.SIGINT, _leave)


def came() -> bool:
    """Say whether there was a Ctrl-C."""
    return _Watch.came is not None


def watched(command: Callable[[], int]) -> int:
    """Return the exit code of a command that Ctrl-C may interrupt: 130 where it came, whatever became of it."""
    sys.unraisablehook = _swallowed
    signal.signal(signal.SIGINT, _interrupt)
    try:
        code = command()
    except KeyboardInterrupt:
        _leave()
    # the answer is out: what is left is the end of the interpreter, in which Ctrl-C would only leave a traceback
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if came():
        from contextlib import suppress

        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        # Python would end by the signal itself where the exception has once passed through exec()
        os._exit(EXIT_INTERRUPTED)
    return code


def _interrupt(number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    if _Watch.came is not None and not _Watch.due and now - _Watch.came > SAME:
        _leave()
    if _Watch.due:
        _Watch.came, _Watch.due = now, False
        raise KeyboardInterrupt


def _leave(number: int = 2, frame: FrameType | None = None) -> None:
    os.write(2, b"Error: interrupted\n")
    os._exit(EXIT_INTERRUPTED)


def _swallowed(unraisable: sys.UnraisableHookArgs) -> None:
    """Raise a KeyboardInterrupt again that came where nothing can be raised, as in a finalizer."""
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)
        return
    from threading import Timer, main_thread

    _Watch.due = True
    Timer(0.01, signal.pthread_kill, (main_thread().ident, signal.SIGINT)).start()
