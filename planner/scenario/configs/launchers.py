"""GPUs that launchers count: torchrun, accelerate, deepspeed, and the variables before a line."""

from __future__ import annotations

from planner.scenario.configs.reading import Reading

NODE = 8
"""GPUs of a machine, where machines alone are counted."""


def launched(reading: Reading) -> int | None:
    """Return the GPUs that a launcher's flags, or variables before the line, count; none where they do not."""
    source = reading.source
    set_ = {**source.environment, **dict(word.split("=", 1) for word in source.words if "=" in word)}
    each = reading.number("nproc_per_node", "num_gpus", "gpus_per_node", "nproc-per-node")
    nodes = reading.number("nnodes", "num_nodes")
    shown = set_.get("CUDA_VISIBLE_DEVICES", "")
    if each is None and set_.get("NPROC_PER_NODE", "").isdecimal():
        each = int(set_["NPROC_PER_NODE"])
    if each is None and shown and all(part.strip().isdecimal() for part in shown.split(",")):
        each = len(shown.split(","))
    if nodes is None and set_.get("NNODES", "").isdecimal():
        nodes = int(set_["NNODES"])
    if each is None and nodes and nodes > 1:
        each = NODE
        reading.defaults.append(f"{NODE} GPUs a node")
    return each * (nodes or 1) if each else reading.number("num_processes")
