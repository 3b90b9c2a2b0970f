"""A config recognized by its content and read: what it asks, and what it leaves to the question."""

from __future__ import annotations

import pkgutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from math import ceil, lcm

from planner.catalog.load import Catalog
from planner.catalog.posttraining import PostTrainingRuns
from planner.catalog.recipes import Recipes
from planner.errors import InputError, UnknownName
from planner.scenario.configs import readers
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source, source_of, text_source
from planner.scenario.hardware_names import candidate_nodes
from planner.scenario.limits import COUNTED
from planner.scenario.said import own_name
from planner.scenario.tuned import ADAPTERS

PADDING = 1024
"""Rows by which a vocabulary may differ from the published one."""
ROUNDED = 0.15
"""Share by which the size in a model's name may miss its parameters."""
SHOWN = 15
"""Ignored keys that are named without -v."""
NODE = "dgx-h100"
"""Where neither a config nor its user names a node type: that of most published runs."""
ON = "hardware.candidates"
MODEL, BATCH, LENGTH = "workload.model", "workload.global_batch", "workload.sequence_length"


@dataclass(frozen=True, slots=True)
class Config:
    """A config as read: its values stand below what a question states itself."""

    name: str
    """What kind of file it is, and where."""
    reading: Reading

    @property
    def serves(self) -> bool:
        """Whether it starts an inference engine."""
        return "workload.engine" in self.reading.values and "workload.prompts" not in self.reading.values

    def alone(self, reference: object) -> Config:
        """Return the config where no scenario is named beside it. Raises InputError where one is."""
        if reference is not None:
            raise InputError(f"{self.name} is the question: leave the scenario out")
        return self

    def values(self, stated: Mapping[str, object], catalog: Catalog) -> dict[str, object]:
        """Return scenario values of the config and, over them, those `stated`. Raises InputError without a model."""
        of_samples = self.reading.of_samples if {"workload.samples", "workload.dataset"} & stated.keys() else {}
        values = {**self.reading.values, **of_samples, **stated}
        if MODEL not in values:
            values[MODEL] = _model(self, catalog)
            self.reading.put(MODEL, values[MODEL], "its name or sizes")
        self._drawn(values, catalog.posttraining_runs)
        method, own = values.get("workload.method"), self.reading.values.get("workload.method")
        if method in catalog.recipes.preference.methods and own in ADAPTERS:
            values.setdefault("workload.tuning", own)
        elif method not in ADAPTERS and values.get("workload.tuning", "full") == "full" and (
                stated.keys() & {"workload.method", "workload.tuning"}):
            for key in ("workload.lora_rank", "workload.lora_targets"):
                values.pop(key, None)
        return values

    def _drawn(self, values: dict[str, object], runs: PostTrainingRuns) -> None:
        """Put in how long prompts and answers usually are, where a config says the longest alone."""
        usual = (("workload.input", self.reading.longest_prompt, runs.prompt),
                 ("workload.output", self.reading.longest_answer, runs.answer * (self.reading.longest_answer or 0)))
        for path, most, mean in usual:
            if most is not None and path not in values:
                values[path] = max(1, min(most, round(mean)))
                self.reading.defaults.append(f"{path.removeprefix('workload.')} {values[path]} of at most {most:,} "
                                             "tokens, as is usual: --input and --output say yours")

    def planned(self, stated: Mapping[str, object], catalog: Catalog) -> dict[str, object]:
        """Return what a plan is asked: the values, with the batch of a step where the config counts micro-batches.

        The layout is the plan's own choice, but the batch is what the config's makes on the GPUs that it, or the
        question, counts; where neither does, it grows with their number, and so is left open.
        """
        values, axes, reading = self.values(stated, catalog), self.reading.layout, self.reading
        if ON not in stated and "sourcing.own" not in stated and (hardware := self.hardware(catalog)):
            stated = {**stated, ON: hardware}
            values[ON] = hardware
        if not self.serves and BATCH not in values and "mbs" in axes:
            width, on = degrees(axes, "tp", "pp", "cp"), stated.get(ON)
            named = COUNTED.fullmatch(str(on[0] if isinstance(on, list | tuple) and len(on) == 1 else on).strip())
            counted = stated.get("limits.gpus") or reading.gpus or (named.group(1) if named else None)
            each = f"{degrees(axes, 'mbs')} x {reading.accumulation or 1}"
            if counted is None:
                reading.defaults.append(f"no number of GPUs, on each of which a step takes {each}: the usual batch")
            else:
                copies = max(1, int(str(counted)) // width)
                values[BATCH] = degrees(axes, "mbs") * (reading.accumulation or 1) * copies
                reading.defaults.append(f"global_batch {values[BATCH]}, of {each} on {copies} of its copies")
        if not self.serves and axes:
            reading.counted.append(f"{', '.join(axes)}: a plan chooses the layout; planner estimate --from keeps them")
        self._count_tokens(values, catalog.recipes)
        return values

    def asked(self, stated: Mapping[str, object], layout: Mapping[str, str], node_gpus: int, catalog: Catalog
              ) -> tuple[dict[str, object], dict[str, str]]:
        """Return what an estimate is asked: values and layout, with the GPUs and the batch that follow from both.

        A training config that counts no GPUs is run on those of the node, or on as many nodes as its degrees take.
        """
        values, axes = self.values(stated, catalog), {**self.reading.layout, **layout}
        if self.serves:
            if self.reading.gpus and "limits.gpus" not in stated:
                values["limits.gpus"] = self.reading.gpus
            return values, axes
        if "mbs" in axes:
            axes.setdefault("tp", "1")  # a trainer splits nothing of itself: what its config leaves out is not searched
        width = degrees(axes, "tp", "pp", "cp")
        together = lcm(width, degrees(axes, "pp", "ep", "expert_tp" if "expert_tp" in axes else "tp"))
        gpus = stated.get("limits.gpus") or (width * int(axes["dp"]) if axes.get("dp", "").isdigit() else None)
        gpus = int(str(gpus)) if gpus else self._gpus(together, node_gpus)
        if "dp" not in axes:
            values["limits.gpus"] = gpus
        if BATCH not in values and self.reading.accumulation and gpus % width == 0:
            values[BATCH] = degrees(axes, "mbs") * self.reading.accumulation * (gpus // width)
        self._count_tokens(values, catalog.recipes)
        return values, axes

    def hardware(self, catalog: Catalog) -> str:
        """Return the hardware that a key of the config names, as no tool but its user's reads it; empty without."""
        reading = self.reading
        for key in reading.ignored:
            said = reading.source.keys[key]
            if own_name(key.rpartition(".")[2].lower(), ("on", "gpus")) and isinstance(said, str) and any(
                    map(str.isalpha, said)):
                try:
                    candidate_nodes([said], catalog)
                except InputError:
                    continue
                reading.taken.add(key)
                reading.counted.append(f"{key}: the hardware, {said}")
                return said
        return ""

    def _gpus(self, together: int, node_gpus: int) -> int:
        """Return the GPUs that the config counts, or as many as fill the node and its degrees."""
        counted, filling = self.reading.gpus, together * max(1, ceil(node_gpus / together))
        if counted and counted % together:
            self.reading.defaults.append(f"its {counted} GPUs are no multiple of the {together} that its degrees take: "
                                         f"{filling} are taken")
            return filling
        return counted or filling

    def _count_tokens(self, values: dict[str, object], recipes: Recipes) -> None:
        """Put in the tokens of as many steps as the config says, where batch and length are known."""
        batch, length = values.get(BATCH), values.get(LENGTH)
        if self.reading.steps and isinstance(batch, int) and isinstance(length, int):
            prefers = recipes.preference.methods.get(values.get("workload.method"))  # type: ignore[call-overload]
            each = prefers.sequences if prefers else 1
            values.setdefault("workload.tokens", self.reading.steps * batch * length * each)

    def labels(self, stated: Mapping[str, object]) -> dict[str, str]:
        """Return what messages call the values that are the config's own: the file and its key."""
        return {path: f"{self.reading.source.file}: {key}" for path, key in self.reading.origin.items()
                if path not in stated}

    def _counts(self) -> Iterator[tuple[str, object]]:
        """Yield what the config counts in its own way."""
        reading = self.reading
        accumulated = None if BATCH in reading.values else reading.accumulation  # follows from the batch
        for name, count in (("gpus", reading.gpus), ("micro-batches a step", accumulated),
                            ("steps", reading.steps)):
            if count is not None:
                yield name, count

    def notes(self, *, full: bool = True) -> Iterator[str]:
        """Yield what was read, what is a default of the tools, and what was ignored: of this, unless `full`, a part."""
        said = [f"{key.removeprefix('workload.').removeprefix('limits.')} {value}"
                for key, value in (*self.reading.values.items(), *self.reading.layout.items(), *self._counts())]
        yield f"read from {self.name}: {', '.join(said)}"
        if self.reading.counted:
            yield f"counted in another way: {'; '.join(self.reading.counted)}"
        if self.reading.defaults:
            yield f"left open there, so the tool's default: {'; '.join(self.reading.defaults)}"
        if of_samples := self.reading.of_samples:
            told = ", ".join(f"{key.removeprefix('workload.')} {value}" for key, value in of_samples.items())
            yield f"taken where the question has samples: {told}"
        if self.reading.ignored:
            ignored = self.reading.ignored if full else self.reading.ignored[:SHOWN]
            more = len(self.reading.ignored) - len(ignored)
            yield f"ignored: {', '.join(ignored)}{f', and {more} more (-v lists them)' if more else ''}"


def read_config(given: str) -> Config:
    """Return what a config file, or a command line itself, asks. Raises InputError where its kind is not known."""
    return _read(source_of(given))


def text_config(text: str, file: str) -> Config:
    """Return what the text of a config asks, whose file is called that. Raises InputError, as for a file."""
    return _read(text_source(text, file))


def _read(source: Source) -> Config:
    reader = _reader(source)
    reading = Reading(source)
    reader.read(reading)
    return Config(f"{reader.name} ({source.file})", reading)


def all_readers() -> list[Reader]:
    """Return every reader, by the name of its module."""
    names = sorted(module.name for module in pkgutil.iter_modules(readers.__path__))
    known = [import_module(f"{readers.__name__}.{name}").READER for name in names]
    return [reader for reader in known if isinstance(reader, Reader)]


def _reader(source: Source) -> Reader:
    known = all_readers()
    telling = [reader for reader in known if reader.tells(source)]
    if len(telling) != 1:
        kinds = ", ".join(reader.name for reader in telling or known)
        raise InputError(f"{'could be' if telling else 'none of'} {kinds}", file=source.file)
    return telling[0]


def _model(config: Config, catalog: Catalog) -> str:
    """Return the catalog's name of the model. Raises InputError where the config does not say which it is."""
    reading, file = config.reading, config.reading.source.file
    for name in reading.names:
        try:
            model = catalog.model(name)
        except UnknownName:
            continue
        if _alike(model.name, reading.shape, catalog):
            return model.name
    if not reading.shape and not reading.names:
        raise InputError(f"{config.name} names no model: give --model")
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


def degrees(axes: Mapping[str, str], *names: str) -> int:
    """Return the product of the axes that are given as numbers."""
    product = 1
    for name in names:
        product *= int(axes[name]) if axes.get(name, "").isdigit() else 1
    return product
