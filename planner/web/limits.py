"""How much one server does at once, and for how long; docs/web.md says the same."""

from __future__ import annotations

MOST_BODY = 1 << 20
"""Bytes of a request."""
MOST_HEAD = 2 * MOST_BODY
"""Bytes of an address with its headers: of a question of most bytes, few of which are written as three."""
MOST_HEAD_SECONDS = 20.0
MOST_BODY_SECONDS = 120.0
"""Until all of an address with its headers has come, and then all of the request: who is slower is cut off."""
MOST_FILE = 16 << 20
"""Bytes of an upload."""
MOST_FILES = 50
"""Uploads kept on disk; the oldest go first."""
MOST_PLANS = 4
"""Searches at once; others wait in line."""
ESTIMATORS = 2
"""Processes that answer estimates; as many as a small machine has cores."""
MOST_WAITING = 100
"""Questions in line; one more is refused."""
MOST_SECONDS = 900.0
"""Of one search: then it ends with the best that it has."""
MOST_SECONDS_AT_ONCE = 60.0
"""Of what holds up other people's estimates: one of these, what is wrong with a question, a file of an answer."""
LEAVE_SECONDS = 15.0
"""After a search was told to end; then its process is ended."""
MOST_MEMORY = 8 << 30
"""Bytes of data of one process that answers."""
BEHIND = 15
"""By how much searches yield to estimates, as `nice` counts: at 10 they took a fourth of the processors from 50 people
who ask at once, at 19 other work on the machine would starve them.
"""
MOST_KEPT = 1000
"""Finished answers kept on disk; the oldest go first."""
MOST_REMEMBERED = 500
"""Answers held in memory."""
