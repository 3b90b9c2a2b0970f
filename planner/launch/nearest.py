"""The nearest plan that a target can be told, as its question is typed."""

from __future__ import annotations

from collections.abc import Mapping

from planner.catalog.load import Catalog
from planner.jobs.diffusion.options import AXES as DIFFUSION
from planner.jobs.generation.options import AXES as GENERATION
from planner.jobs.posttraining.held import AXES as POSTTRAINING
from planner.jobs.training.one_layout import KEYS as TRAINING
from planner.scenario.flags import NAMES, TABLE

_LAYOUT = {*TRAINING, *POSTTRAINING, *DIFFUSION, *GENERATION}
"""What `--layout` may name of some kind of work."""
_LEFT_OUT = (None, False, "all", "none", "the stack's")
"""Values that a question has where nobody states one."""


def held_to(target: str, catalog: Catalog, stack: str = "") -> str:
    """Return the flag that holds a plan to a target; empty where there is none.

    stack: of the plan at hand; that of its own engine it has already, which knows not what the engine cannot be told.
    """
    release = catalog.releases.target(target)
    return f"--launchable {target}" if release.work in ("training", "posttraining") else (
        f"--engine {release.stacks[0]}" if release.work == "serving" and stack not in release.stacks else "")


def typed(instead: Mapping[str, object]) -> str:
    """Return values of a layout and of flags as the command line takes them; the search chooses what is neither."""
    layout = ",".join(f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
                      for key, value in instead.items() if key in _LAYOUT)
    flags = {name: value for name, value in instead.items() if name in NAMES}
    said = [f"--layout {layout}"] if layout else []
    left = [_flag(name) for name, value in flags.items() if value in _LEFT_OUT]
    said += [_flag(name) + ("" if name in TABLE and TABLE[name].switch else f" {value}")
             for name, value in flags.items() if value not in _LEFT_OUT]
    return ", ".join(filter(None, (" ".join(said), f"without {', '.join(left)}" if left else "")))


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
