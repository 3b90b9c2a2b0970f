"""What one GPU reaches in running a diffusion model: products, convolutions, attention, memory and its cache."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog.calibration import ArchitectureRates
from planner.catalog.generation_law import GenerationLaw, StoredDenoiser
from planner.catalog.hardware import Gpu
from planner.errors import MissingFact

STORED = 2.0
"""Bytes of an activation, and of a weight that nothing quantizes."""


@dataclass(frozen=True, slots=True)
class Rates:
    """What one GPU reaches: FLOP/s of 16 bits and of 32, of a format, and bytes/s."""

    gpu: Gpu
    known: ArchitectureRates

    def products(self, computes: str | None = None) -> float:
        """Return the rate of large matrix products. Raises MissingFact for a GPU that has not the format."""
        for name in (computes,) if computes else ("bf16", "fp16", "fp32"):
            peak = self.gpu.peak.get(name)  # type: ignore[call-overload]
            # what multiplies halves more slowly than singles is run in singles
            if peak and (computes or peak >= self.gpu.peak.get("fp32", 0.0)):
                share = self.gpu.gemm_efficiency.get(name) or self.known.gemm.get(name)  # type: ignore[call-overload]
                return float(peak * (share or self.known.gemm["bf16"]))
        raise MissingFact(f"GPU {self.gpu.name}", f"rate of products in {computes or '16 bits'}")

    @property
    def wide(self) -> float:
        """The rate of convolutions in 32 bits, which tensor cores round."""
        return self.products("tf32" if "tf32" in self.gpu.peak else None)

    def small(self, law: GenerationLaw) -> float | None:
        """Return the peak of a GPU whose matrix units are small; none of others."""
        peak = self.gpu.halves
        return peak if peak and peak / self.gpu.multiprocessors < law.small.below else None

    def denoising(self, law: GenerationLaw, stored: StoredDenoiser, *, unet: bool) -> float:
        """Return the rate of a denoiser's products. Raises MissingFact for a GPU that has not the format."""
        peak = self.small(law)
        if peak and stored.computes is None:
            return peak * stored.products * (law.small.convolutions if unet else law.small.products)
        return self.products(stored.computes) * stored.products * (law.convolutions if unet else law.products)

    def attention(self, law: GenerationLaw, head: int) -> float:
        """Return the rate of attention with heads of that width."""
        small = self.small(law)
        faster = law.small.wide if small else law.wide_heads.faster
        wide = faster.get(self.gpu.architecture, 1.0) if head >= law.wide_heads.width else 1.0
        if small:
            return small * law.small.attention * wide
        peak = self.gpu.halves or self.products()
        share = law.attention.get(self.gpu.architecture, law.attention["others"])
        return peak * self.known.attention_forward * share * wide

    def holds(self, elements: float) -> float:
        """Return the share of a kernel's input and output of so many elements that the cache holds."""
        return min(1.0, self.gpu.cache / (2 * STORED * elements))

    @property
    def memory(self) -> float:
        """Bytes/s of memory."""
        return self.gpu.memory_bandwidth * self.known.memory
