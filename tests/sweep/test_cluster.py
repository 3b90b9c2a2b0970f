"""A Dask cluster of two worker processes gives what this machine gives, also when it loses one."""

import os
import signal
import socket
import sys
from types import SimpleNamespace

import pytest

import planner as package
import planner.sweeping.cluster as engine
from benchmarks.portfolios import portfolio
from planner.errors import InputError
from planner.solver.fleet.windows import improved
from planner.solver.settings import Settings
from planner.sweeping.cluster import cluster
from tests.sweep.conftest import SIX, timeless

VARY = [part for text in SIX for part in ("--vary", text)]


@pytest.fixture(scope="module")
def distributed():
    """Imported by the one process of the test run that comes here: it takes a second."""
    return pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def dask(distributed):
    forked = {"distributed.worker.multiprocessing-method": "forkserver"}  # from one process that has the modules
    two = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with pytest.importorskip("dask").config.set(forked), distributed.LocalCluster(**two) as running:
        yield running


def test_a_cluster_gives_the_same_lines(planner, question, expected, dask):
    ran = planner("sweep", question, *VARY, "--engine", "dask", "--scheduler", dask.scheduler_address)
    assert (ran.code, ran.err) == (0, "")
    lines = [timeless(line) for line in ran.out.splitlines()]
    assert [line["plan"] for line in lines] == [one["plan"] for one in expected]
    assert [tuple(line["variant"].values()) for line in lines][:3] == [("1G", "3d"), ("1G", "1h"), ("2G", "3d")]


def test_a_lost_worker_loses_no_variant(six, expected, dask):
    tasks, terms = six
    found = {}
    with cluster(terms, dask.scheduler_address, print) as answers:
        for outcome in answers(tasks):
            if not found:
                os.kill(next(iter(dask.workers.values())).pid, signal.SIGKILL)
            found[outcome.index] = timeless(outcome.plan)
    assert [found[index] for index in range(6)] == expected


def test_a_cluster_solves_windows_of_a_portfolio_to_the_same_schedule(dask, monkeypatch):
    monkeypatch.setattr("planner.solver.fleet.windows.ROUNDS", 1_000)
    problem, limited = portfolio(12, 3, 26, 1), Settings(deterministic_limit=1.0, linearization=2)
    alone = improved(problem, limited)
    asked = []
    real = engine._returned
    monkeypatch.setattr(engine, "_returned", lambda client, address, calls: asked.append(len(calls)) or real(
        client, address, calls))
    with engine.on_cluster(dask.scheduler_address):
        assert improved(problem, limited) == alone
    assert asked


def test_a_cluster_is_for_a_portfolio(planner, question, search):
    ran = planner("plan", question, "--scheduler", "127.0.0.1:1")
    assert (ran.code, ran.out, search.asked) == (2, "", [])
    assert "--scheduler: a cluster solves windows of a portfolio" in ran.err


@pytest.mark.parametrize(("address", "message"), [
    ("silent", "no answer within 0.5 s"), ("worker", "that is a Dask Worker, not a scheduler"),
    ("nowhere://1", "unknown address scheme"), ("nowhere", "missing port number")])
def test_what_is_no_scheduler_is_refused_soon(planner, question, search, dask, monkeypatch, address, message):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        if address == "silent":
            address = f"127.0.0.1:{silent.getsockname()[1]}"
            monkeypatch.setattr(engine, "CONNECT_SECONDS", 0.5)
        elif address == "worker":
            address = next(iter(dask.scheduler_info["workers"]))
        ran = planner("sweep", question, *VARY, "--engine", "dask", "--scheduler", address)
    assert (ran.code, ran.out, search.asked) == (2, "", [])
    assert f"--scheduler {address}: " in ran.err
    assert message in ran.err


def test_a_cluster_of_another_version_is_refused(planner, question, dask, monkeypatch):
    monkeypatch.setattr(engine, "__version__", "0.0.9")
    ran = planner("sweep", question, *VARY, "--engine", "dask", "--scheduler", dask.scheduler_address)
    assert (ran.code, ran.out) == (2, "")
    assert f"planner is {package.__version__} there, 0.0.9 here" in ran.err


def test_a_variant_that_loses_its_workers_is_an_error_and_a_lost_scheduler_ends_the_sweep(distributed):
    error = distributed.KilledWorker("key", SimpleNamespace(address="tcp://w:1"), 3)
    killed = SimpleNamespace(status="error", exception=lambda: error)
    assert engine._outcome(killed, 7, "s:1").error == "the workers that had it were lost, tcp://w:1 last"
    with pytest.raises(InputError, match="--scheduler s:1: the connection was lost"):
        engine._outcome(SimpleNamespace(status="cancelled"), 7, "s:1")
    bug = SimpleNamespace(status="error", exception=lambda: ZeroDivisionError("boom"))
    with pytest.raises(ZeroDivisionError):
        engine._outcome(bug, 7, "s:1")


def test_without_distributed_the_extra_is_named(planner, question, search, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    ran = planner("sweep", question, *VARY, "--engine", "dask", "--scheduler", "127.0.0.1:1")
    assert (ran.code, ran.out, search.asked) == (2, "", [])
    assert "pip install 'planner[dask]'" in ran.err


@pytest.mark.parametrize(("args", "message"), [
    (["--engine", "dask"], "--engine dask needs --scheduler ADDRESS"),
    (["--scheduler", "127.0.0.1:1"], "--scheduler is for --engine dask"),
    (["--engine", "dask", "--scheduler", "127.0.0.1:1", "--workers", "2"], "--workers is for --engine local"),
    (["--engine", "ray"], "'ray' is not one of 'local', 'dask'"), (["--workers", "0"], "--workers"),
    (["--time-limit", "x"], "--time-limit"),
])
def test_options_that_do_not_go_together_are_refused(planner, question, search, args, message):
    ran = planner("sweep", question, *VARY, *args)
    assert (ran.code, ran.out, search.asked) == (2, "", [])
    assert message in ran.err
