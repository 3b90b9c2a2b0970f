"""How names of models, GPUs and other entries are compared."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache

_SAME_SHAPE = re.compile(
    r"-(instruct|chat|it|hf|base|dynamic|unsloth|fp16|bf16|fp8|fp4|nvfp4|mxfp4|awq|gptq|bnb|nf4|int4|int8|4bit|8bit|"
    r"(quantized\.)?w\d+a\d+)(?=[-.:]|$)|[-.:](gguf|(ud-)?i?q\d(-([01]|k(-(s|m|l|xl))?|xs|xxs|s|m|nl))?)(?=[-.:]|$)",
    re.IGNORECASE)
"""Endings that name the same shape: tuning, and how the weights are stored."""
_ACTIVE = re.compile(r"-a\d+(\.\d+)?[bm]$", re.ASCII)
"""Ending of a mixture's name: parameters that a token uses."""


def canonical(name: str) -> str:
    """Return the form in which names are compared: lower case, no organization, `-Instruct` and the like dropped."""
    plain = name.strip().rsplit("/", maxsplit=1)[-1].lower().replace("_", "-").replace(" ", "-")
    return _SAME_SHAPE.sub("", plain).removeprefix("meta-")


def shortened(known: Mapping[str, str]) -> dict[str, str]:
    """Return the spellings that leave the active parameters out (qwen3-235b), where one entry alone has each."""
    meant: dict[str, set[str]] = {}
    for spelling, name in known.items():
        short = _ACTIVE.sub("", spelling)
        if short != spelling:
            meant.setdefault(short, set()).add(name)
    return {short: name for short, names in meant.items() for name in names if len(names) == 1}


@lru_cache(maxsize=4096)
def joined(name: str) -> str:
    """Return a name's letters and digits."""
    return "".join(filter(str.isalnum, name))


def only(names: Collection[str]) -> str | None:
    """Return the one name that there is; none of several or of none."""
    return next(iter(names)) if len(names) == 1 else None
