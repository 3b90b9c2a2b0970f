"""`python -m planner` is the `planner` command."""

from planner.cli.main import main

raise SystemExit(main())
