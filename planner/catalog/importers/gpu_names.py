"""Which GPUs of the catalog a name in someone else's file may mean, by family, form factor and memory."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from planner.catalog.hardware import Gpu
from planner.catalog.load import Catalog
from planner.catalog.spelling import canonical
from planner.units import GIB

_MEMORY = re.compile(r"(\d+)gi?b")
_FORM = re.compile(r"sxm\d?|pcie|nvl")
_GLUED = re.compile(r"(.*\d[a-z]?)(sxm\d?|pcie|nvl)")
_TOLD = re.compile(r"(?<![a-z])(sxm(?![a-z])|sxm\d(?![a-z])|pcie(?![a-z])|nvl(?![a-z0-9]))")
_DEVICE_OF_SXM = "h100 80gb hbm3"
"""What the driver prints of an H100 SXM; the PCIe card of 80 GB has HBM2e."""
_MAKERS = {"nvidia", "amd", "tesla", "geforce", "instinct", "colab", "kaggle", "gpu", "gpus", "card", "cards",
           "hbm2", "hbm2e", "hbm3", "hbm3e"}
"""What a name may have beside the family: makers, brands, and what its memory is made of."""
_PART = "gcd"
"""Marks a GPU that the catalog counts by the die: without its memory, a file may count packages."""


@dataclass(frozen=True, slots=True)
class _Spelling:
    """A GPU's name taken apart: `H100-SXM5-80GB` is h100, {sxm}, 80."""

    family: str
    forms: frozenset[str]
    memory: float | None


@dataclass(frozen=True, slots=True)
class _Known:
    """A GPU of the catalog with the form factors in its names; none where it has but one."""

    gpu: Gpu
    forms: frozenset[str]
    by_die: bool


def _plain(form: str) -> str:
    return form.rstrip("0123456789")


@lru_cache(maxsize=4096)
def _spelling(name: str) -> _Spelling:
    """Return a name taken apart, remembered: those of the catalog are asked for with every word of a sentence."""
    family, forms, memory = "", set(), None
    for token in re.split(r"[^a-z0-9]+", name.lower()):
        if match := _MEMORY.fullmatch(token):
            memory = float(match.group(1))
        elif _FORM.fullmatch(token):
            forms.add(_plain(token))
        elif token not in _MAKERS:
            family += token
    if glued := _GLUED.fullmatch(family):
        family = glued.group(1)
        forms.add(_plain(glued.group(2)))
    return _Spelling(family, frozenset(forms), memory)


def _told_forms(text: str) -> set[str]:
    """Return the form factors that an instance's own name states."""
    plain = text.lower()
    return {_plain(form) for form in _TOLD.findall(plain)} | ({"sxm"} if _DEVICE_OF_SXM in plain else set())


def _has(gpu: Gpu, memory: float | None) -> bool:
    """Say whether a stated size, GiB or GB, lies between what programs see of the GPU and what is sold."""
    return memory is None or 0.97 * gpu.usable_memory / GIB <= memory <= 1.01 * gpu.memory / 1e9


class GpuNames:
    """The GPUs of a catalog by the families that their names and aliases belong to."""

    def __init__(self, catalog: Catalog) -> None:
        """Take every name and alias apart, once for the same GPUs: every word of a sentence may be one."""
        gpus = catalog.all("gpus", Gpu)
        same = tuple(map(id, gpus))
        if same not in _TAKEN:
            _TAKEN.clear()
            _TAKEN[same] = gpus, *_taken(gpus)
        _, self._families, self._named = _TAKEN[same]

    def called(self, name: str) -> str | None:
        """Return the one GPU that a name may be of, such as `NVIDIA GeForce RTX 4090 24GB`; none where not just one."""
        words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if word not in _MAKERS]
        text = "-".join(words).removesuffix("s") if words and words[-1] not in self._families else "-".join(words)
        known = self._named.get(canonical(text))
        names = self.candidates(text, _spelling(text).memory, text) if known is None else {known}
        return names.pop() if len(names) == 1 else None

    @staticmethod
    def holds(gpu: Gpu, memory: float) -> bool:
        """Say whether a GPU is sold with so much memory, in GB."""
        return _has(gpu, memory)

    def knows(self, name: str) -> bool:
        """Say whether the catalog has a GPU of this family."""
        return _spelling(name).family in self._families

    def candidates(self, name: str, memory: float | None, instance: str) -> set[str]:
        """Return the GPUs that a name may mean beside the memory stated in GiB (or GB) and the instance's own name."""
        spelling = _spelling(name)
        forms = spelling.forms | _told_forms(instance)
        return {known.gpu.name for known in self._families.get(spelling.family, {}).values()
                if (not known.forms or forms <= known.forms)
                and _has(known.gpu, spelling.memory) and _has(known.gpu, memory)
                and not (known.by_die and memory is None)}


_TAKEN: dict[tuple[int, ...], tuple[list[Gpu], dict[str, dict[str, _Known]], dict[str, str]]] = {}
"""The names of the GPUs asked about last, by their identities; they are kept, so that no others can take their place.
"""


def _taken(gpus: list[Gpu]) -> tuple[dict[str, dict[str, _Known]], dict[str, str]]:
    """Return GPUs by family and name, and the names of those spelled in a way."""
    families: dict[str, dict[str, _Known]] = defaultdict(dict)
    named: dict[str, str] = {}
    for gpu in gpus:
        spellings = [_spelling(name) for name in (gpu.name, *gpu.aliases)]
        known = _Known(gpu, frozenset(form for spelling in spellings for form in spelling.forms),
                       any(_PART in spelling.family for spelling in spellings))
        for spelling in spellings:
            families[spelling.family][gpu.name] = known
        named |= {canonical(name): gpu.name for name in (gpu.name, *gpu.aliases)}
    return dict(families), named
