"""Optimizers other than the stack's AdamW: what they keep per parameter on top of weights, gradients and master copy.

AdamW keeps two moments in 32 bits, 8 bytes. In 8 and 4 bits each has a 32-bit scale for every block of 256 and 128
(torchao optim/subclass_8bit.py, subclass_4bit.py); momentum SGD and Lion keep one (arXiv 2302.06675); Muon keeps one
for matrices (its Adam for tables and vectors is left out); Adafactor keeps a row and a column of second moments for
each matrix (arXiv 1804.04235), next to nothing.
"""

from __future__ import annotations

from planner.catalog.stack import Stack
from planner.errors import UnknownName

MOMENT_BYTES = {"adamw-8bit": 2 * (1 + 4 / 256), "adamw-4bit": 2 * (0.5 + 4 / 128), "sgd-momentum": 4.0, "lion": 4.0,
                "muon": 4.0, "adafactor": 0.02}
"""Bytes per parameter of an optimizer's states, by its name."""


def with_optimizer(stack: Stack, optimizer: str | None) -> Stack:
    """Return the stack with the states of `optimizer`; none, or adamw, is its own recipe. Raises UnknownName."""
    if optimizer is None or optimizer == "adamw":
        return stack
    if optimizer not in MOMENT_BYTES:
        raise UnknownName("optimizer", optimizer, ["adamw", *MOMENT_BYTES])
    moments = MOMENT_BYTES[optimizer]
    return stack.model_copy(update={"states": {precision: states.model_copy(update={"moments": moments})
                                               for precision, states in stack.states.items()}})
