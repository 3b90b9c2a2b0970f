"""Fewer requests for what compares replays with replays."""

import pytest


@pytest.fixture
def fewer_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replay a quarter of the usual requests: what is compared is replayed alike on both sides."""
    for module in ("replay", "trial"):
        monkeypatch.setattr(f"planner.jobs.serving.{module}.REQUESTS", 1000)
