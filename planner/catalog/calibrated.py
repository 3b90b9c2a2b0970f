"""What is fitted or assumed, by name: the entries of catalogs/calibration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Generic, TypeVar

from planner.catalog.calibration import ArchitectureRates, Collectives, KernelShape, Reliability
from planner.catalog.diffusion_law import DiffusionLaw
from planner.catalog.diffusion_runs import DiffusionRuns
from planner.catalog.first import FirstPredictions
from planner.catalog.fitted import FITTED, Fitted
from planner.catalog.formats import Formats
from planner.catalog.generation_law import GenerationLaw, GenerationRuns
from planner.catalog.posttraining import PostTrainingLaw, PostTrainingRuns
from planner.catalog.recipes import Recipes
from planner.catalog.residuals import SPEEDS, Residuals, Spreading
from planner.catalog.sourced import Sourced
from planner.catalog.speed import ServiceLevels, ServingLaw
from planner.catalog.whole_runs import WholeRuns
from planner.errors import UnknownName

S = TypeVar("S", bound=Sourced)


class EntryAttribute(Generic[S]):
    """An attribute of `Calibrated`: the entry of a name, read when it is first asked for."""

    def __init__(self, name: str, model: type[S]) -> None:
        """Stand for the file `name` of catalogs/calibration."""
        self.name, self.model = name, model

    def __get__(self, catalog: Calibrated, owner: type) -> S:
        return catalog._read("calibration", self.name, self.model)


class Calibrated(ABC):
    """The entries of calibration."""

    kernels = EntryAttribute("kernels", KernelShape)
    """The shape dependence of kernels."""
    collectives = EntryAttribute("collectives", Collectives)
    """What collectives reach beside the curves and links of fabrics."""
    formats = EntryAttribute("formats", Formats)
    """How weights and caches are stored, by the names of formats."""
    recipes = EntryAttribute("recipes", Recipes)
    """Bytes of optimizers, losses, frozen bases and adapters."""
    serving_law = EntryAttribute("serving", ServingLaw)
    """What serving adds to the kernels of training."""
    reliability = EntryAttribute("reliability", Reliability)
    """Failure rates and what a failure costs."""
    diffusion_law = EntryAttribute("diffusion", DiffusionLaw)
    """What training a denoiser takes beside its shape."""
    diffusion_runs = EntryAttribute("diffusion-runs", DiffusionRuns)
    """What published runs of diffusion models mean by their words."""
    generation_law = EntryAttribute("generation", GenerationLaw)
    """What running a diffusion model takes beside its shape."""
    generation_runs = EntryAttribute("generation-runs", GenerationRuns)
    """What published runs of it mean by their words."""
    posttraining_law = EntryAttribute("posttraining", PostTrainingLaw)
    """What reinforcement learning takes beside passes and decoding, and its frameworks."""
    posttraining_runs = EntryAttribute("posttraining-runs", PostTrainingRuns)
    """What published runs of reinforcement learning leave open."""
    whole_runs = EntryAttribute("whole-runs", WholeRuns)
    """What whole runs take beyond their steps."""
    step_residuals = EntryAttribute("step-residuals", Residuals)
    """Measured over predicted step time, by class."""
    memory_residuals = EntryAttribute("memory-residuals", Residuals)
    """Measured over predicted peak memory, by class."""
    output_residuals = EntryAttribute("output-residuals", Residuals)
    """Measured over predicted output tokens/s of serving, by class."""
    tpot_residuals = EntryAttribute("tpot-residuals", Residuals)
    """The same of the time per output token."""
    ttft_residuals = EntryAttribute("ttft-residuals", Residuals)
    """The same of the time to the first token."""
    first_predictions = EntryAttribute("first-predictions", FirstPredictions)
    """What runs were predicted to reach before anything of them was known."""
    spreading = EntryAttribute("spreading", Spreading)
    """Priors of the laws that residuals follow."""
    service_levels = EntryAttribute("service-levels", ServiceLevels)
    """Limits of latency of benchmarks."""

    @abstractmethod
    def files(self, kind: str) -> Mapping[str, Path]:
        """Return the winning file of every entry of `kind`, by name."""

    @abstractmethod
    def _read(self, kind: str, name: str, model: type[S]) -> S:
        """Return an entry."""

    def rates(self, architecture: str) -> ArchitectureRates:
        """Return the kernel efficiencies of a GPU architecture; raises UnknownName."""
        name = f"gpu-{architecture}"
        if name not in self.files("calibration"):
            raise UnknownName("calibration of GPU architecture", architecture,
                              [n.removeprefix("gpu-") for n in self.files("calibration") if n.startswith("gpu-")])
        return self._read("calibration", name, ArchitectureRates)

    def residuals(self, name: str) -> Residuals:
        """Return a file of residuals."""
        return self._read("calibration", name, Residuals)

    def serving_residuals(self, quantity: str) -> Residuals:
        """Return those of a quantity of serving speed as evidence names it."""
        return self.residuals(f"{SPEEDS[quantity]}-residuals")


CALIBRATION: dict[str, type[Sourced]] = {FITTED: Fitted, **{
    entry.name: entry.model for entry in vars(Calibrated).values() if isinstance(entry, EntryAttribute)}}
"""Entries other than those of GPU architectures."""
