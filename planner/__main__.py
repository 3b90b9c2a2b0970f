"""`python -m planner`, and the `planner` command. Ctrl-C is seen to before anything else is imported."""

from planner.process.interrupts import leave_at_once, watched

leave_at_once()


def run() -> int:
    """Run the command line as a process of its own, and return the exit code."""
    from planner.cli.main import main

    return watched(main)


if __name__ == "__main__":
    raise SystemExit(run())
