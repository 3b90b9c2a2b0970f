"""The server: what it serves, to whom, from its start to its end."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware

from planner.errors import InputError, PlannerError
from planner.web import interface, pages
from planner.web.answering import Folders
from planner.web.connection import Connection
from planner.web.desk import Desk
from planner.web.guard import Guard
from planner.web.limits import LEAVE_SECONDS, MOST_HEAD


def application(folders: Folders, keep: Path, token: str | None = None) -> Starlette:
    """Return the application. folders: the user's catalogs; keep: where finished answers are kept; token: what every
    request must carry, none for this machine alone.
    """
    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        app.state.desk = Desk(folders, keep)
        try:
            yield
        finally:
            app.state.desk.close()

    return Starlette(routes=[*interface.routes(), *pages.routes()], lifespan=life,
                     middleware=[Middleware(Guard, token=token)],
                     exception_handlers={PlannerError: interface.refused, KeyError: interface.unknown})


def configured(app: Starlette) -> uvicorn.Config:
    """Return how an application is served: an address may hold a whole question."""
    return uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, http=Connection,
                          h11_max_incomplete_event_size=MOST_HEAD, timeout_graceful_shutdown=round(LEAVE_SECONDS))


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine alone."""
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


def serve(host: str, port: int, folders: Folders, keep: Path, token: str | None, say: Callable[[str], None]) -> None:
    """Serve until the process is told to end; `say` is told the address. Raises InputError where it cannot listen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot listen on {host} port {port}: {getattr(error, 'strerror', None) or error}; choose "
                         "another --port or --host") from None
    with listening:
        shown = f"[{host}]" if ":" in host else host
        at = f"http://{shown}:{listening.getsockname()[1]}/"
        say(at if token is None else f"{at}?token={token}")
        with suppress(KeyboardInterrupt):
            uvicorn.Server(configured(application(folders, keep, token))).run(sockets=[listening])
