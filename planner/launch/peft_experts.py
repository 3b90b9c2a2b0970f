"""What PEFT and bitsandbytes do with experts, which Transformers 5 has as parameters of their own."""

from __future__ import annotations

from planner.catalog.architecture import Model
from planner.launch.axes import No
from planner.launch.work import Work

LEFT_WIDE = No("qlora of a mixture (Transformers 5 quantizes linear layers alone: experts stay in 16 bits)",
               {"method": "lora"})


def left_wide(work: Work) -> bool:
    """Say whether bitsandbytes would leave most of the weights as they are."""
    return work.method == "qlora" and work.model.mixes_experts


def dropout(model: Model, usual: float = 0.05) -> float:
    """Return the dropout of adapters, TRL's unless said, or none where experts have them: PEFT refuses it there
    (ParamWrapper).
    """
    return 0.0 if model.mixes_experts else usual
