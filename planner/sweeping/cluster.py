"""Variants, and windows of a portfolio, on a Dask cluster; `distributed` is imported only here, when used."""

from __future__ import annotations

import asyncio
import logging
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

from planner.errors import InputError
from planner.process.together import answered_by
from planner.process.version import __version__
from planner.process.workers import Call
from planner.sweeping.answering import answer
from planner.sweeping.task import Answers, SweepTask, SweepTerms, VariantOutcome

CONNECT_SECONDS = 8
RETRIES = 2
"""Times that a variant is asked again where a worker fails otherwise than by a PlannerError."""


@contextmanager
def cluster(terms: SweepTerms, address: str, warn: Callable[[list[str]], None]) -> Iterator[Answers]:
    """Answer variants on the workers of the scheduler at `address`. Raises InputError where there is none."""
    _distributed()
    with _quiet():
        client = _connected(address)
        try:
            if not _workers(client, address):
                warn([f"the cluster at {address} has no workers yet: waiting for some"])
            yield partial(_answers, client, address, terms)
        finally:
            client.close()


@contextmanager
def on_cluster(address: str) -> Iterator[None]:
    """What is answered together is answered by the workers of the scheduler at `address` meanwhile. Raises InputError
    where there is none.
    """
    _distributed("--scheduler")
    with _quiet():
        client = _connected(address)
        try:
            _workers(client, address)
            with answered_by(partial(_returned, client, address)):
                yield
        finally:
            client.close()


def _returned(client: Any, address: str, calls: Sequence[Call]) -> Iterator[Any]:  # noqa: ANN401
    """Yield what calls return, in their order."""
    futures = [client.submit(call, pure=False, retries=RETRIES) for call in calls]
    try:
        for future in futures:
            try:
                yield future.result()
            except _distributed().KilledWorker as error:
                raise InputError(f"--scheduler {address}: the workers were lost, {error.last_worker.address} last"
                                 ) from None
            except (CancelledError, OSError):
                raise InputError(f"--scheduler {address}: the connection was lost") from None
    finally:
        client.cancel(futures)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep a lost connection from being logged with its traceback: the error says it."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _distributed(asked: str = "--engine dask") -> Any:  # noqa: ANN401 - an optional package, in parts untyped
    try:
        return import_module("distributed")
    except ImportError:
        raise InputError(f"{asked} needs the package distributed: pip install 'planner[dask]'") from None


def _connected(address: str) -> Any:  # noqa: ANN401
    """Return a client. It is asked for only where a scheduler answers: it waits long for anything else."""
    try:
        kind = asyncio.run(_kind(address))
    except Exception as error:  # what a wrong address raises depends on its scheme
        raise InputError(f"--scheduler {address}: cannot connect: {_one_line(error)}") from None
    if kind != "Scheduler":
        raise InputError(f"--scheduler {address}: that is a Dask {kind}, not a scheduler")
    return _distributed().Client(address, timeout=CONNECT_SECONDS, set_as_default=False)


async def _kind(address: str) -> object:
    distributed = _distributed()
    security = distributed.Security().get_connection_args("client")
    async with asyncio.timeout(CONNECT_SECONDS), distributed.rpc(address, connection_args=security) as remote:
        return (await remote.identity())["type"]


def _workers(client: Any, address: str) -> int:  # noqa: ANN401
    """Return how many workers there are.

    Refuses a cluster without this planner: a worker that cannot read its task ends without a word.
    """
    version = (pkgutil.resolve_name, "planner:__version__")
    try:
        answers = client.run(*version)
        versions = {client.run_on_scheduler(*version), *answers.values()}
    except ImportError:
        raise InputError(f"--scheduler {address}: planner must be installed where its scheduler and workers run"
                         ) from None
    if versions != {__version__}:
        raise InputError(f"--scheduler {address}: planner is {', '.join(sorted(versions - {__version__}))} there, "
                         f"{__version__} here")
    return len(answers)


def _answers(client: Any, address: str, terms: SweepTerms, tasks: Sequence[SweepTask]) -> Iterator[VariantOutcome]:  # noqa: ANN401
    """Yield outcomes as they are done."""
    index_of = {client.submit(answer, task, terms, pure=False, retries=RETRIES): task.index for task in tasks}
    for future in _distributed().as_completed(list(index_of), loop=client.loop):
        yield _outcome(future, index_of.pop(future), address)
        future.release()


def _outcome(future: Any, index: int, address: str) -> VariantOutcome:  # noqa: ANN401
    if future.status == "finished":
        outcome = future.result()
        assert isinstance(outcome, VariantOutcome)
        return outcome
    if future.status != "error":
        raise InputError(f"--scheduler {address}: the connection was lost; what was done until then is kept")
    error = future.exception()
    if isinstance(error, _distributed().KilledWorker):
        return VariantOutcome(index, None, f"the workers that had it were lost, {error.last_worker.address} last")
    raise error


def _one_line(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_SECONDS} s"
    return " ".join(str(error).split()) or type(error).__name__
