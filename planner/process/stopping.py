"""The word to end a call soon, as a worker hears it: by asking, or where it does not ask, by an interrupt.

Who has asked and heard it ends by itself, and who has found its answer only writes it down: neither is interrupted.
"""

from __future__ import annotations

import signal
from contextlib import suppress
from threading import Event, Lock, Timer, main_thread

GRACE = 0.5
"""Seconds after which a call that is told to stop and does not ask is interrupted, as by Ctrl-C."""
_stop = Event()
_heard = Event()
_calling = Event()
_turn = Lock()


class _Due:
    """The interrupt that is to come."""

    timer: Timer | None = None


def told_to_stop() -> bool:
    """Say whether this process is a worker whose call is to end soon, with what it has so far."""
    if not _stop.is_set():
        return False
    _heard.set()
    return True


def only_to_be_told() -> None:
    """Say that the answer of this call is found: the word to stop comes too late for what is still written of it."""
    _heard.set()
    with suppress(KeyboardInterrupt), _turn:  # an interrupt on its way arrives here
        pass


def begin() -> None:
    """Say that a call is at work."""
    _calling.set()


def rest() -> None:
    """Say that no call is at work: what would interrupt it now would end the process."""
    _calling.clear()
    with _turn:  # an interrupt on its way arrives here
        pass


def tell() -> None:
    """Tell the call that it is to end soon."""
    _stop.set()
    _Due.timer = Timer(GRACE, _interrupt)
    _Due.timer.start()


def forget() -> None:
    """Take the word back: another call begins."""
    _stop.clear()
    _heard.clear()
    if _Due.timer is not None:
        _Due.timer.cancel()


def _interrupt() -> None:
    """Interrupt a call that has not heard that it is to stop."""
    with _turn:
        if _stop.is_set() and _calling.is_set() and not _heard.is_set():
            signal.pthread_kill(main_thread().ident or 0, signal.SIGINT)
