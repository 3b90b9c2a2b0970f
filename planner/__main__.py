"""`python -m planner`, and the `planner` command. Ctrl-C is seen to before anything else is imported."""

import gc

from planner.process.interrupts import leave_at_once, watched

leave_at_once()


def run() -> int:
    """Run the command line as a process of its own, and return the exit code."""
    from planner.cli.main import main

    try:
        return watched(main)
    finally:
        # Python looks for garbage once more as it ends, a tenth of a second that nobody needs
        gc.freeze()


if __name__ == "__main__":
    raise SystemExit(run())
