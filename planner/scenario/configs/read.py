"""A config recognized by its content and read: what it asks, and what it leaves to the question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, lcm

from planner.catalog.load import Catalog
from planner.catalog.posttraining import PostTrainingRuns
from planner.catalog.recipes import Recipes
from planner.errors import InputError
from planner.scenario.configs.launchers import launched
from planner.scenario.configs.reading import Reading
from planner.scenario.configs.recognized import started
from planner.scenario.configs.source import Source, source_of, text_source
from planner.scenario.configs.which_model import model_of
from planner.scenario.hardware_names import candidate_nodes
from planner.scenario.limits import COUNTED
from planner.scenario.said import own_name
from planner.scenario.tuned import ADAPTERS
from planner.units import plural

SHOWN = 15
"""Ignored keys that are named without -v."""
NODE = "dgx-h100"
"""Where neither a config nor its user names a node type: that of most published runs."""
ON = "hardware.candidates"
AMOUNTS = {"workload.tokens", "workload.samples", "workload.dataset", "workload.steps"}
"""How much work there is, of which a question states one."""
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
        own = self.reading.values
        self.reading.stated |= stated.keys()
        if AMOUNTS & stated.keys():
            own = {path: value for path, value in own.items() if path not in AMOUNTS}
        values = {**own, **of_samples, **stated}
        if MODEL not in values:
            values[MODEL] = model_of(self.name, self.reading, catalog)
            self.reading.put(MODEL, values[MODEL], "its name or sizes")
        self._drawn(values, catalog.posttraining_runs)
        method, trains = values.get("workload.method"), own.get("workload.method")
        if method in catalog.recipes.preference.methods and trains in ADAPTERS:
            values.setdefault("workload.tuning", trains)
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
        lengths = values.get("workload.input"), values.get("workload.output")
        if self.reading.micro_answers and all(isinstance(length, int) for length in lengths):
            layout = self.reading.layout
            # GPUs that share sequences have a part of each
            tokens = -(-self.reading.micro_answers * sum(map(int, map(str, lengths))) // int(layout.get("cp", "1")))
            layout["micro_batch_tokens"] = str(max(1, min(tokens, int(layout.get("micro_batch_tokens", tokens)))))

    def planned(self, stated: Mapping[str, object], catalog: Catalog) -> dict[str, object]:
        """Return what a plan is asked: the values, with the batch of a step where the config counts micro-batches.

        The layout is the plan's own choice, but the batch is what the config's makes on the GPUs that it, or the
        question, counts; where neither does, it grows with their number, and so is left open.
        """
        values, axes, reading = self.values(stated, catalog), self.reading.layout, self.reading
        if ON not in stated and "sourcing.own" not in stated and (hardware := self.hardware(catalog)):
            stated = {**stated, ON: hardware}
            values[ON] = hardware
        if values.get("workload.kind") == "diffusion":
            values, _ = self._denoising(values, dict(axes), stated.get("limits.gpus"), None)
        elif not self.serves and BATCH not in values and "mbs" in axes:
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

    def _denoising(self, values: dict[str, object], axes: dict[str, str], gpus: object, node_gpus: int | None
                   ) -> tuple[dict[str, object], dict[str, str]]:
        """Return what is asked of training a model of images: the batch of a step is that of all GPUs."""
        count = int(str(gpus or self.reading.gpus or node_gpus or 1))
        if "workload.batch" not in values and BATCH not in values and "mbs" in axes:
            values["workload.batch"] = degrees(axes, "mbs") * (self.reading.accumulation or 1) * count
        if "dp" not in axes and node_gpus is not None:
            values["limits.gpus"] = count
        return values, axes

    def asked(self, stated: Mapping[str, object], layout: Mapping[str, str], node_gpus: int, catalog: Catalog
              ) -> tuple[dict[str, object], dict[str, str]]:
        """Return what an estimate is asked: values and layout, with the GPUs and the batch that follow from both.

        A training config that counts no GPUs is run on those of the node, or on as many nodes as its degrees take.
        """
        values, axes = self.values(stated, catalog), {**self.reading.layout, **layout}
        self._closed(axes)
        if self.serves:
            if self.reading.gpus and "limits.gpus" not in stated:
                values["limits.gpus"] = self.reading.gpus
            return values, axes
        if values.get("workload.kind") == "generation":
            return {"limits.gpus": self.reading.gpus or 1, **values}, axes
        if values.get("workload.kind") == "diffusion":
            return self._denoising(values, axes, stated.get("limits.gpus"), node_gpus)
        if "mbs" in axes:
            axes.setdefault("tp", "1")  # a trainer splits nothing of itself: what its config leaves out is not searched
        width = degrees(axes, "tp", "pp", "cp")
        # trainers of reinforcement learning do not split experts by tp
        split = "tp" if "expert_tp" not in axes and values.get("workload.kind") != "posttraining" else "expert_tp"
        together = lcm(width, degrees(axes, "pp", "ep", split))
        gpus = stated.get("limits.gpus") or (width * int(axes["dp"]) if axes.get("dp", "").isdigit() else None)
        gpus = int(str(gpus)) if gpus else self._gpus(together, node_gpus)
        if "dp" not in axes:
            values["limits.gpus"] = gpus
        if values.get("workload.placement") == "colocated" and {"tp", "pp", "cp"} <= axes.keys() and gpus % width == 0:
            axes.setdefault("dp", str(gpus // width))  # all GPUs train, and draw the answers in turns
        if BATCH not in values and self.reading.accumulation and gpus % width == 0:
            values[BATCH] = degrees(axes, "mbs") * self.reading.accumulation * (gpus // width)
        self._count_tokens(values, catalog.recipes)
        return values, axes

    def _closed(self, axes: Mapping[str, str]) -> None:
        """Raise InputError for a degree that a variable holds which nobody sets."""
        for axis, key in self.reading.open.items():
            if axis not in axes:
                raise InputError(f"{key}: {self.reading.unknown[key]} is not set in the file: give --layout {axis}=N",
                                 file=self.reading.source.file)

    def hardware(self, catalog: Catalog) -> str:
        """Return the hardware that a key of the config names, as no tool but its user's reads it; empty without."""
        reading = self.reading
        if (carried := reading.source.carried) is not None and carried.hardware:
            with suppress(InputError):
                candidate_nodes([carried.hardware], catalog)
                reading.counted.append(f"{carried.hardware}: the hardware that the manifest names")
                return carried.hardware
            reading.counted.append(f"{carried.hardware}: hardware of the manifest that the catalog does not know")
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
        draw = int(self.reading.layout.get("rollout_gpus", "0"))
        if counted and (counted - draw) % together:
            self.reading.defaults.append(f"its {counted} GPUs are no multiple of the {together} that its degrees take: "
                                         f"{filling} are taken")
            return filling
        return counted or filling

    def _count_tokens(self, values: dict[str, object], recipes: Recipes) -> None:
        """Put in the tokens of as many steps as the config says, where batch and length are known."""
        batch, length = values.get(BATCH), values.get(LENGTH)
        if self.reading.steps and isinstance(batch, int) and isinstance(length, int) and not (
                {"workload.samples", "workload.dataset", "workload.steps"} & values.keys()):
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
        reading = self.reading
        said = [f"{key.removeprefix('workload.').removeprefix('limits.')} {value}"
                for key, value in (*reading.values.items(), *reading.layout.items(), *self._counts())
                if key not in (*reading.stated, *reading.default_of)]
        yield f"read from {self.name}: {', '.join(said)}"
        if self.reading.counted:
            yield f"counted in another way: {'; '.join(self.reading.counted)}"
        if left := [*reading.defaults, *(text for path, text in reading.default_of.items()
                                         if path not in reading.stated)]:
            yield f"left open there, so the tool's default: {'; '.join(left)}"
        if unknown := self.reading.unknown:
            yield ("not known, as the file does not set the variable: "
                   f"{', '.join(f'{key} {value}' for key, value in unknown.items())}")
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
    reader, source, launcher = started(source)
    reading = Reading(source)
    reader.read(reading)
    if reading.open and "workload.engine" in reading.values:
        reading.gpus = None
    if launcher is not None and reading.gpus is None:
        reading.gpus = launched(Reading(launcher))
    if source.carried is not None and source.carried.others:
        reading.counted.append(f"{plural(source.carried.others, 'other model')} that the file starts: left out, "
                               "ask for each alone")
    if source.carried is not None and source.carried.workers:
        reading.counted.append(f"{plural(source.carried.workers, 'other kind')} of workers of the same model: left "
                               "out; these are estimated as replicas that do all of a request")
    if source.carried is not None and source.carried.replicas > 1 and "workload.engine" in reading.values:
        if reading.gpus is None:
            reading.counted.append(f"{source.carried.replicas} replicas: one of them is estimated")
        else:
            reading.gpus *= source.carried.replicas
    return Config(f"{reader.name} ({source.file})", reading)


def degrees(axes: Mapping[str, str], *names: str) -> int:
    """Return the product of the axes that are given as numbers."""
    product = 1
    for name in names:
        product *= int(axes[name]) if axes.get(name, "").isdigit() else 1
    return product
