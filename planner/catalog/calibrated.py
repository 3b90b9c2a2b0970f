"""What is fitted or assumed, by name: the entries of catalogs/calibration."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from planner.catalog.calibration import ArchitectureRates, Collectives, KernelShape, Reliability
from planner.catalog.fitted import FITTED, Fitted
from planner.catalog.formats import Formats
from planner.catalog.recipes import Recipes
from planner.catalog.residuals import SPEEDS, Residuals, Spreading
from planner.catalog.sourced import Sourced
from planner.catalog.speed import ServiceLevels, ServingLaw
from planner.catalog.whole_runs import WholeRuns
from planner.errors import UnknownName

S = TypeVar("S", bound=Sourced)
CALIBRATION: dict[str, type[Sourced]] = {"kernels": KernelShape, "reliability": Reliability, FITTED: Fitted,
                                         "step-residuals": Residuals, "memory-residuals": Residuals,
                                         "output-residuals": Residuals, "tpot-residuals": Residuals,
                                         "ttft-residuals": Residuals, "spreading": Spreading,
                                         "serving": ServingLaw,
                                         "service-levels": ServiceLevels, "collectives": Collectives,
                                         "formats": Formats, "recipes": Recipes, "whole-runs": WholeRuns}
"""Entries other than those of GPU architectures."""


class Calibrated(ABC):
    """The entries of calibration, each read when it is first asked for."""

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

    @property
    def kernels(self) -> KernelShape:
        """The shape dependence of kernels."""
        return self._read("calibration", "kernels", KernelShape)

    @property
    def collectives(self) -> Collectives:
        """What collectives reach beside the curves and links of fabrics."""
        return self._read("calibration", "collectives", Collectives)

    @property
    def formats(self) -> Formats:
        """How weights and caches are stored, by the names of formats."""
        return self._read("calibration", "formats", Formats)

    @property
    def recipes(self) -> Recipes:
        """Bytes of optimizers, losses, frozen bases and adapters."""
        return self._read("calibration", "recipes", Recipes)

    @property
    def serving_law(self) -> ServingLaw:
        """What serving adds to the kernels of training."""
        return self._read("calibration", "serving", ServingLaw)

    @property
    def reliability(self) -> Reliability:
        """Failure rates and what a failure costs."""
        return self._read("calibration", "reliability", Reliability)

    def residuals(self, name: str) -> Residuals:
        """Return a file of residuals."""
        return self._read("calibration", name, Residuals)

    @property
    def whole_runs(self) -> WholeRuns:
        """What whole runs take beyond their steps."""
        return self._read("calibration", "whole-runs", WholeRuns)

    @property
    def step_residuals(self) -> Residuals:
        """Measured over predicted step time, by class."""
        return self.residuals("step-residuals")

    @property
    def memory_residuals(self) -> Residuals:
        """Measured over predicted peak memory, by class."""
        return self.residuals("memory-residuals")

    def serving_residuals(self, quantity: str) -> Residuals:
        """Return measured over predicted speed of serving, by class; of a quantity as evidence names it."""
        return self.residuals(f"{SPEEDS[quantity]}-residuals")

    @property
    def spreading(self) -> Spreading:
        """Priors of the laws that residuals follow."""
        return self._read("calibration", "spreading", Spreading)

    @property
    def service_levels(self) -> ServiceLevels:
        """Limits of latency of benchmarks."""
        return self._read("calibration", "service-levels", ServiceLevels)
