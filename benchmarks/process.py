"""Run the command line in a process of its own; print its wall seconds, peak resident bytes and exit code.

`python -m benchmarks.process ARGS` stays small itself: a child starts with the peak of the process that forked it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time


def main() -> int:
    """Measure `planner ARGS`, whose output is dropped."""
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "planner", *sys.argv[1:]], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - began
    child.returncode = os.waitstatus_to_exitcode(status)
    # macOS counts bytes, Linux kibibytes
    size = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(f"{seconds:.6f} {size} {child.returncode}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
