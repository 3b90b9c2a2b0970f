"""How names of models, GPUs and other entries are compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property, lru_cache

_SAME_SHAPE = re.compile(
    r"-(instruct|chat|it|hf|base|dynamic|unsloth|fp16|bf16|fp8|fp4|nvfp4|mxfp4|awq|gptq|bnb|nf4|int4|int8|4bit|8bit|"
    r"(quantized\.)?w\d+a\d+)(?=[-.:]|$)|[-.:](gguf|(ud-)?i?q\d(-([01]|k(-(s|m|l|xl))?|xs|xxs|s|m|nl))?)(?=[-.:]|$)",
    re.IGNORECASE)
"""Endings that name the same shape: tuning, and how the weights are stored."""
_WHOLE = re.compile(r"(?<=\d)\.0(?=-|$)", re.ASCII)
"""Of a generation: granite-4.0 is granite-4."""
_ACTIVE = re.compile(r"-a\d+(\.\d+)?[bm]$", re.ASCII)
"""Ending of a mixture's name: parameters that a token uses."""


_RESHAPED = frozenset(("vl", "vlm", "vision", "llava", "visual", "audio", "omni", "speech", "moe", "draft", "eagle",
                       "eagle3", "medusa", "pruned", "minitron", "merge", "frankenmerge", "onnx", "mlx"))
"""Words in the names of models that were made from another and have another shape."""


@lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """Return the form in which names are compared: lower case, no organization, `-Instruct` and the like dropped."""
    plain = name.strip().rsplit("/", maxsplit=1)[-1].lower().replace("_", "-").replace(" ", "-")
    return _SAME_SHAPE.sub("", plain).removeprefix("meta-")


@lru_cache(maxsize=4096)
def joined(name: str) -> str:
    """Return a name's letters and digits."""
    return "".join(filter(str.isalnum, name))


_NUMBERED = re.compile(r"(?P<family>[a-z]{3,})-?(?P<number>\d+(?:\.\d+)?)-(?P<size>\d+(?:\.\d+)?[bm])", re.ASCII)
"""A name of a family, the number of its generation, and a size: llama-3.1-70b."""


class Spellings:
    """Entries of one kind by all that they are called."""

    def __init__(self, spelled: Iterable[tuple[str, str]]) -> None:
        """spelled: how a name is spelled, and the name; the first of those that are spelled alike has it."""
        self.known: dict[str, str] = {}
        """Name by how it is spelled."""
        for spelling, name in spelled:
            self.known.setdefault(canonical(spelling), name)

    def entry(self, wanted: str) -> str | None:
        """Return the name that is meant by a canonical spelling; none where it is none's, or that of several."""
        # llama3.1:8b, TensorRT LLM: what only signs and spaces tell from one entry alone
        return self.known.get(wanted) or self._by_letters.get(joined(wanted)) or self._shortened.get(wanted) or (
            self._newest.get(wanted) or self._of_whole.get(_WHOLE.sub("", wanted)))

    def within(self, name: str) -> str | None:
        """Return the entry whose spelling, with a size, stands in a longer name: llama-3-8b in llama-3-8b-sft-mixture.

        None where no spelling does, or where words beside it say that the shape is another.
        """
        words = canonical(name).split("-")
        ends = range(1, 1 + len(words))
        inside = {"-".join(words[at:end]): end - at for end in ends for at in range(end)}
        known = {each: many for each, many in inside.items() if each in self.known and _has_size(each)}
        longest = max(known.values(), default=0)
        names = {self.known[each] for each, many in known.items() if many == longest}
        return names.pop() if len(names) == 1 and not _RESHAPED.intersection(words) else None

    @cached_property
    def _by_letters(self) -> dict[str, str]:
        return _alone((joined(spelling), name) for spelling, name in self.known.items())

    @cached_property
    def _of_whole(self) -> dict[str, str]:
        """Spellings with their generation as a whole number, as the name or as somebody else has it."""
        return _alone((_WHOLE.sub("", spelling), name) for spelling, name in self.known.items())

    @cached_property
    def _newest(self) -> dict[str, str]:
        """Families with a size alone (llama-70b): the newest generation that has it."""
        made = sorted((float(match["number"]), f"{match['family']}-{match['size']}", name)
                      for spelling, name in self.known.items() if (match := _NUMBERED.fullmatch(spelling)))
        return {short: name for _, short, name in made}

    @cached_property
    def _shortened(self) -> dict[str, str]:
        """Spellings that leave the active parameters out (qwen3-235b)."""
        short = ((_ACTIVE.sub("", spelling), name, spelling) for spelling, name in self.known.items())
        return _alone((each, name) for each, name, spelling in short if each != spelling)


def _has_size(spelling: str) -> bool:
    """Say whether a spelling is of a family and a size."""
    return spelling[:2].isalpha() and spelling[-1] in "bm" and spelling[-2:-1].isdigit()


def _alone(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the name of every spelling that one entry alone has."""
    meant: dict[str, set[str]] = {}
    for spelling, name in named:
        meant.setdefault(spelling, set()).add(name)
    return {spelling: name for spelling, names in meant.items() for name in names if len(names) == 1}
