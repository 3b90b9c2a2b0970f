"""A connection of the server, which is not held open by who begins a request and does not come to an end."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from planner.web.limits import MOST_HEAD_SECONDS


class Connection(H11Protocol):
    """As uvicorn has it, and closed where the head of a request takes too long."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request, and wait for the rest of its head."""
        super().data_received(data)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._heard()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._heard()
        elif self._late is None:
            self._late = self.loop.call_later(MOST_HEAD_SECONDS, self.transport.close)

    def _heard(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
