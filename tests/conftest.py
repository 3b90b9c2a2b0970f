"""What each process of a test run begins with: compiled modules for those that it starts, and no search for garbage."""

import gc
import os
import shutil
import signal
import sys
import tempfile

from planner.cli.main import FEW_COLLECTIONS


def pytest_configure(config):
    """Where nothing compiled is kept, keep it for as long as the tests run: they start some hundred processes."""
    if sys.dont_write_bytecode and "PYTHONPYCACHEPREFIX" not in os.environ:
        folder = os.environ["PYTHONPYCACHEPREFIX"] = tempfile.mkdtemp(prefix="planner-tests-")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    gc.set_threshold(FEW_COLLECTIONS)
    # a shell starts what runs in its background deaf to Ctrl-C, and so would be all that tests start and interrupt
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish():
    """Look for no garbage among the tests themselves."""
    gc.freeze()
