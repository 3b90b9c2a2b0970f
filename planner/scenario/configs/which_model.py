"""Which model of the catalog a config means: by its name, or by its sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from planner.catalog.load import Catalog
from planner.errors import InputError, UnknownName
from planner.scenario.configs.reading import Reading

PADDING = 1024
"""Rows by which a vocabulary may differ from the published one."""
ROUNDED = 0.15
"""Share by which the size in a model's name may miss its parameters."""


def model_of(name: str, reading: Reading, catalog: Catalog) -> str:
    """Return the catalog's name of the model. Raises InputError where the config, called so, does not say which it is.
    """
    file = reading.source.file
    if (called := _called(reading, catalog)) is not None:
        return called
    if reading.values.get("workload.kind") in ("diffusion", "generation"):
        return _denoiser(reading, catalog)
    for said in reading.names:
        try:
            model = catalog.model(said)
        except UnknownName:
            continue
        if _alike(model.name, reading.shape, catalog):
            return model.name
    if not reading.shape and not reading.names:
        raise InputError(f"{name} names no model: give --model")
    by_size = catalog.names("models") if "layers" in reading.shape else ()
    same = [name for name in by_size if _alike(name, reading.shape, catalog)]
    # a model that also sees or hears has the sizes of the one that it was made from
    same = [name for name in same if not catalog.model(name).towers] or same
    vocabularies = {name: catalog.model(name).vocab for name in same}
    if same and max(vocabularies.values()) - min(vocabularies.values()) <= PADDING:
        return min(same, key=lambda name: abs(vocabularies[name] - reading.shape.get("vocab", 0)))
    if same:
        counted = Counter(vocabularies.values())
        usual = max(counted, key=lambda vocab: (counted[vocab], -vocab))
        taken = max(name for name in same if vocabularies[name] == usual)
        others = [name for name in same if vocabularies[name] != usual]
        reading.defaults.append(f"the model's vocabulary, {usual:,} as {taken} has it ({', '.join(others)} would do "
                                "too: --model)")
        return taken
    told = ", ".join(reading.names) or ", ".join(f"{name} {size}" for name, size in reading.shape.items())
    raise InputError(f"no model of the catalog is {told}: give --model, or import its config.json with planner catalog "
                     "import hf", file=file)


def _denoiser(reading: Reading, catalog: Catalog) -> str:
    """Return the model of images that a config names. Raises InputError where the catalog has none of its names."""
    known = next((found for name in reading.names if (found := catalog.known_diffusion(name))), None)
    if known is None:
        raise InputError(f"no model of images of the catalog is {', '.join(reading.names)}: give --model",
                         file=reading.source.file)
    if catalog.known_diffusion(reading.names[0]) is None:
        reading.defaults.append(f"model {known.name}, as {reading.names[0]} names a file")
    return known.name


def _called(reading: Reading, catalog: Catalog) -> str | None:
    """Return the model that a stack calls by words of its own: its family and flavour."""
    if reading.called is None:
        return None
    target, words = reading.called
    known = catalog.releases.target(target).models.items()
    return next((name for name, told in known if words.items() <= told.items()), None)


def _alike(name: str, shape: Mapping[str, int], catalog: Catalog) -> bool:
    """Say whether a model of the catalog has these sizes; a vocabulary may be padded, a count of parameters rounded."""
    model = catalog.model(name)
    mlp = model.blocks[-1].mlp
    sizes = {"layers": model.layers, "hidden": model.hidden, "heads": model.attention_heads, "kv_heads": model.kv_heads,
             "experts": getattr(mlp, "experts", 0), "ffn": getattr(mlp, "ffn", 0), "vocab": model.vocab}
    wanted = {"experts": 0} | dict(shape) if "layers" in shape else dict(shape)
    stated = wanted.pop("parameters", None)
    if stated and model.parameters and abs(model.parameters / stated - 1) > ROUNDED:
        return False
    return all(abs(sizes[key] - size) <= (PADDING if key == "vocab" else 0) for key, size in wanted.items())
