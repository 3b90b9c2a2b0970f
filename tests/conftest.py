"""What each process of a test run begins with: compiled modules for those that it starts, answers that it shares with
others, and no search for garbage.
"""

import gc
import os
import shutil
import signal
import sys
import tempfile

import pytest

from planner.cli.main import FEW_COLLECTIONS
from tests.processes import ANSWERS


def pytest_configure(config):
    """Where nothing compiled is kept, keep it for as long as the tests run: they start some hundred processes."""
    if sys.dont_write_bytecode and "PYTHONPYCACHEPREFIX" not in os.environ:
        _folder(config, "PYTHONPYCACHEPREFIX")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if ANSWERS not in os.environ:
        _folder(config, ANSWERS)
    gc.set_threshold(FEW_COLLECTIONS)
    # a shell starts what runs in its background deaf to Ctrl-C, and so would be all that tests start and interrupt
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _folder(config, variable):
    """Make a folder for as long as the tests run, known to all their processes by a variable."""
    folder = os.environ[variable] = tempfile.mkdtemp(prefix="planner-tests-")
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems():
    """Have hypothesis draw alike whatever modules are loaded: it would parse them all, 2 s in each process."""
    drawing = sys.modules.get("hypothesis.internal.conjecture.providers")
    if hasattr(drawing, "_get_local_constants"):
        drawing._get_local_constants = lambda: drawing._local_constants


def pytest_collection_finish():
    """Look for no garbage among the tests themselves."""
    gc.freeze()


@pytest.fixture
def fewer_requests(monkeypatch):
    """Replay a quarter of the usual requests, where replays are compared with replays."""
    for place, many in (("replay.REQUESTS", 1000), ("trial.REQUESTS", 1000), ("day.PEAK_REQUESTS", 500)):
        monkeypatch.setattr(f"planner.jobs.serving.{place}", many)
