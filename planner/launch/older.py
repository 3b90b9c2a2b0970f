"""What takes the place of an image and of packages on GPUs that these have no code for."""

from __future__ import annotations

from planner.catalog.hardware import Gpu
from planner.catalog.releases import Releases, Target

FLASH, SDPA = "flash_attention_2", "sdpa"
ROCM = ("$IMAGE and install.sh are those of CUDA: on AMD's GPUs set IMAGE to the build of {release} for ROCm, and "
        "install its wheels.")


def attention_on(gpu: Gpu, releases: Releases) -> str:
    """Return the attention of Transformers that a GPU has kernels of."""
    return FLASH if gpu.architecture in releases.flash_attention else SDPA


def for_gpu(release: Target, gpu: Gpu, releases: Releases) -> tuple[Target, tuple[str, ...]]:
    """Return a release with the image and the lines that install it on a GPU, and what a reader has to know."""
    lines, image, old = list(release.install), release.image or "", releases.older
    notes: tuple[str, ...] = ()
    if attention_on(gpu, releases) == SDPA:
        lines = [line.replace("[flash-attn]", "") for line in lines if "flash-attn==" not in line]
    if gpu.architecture.startswith("cdna"):
        notes = (ROCM.format(release=release.release),)
    elif old is not None and gpu.architecture in old.on:
        lines = [f"export PIP_EXTRA_INDEX_URL={old.index}", *lines]
        if image not in old.images:
            notes = (f"$IMAGE has no code for {gpu.name}: {old.why}. Set IMAGE to one that has.",)
        image = old.images.get(image, image)
    return release.model_copy(update={"install": tuple(lines), "image": image}), notes
