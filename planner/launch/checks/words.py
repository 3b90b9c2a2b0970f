"""Words of the stacks for what the planner calls otherwise."""

from __future__ import annotations

from collections.abc import Iterable

OPTIMIZERS = {"adamw_torch_fused": "adamw", "adamw_torch": "adamw", "adamw_bnb_8bit": "adamw-8bit",
              "adamw_8bit": "adamw-8bit", "adamw_torch_8bit": "adamw-8bit",
              "adamw_torch_4bit": "adamw-4bit", "sgd": "sgd-momentum",
              "lion_32bit": "lion", "adafactor": "adafactor", "paged_adamw_32bit": "paged-adamw",
              "paged_adamw_8bit": "paged-adamw-8bit"}
NEUTRAL: dict[str, object] = {"tp": 1, "cp": 1, "pp": 1, "vpp": 1, "ep": 1, "sp": 0, "hsdp": 1, "stages": "even",
                              "schedule": "1f1b", "nvme": 0}
"""What a program that has no such axis comes to."""
EVERY = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""What adapters on every linear layer come to, also of models whose modules are called otherwise."""
ALL = ("all", "all-linear")
"""How stacks say every linear layer."""


def adapted(names: str | Iterable[str] | None) -> list[str]:
    """Return the modules that a stack is told have adapters: all of a layer where it is every linear one."""
    said = [names] if isinstance(names, str) else list(names or ALL)
    return list(EVERY) if said[0] in ALL else said
