"""Words of the stacks for what the planner calls otherwise."""

from __future__ import annotations

OPTIMIZERS = {"adamw_torch_fused": "adamw", "adamw_torch": "adamw", "adamw_bnb_8bit": "adamw-8bit",
              "adamw_8bit": "adamw-8bit", "adamw_torch_8bit": "adamw-8bit",
              "adamw_torch_4bit": "adamw-4bit", "sgd": "sgd-momentum",
              "lion_32bit": "lion", "adafactor": "adafactor", "paged_adamw_32bit": "paged-adamw",
              "paged_adamw_8bit": "paged-adamw-8bit"}
NEUTRAL: dict[str, object] = {"tp": 1, "cp": 1, "pp": 1, "vpp": 1, "ep": 1, "sp": 0, "hsdp": 1, "stages": "even",
                              "schedule": "1f1b", "nvme": 0}
"""What a program that has no such axis comes to."""
