"""The series that an instance of a provider is a size of, by its name."""

from __future__ import annotations

import re
from functools import lru_cache

_AZURE = re.compile(r"(?P<family>n[cdv])\d+[a-z]*_(?P<rest>.+)")
"""Azure's names of instances: the family, how many vCPUs and what they have, and the GPU and generation."""
_SIZE = re.compile(r"(\.(\d{0,3}xlarge|metal[-a-z0-9]{0,12})|-\d{1,4}g)$")
"""How AWS and Google Cloud end the name of an instance: how large it is."""


@lru_cache(maxsize=4096)
def series(instance: str) -> str:
    """Return the name of the series that an instance is a size of, in small letters: g6e, nd_h100_v5, a3-highgpu."""
    plain = instance.lower().removeprefix("standard_")
    if (azure := _AZURE.fullmatch(plain)) is not None:
        return f"{azure['family']}_{azure['rest']}"
    return _SIZE.sub("", plain)
