"""The replicas of a folder: what each is started with, on each of its nodes, by a stand-in for the engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.launch.checks.started import Started, started

ROUTED = "http://10.0.0.1:8001 http://10.0.0.2:8001"
"""Addresses that the router of a check is told."""


@dataclass(frozen=True)
class LaunchedKind:
    """One kind of replica as launch.json has it."""

    name: str
    script: str
    nodes: int
    shape: dict[str, Any]
    gpu: dict[str, Any]
    models: tuple[str, ...]
    """Variables that name checkpoints."""

    def started(self, folder: Path, rank: int, checkpoint: str, launcher: str) -> Started:
        """Run the script up to the engine, as the node of that number of the replica."""
        return started(folder, self.script, launcher, environment={
            **dict.fromkeys(self.models, checkpoint), "NNODES": str(self.nodes), "NODE_RANK": str(rank)})


def replicas_of(folder: Path) -> list[LaunchedKind]:
    """Return the kinds of replicas of a folder."""
    manifest = json.loads((folder / "launch.json").open().read())
    models = tuple(name for name in manifest["variables"] if name.startswith("MODEL"))
    return [LaunchedKind(part["name"], part["script"], part["nodes"], part["model"], part["gpu"], models)
            for part in manifest["parts"] if "model" in part]


def resolved_by(folder: Path, resolve: Callable[[Path, LaunchedKind, int], dict[str, object]]) -> dict[str, object]:
    """Return, for each kind of replica, the axes that all its nodes come to. AssertionError where they differ."""
    found: dict[str, object] = {}
    for replica in replicas_of(folder):
        every = [resolve(folder, replica, rank) for rank in range(replica.nodes)]
        assert all(one == every[0] for one in every), f"the nodes of {replica.name} come to different layouts"
        found[replica.name] = every[0]
    return found


def workers_of(args: Any) -> dict[str, int]:  # noqa: ANN401 - the router's own class
    """Return how many replicas a router was told of."""
    return {"workers": len(args.worker_urls) or len(args.prefill_urls) + len(args.decode_urls)}


def router_urls(folder: Path, launcher: str) -> list[str] | None:
    """Return the arguments that the router is started with; none where the folder has no router."""
    if not (folder / "router.sh").exists():
        return None
    return started(folder, "router.sh", launcher, environment={
        "WORKERS": ROUTED, "PREFILL": ROUTED, "DECODE": ROUTED}).words
