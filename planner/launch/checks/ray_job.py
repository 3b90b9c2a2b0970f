"""Ray's own reading of a job: the command that submits it, its driver's placement group, and its tasks' options.

The driver runs without a cluster: what it would place and start is written down, and each task's function is called.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import ray
from ray.dashboard.modules.job.cli import submit
from ray.dashboard.modules.job.common import JobSubmitRequest
from ray.remote_function import RemoteFunction
from ray.runtime_env import RuntimeEnv
from ray.util.placement_group import _valid_resource_shape, validate_placement_group

BASH = "bash"


def resolve(folder: Path) -> dict[str, object]:
    """Return the nodes that a job starts, and the GPUs of the first."""
    with (folder / "launch.json").open() as file:
        start = str(json.load(file)["start"])
    driver = _loaded(folder / _submitted(folder, start))
    nodes, called = _run(driver, folder)
    assert [one["rank"] for one in called] == [*range(len(nodes))], "a node has another number than its bundle"
    assert [one["gpus"] for one in called] == nodes, "a task has other GPUs than its bundle"
    return {"cluster": [len(nodes), nodes[0]]}


def _submitted(folder: Path, start: str) -> str:
    """Return the driver that the line submits, as Ray's own command reads it."""
    words = shlex.split(start.partition("ray job submit")[2].partition("2>&1")[0])
    with submit.make_context("submit", words) as context:
        said: dict[str, Any] = context.params
    runtime = RuntimeEnv(working_dir=str((folder / said["working_dir"]).resolve()))
    JobSubmitRequest(entrypoint=shlex.join(said["entrypoint"]), runtime_env={"working_dir": runtime["working_dir"]})
    python, driver = said["entrypoint"]
    assert python == "python3", f"the entrypoint is {python}"
    return str(driver)


def _loaded(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"driver_{abs(hash(path))}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(driver: ModuleType, folder: Path) -> tuple[list[int], list[dict[str, Any]]]:
    """Run the driver with nothing behind Ray's functions; return the GPUs of its bundles, and the tasks it starts."""
    bundles: list[int] = []
    called: list[dict[str, Any]] = []

    def placed(asked: list[dict[str, float]], strategy: str) -> Any:  # noqa: ANN401 - Ray's own class
        validate_placement_group(asked, strategy)
        assert strategy == "STRICT_SPREAD", f"nodes may share a machine: {strategy}"
        bundles.extend(int(one["GPU"]) for one in asked)
        return SimpleNamespace(ready=lambda: None, bundle_specs=asked)

    def remote(task: RemoteFunction, args: Sequence[Any], kwargs: dict[str, Any], **options: Any) -> Any:  # noqa: ANN401
        where = options["scheduling_strategy"]
        at, group = where.placement_group_bundle_index, where.placement_group
        needed = {"CPU": options["num_cpus"], "GPU": options["num_gpus"]}
        assert _valid_resource_shape(needed, [group.bundle_specs[at]]), f"bundle {at} has no room for {needed}"
        if task._function.__name__ == "address":
            return f"10.0.0.{at}"
        called.append({"rank": at, "gpus": int(options["num_gpus"])})
        task._function(*args, **kwargs)
        return None

    def ran(words: Sequence[str], *, check: bool, env: dict[str, str]) -> None:
        assert words[0] == BASH
        scripts = [word for word in words[-1].split() if word.endswith(".sh")] if words[1] == "-c" else [words[1]]
        missing = [name for name in scripts if not (folder / name).exists()]
        assert not missing, f"it starts {', '.join(missing)}, which is not there"
        told = env.get("NODE_RANK", env.get("NODE"))
        assert "RAY_STARTED" in env or told == str(called[-1]["rank"]), f"a node is told that it is {told}"

    with patch.multiple(ray, init=lambda: None, get=lambda found: found, shutdown=lambda: None), \
            patch.multiple(driver, placement_group=placed, remove_placement_group=lambda _: None), \
            patch.object(RemoteFunction, "_remote", remote), patch.object(subprocess, "run", ran):
        driver.main()
    sys.modules.pop(driver.__name__, None)
    return bundles, called
