"""`planner web`: the page and the JSON API, on this machine."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from planner.cli.options import common
from planner.cli.printing import note, say
from planner.errors import EXIT_OK, InputError


@click.command("web")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, metavar="N", help="Port. Default: 8080; 0 is any "
              "that is free.")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Address to listen on. Default: 127.0.0.1, this "
              "machine alone; any other prints a token that every request must carry.")
@common
def command(port: int, host: str, as_json: bool, catalogs: tuple[Path, ...]) -> int:
    """Serve every question as a page in the browser, and as a JSON API; nothing is sent anywhere.

    Needs the extra planner[web]. Ctrl-C stops it.
    """
    if as_json:
        raise InputError("--json is for answers: POST /api/plan of this server gives them")
    try:
        from planner.web.places import answers_folder
        from planner.web.server import is_loopback, serve
    except ModuleNotFoundError as error:
        raise InputError(f"planner web needs {error.name}: pip install 'planner[web]'") from None
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    if token is not None:
        note("warning: other machines can reach this server; who has the address with its token may ask")
    serve(host, port, tuple(folder.resolve() for folder in catalogs), answers_folder(), token,
          lambda address: say(f"planner is at {address} (Ctrl-C stops it)"))
    return EXIT_OK
