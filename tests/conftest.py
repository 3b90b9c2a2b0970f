"""What each process of a test run begins with: compiled modules for those that it starts, and no search for garbage."""

import gc
import os
import shutil
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


def pytest_collection_finish():
    """Look for no garbage among the tests themselves."""
    gc.freeze()
