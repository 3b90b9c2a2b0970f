"""Axes of a layout that are given alone: `--tp 8`, `--zero 3`, `--cpu-offload`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from planner.cli.rephrased import given_flags
from planner.scenario.flag_names import ON

AXES = {said: axis for axis, names in {
    "tp": "tp tp-size tp-degree tensor-parallel tensor-parallel-degree tensor-parallel-size tensor-model-parallel-size "
          "num-shard",
    "dp": "dp dp-size dp-degree data-parallel data-parallel-degree data-parallel-size",
    "pp": "pp pp-size pp-degree pipeline-parallel pipeline-parallel-degree pipeline-parallel-size "
          "pipeline-model-parallel-size",
    "ep": "ep ep-size ep-degree expert-parallel expert-parallel-degree expert-parallel-size "
          "expert-model-parallel-size moe-expert-parallel-size",
    "cp": "cp cp-size cp-degree context-parallel context-parallel-degree context-parallel-size "
          "sequence-parallel-degree sequence-parallel-size",
    "ulysses": "ulysses ulysses-degree", "ring": "ring ring-degree",
    "pipefusion": "pipefusion pipefusion-parallel-degree", "zero": "zero zero-stage deepspeed-stage",
    "recompute": "recompute recompute-granularity",
    "vpp": "vpp virtual-pipeline-model-parallel-size virtual-pipeline-parallel-size",
    "expert_tp": "expert-tensor-parallel-size etp",
    "mbs": "mbs micro-batch micro-batch-size per-device-train-batch-size per-device-batch-size "
           "per-gpu-batch-size"}.items() for said in names.split()}
"""What people call the axes of a layout on the command line, with their names in --layout."""
OFFLOAD = ("offload", "cpu-offload", "offload-optimizer", "optimizer-offload")
"""What people call moving the optimizer's states off the GPUs, with or without a word for where to."""


def with_axes(args: Sequence[str], options: Mapping[str, click.Option]) -> list[str]:
    """Return the arguments with axes that are given alone as parts of the layout, where a command takes one."""
    if "--layout" not in options:
        return list(args)
    argv: list[str] = []
    axes: list[str] = []
    waiting, whole = list(args), given_flags(args, options)
    # without the batch of a step, what a GPU takes at once makes it, and the plan chooses its own micro-batch
    makes = "--node" not in options and ("grad-accum" in whole or "global-batch" not in whole)
    while waiting:
        name, given, value = (word := waiting.pop(0)).partition("=")
        if word == "--layout" and waiting:
            argv += [word, waiting.pop(0)]
            continue
        if name.removeprefix("--").replace("_", "-") in OFFLOAD:
            where = value or (waiting.pop(0) if waiting and not waiting[0].startswith("-") else "")
            axes += ["offload_optimizer=1", *(["offload_to=nvme"] if where.lower() == "nvme" else [])]
            continue
        if (on := ON.get(name.removeprefix("--").replace("_", "-"))) and not given and (
                not waiting or waiting[0].startswith("-")):
            axes.append(on)
            continue
        axis = AXES.get(name.removeprefix("--").replace("_", "-")) if name.startswith("--") else None
        if axis is None or name in options or not (given or waiting) or (axis == "mbs" and makes):
            argv.append(word)
            continue
        axes.append(f"{axis}={value if given else waiting.pop(0)}")
    if axes and "--layout" in argv[:-1]:
        at = argv.index("--layout") + 1
        argv[at] = ",".join([argv[at], *axes])
    elif axes:
        argv += ["--layout", ",".join(axes)]
    return argv
