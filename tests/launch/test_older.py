"""GPUs that the newest builds have no code for get those that have."""

from pathlib import Path

import pytest

from planner.errors import InputError
from planner.launch.folder import launched
from planner.launch.written import write_all
from tests.launch.works import CATALOG, given

ASKED = {"model": "llama-3.2-1b", "method": "lora", "precision": "fp16", "seq_len": "1024", "global_batch": "8",
         "gpus": "1"}
CUDA_13, CUDA_12 = "cuda13.0", "cuda12.6"


@pytest.mark.parametrize(("target", "stack", "said"), [
    ("deepspeed", "hf-peft", "attn_implementation: {}"), ("llama-factory", "llama-factory", "flash_attn: {}"),
    ("axolotl", "axolotl", "attn_implementation: {}")])
@pytest.mark.parametrize(("node", "image", "flash"), [
    ("v100-sxm2-16gb-1x", CUDA_12, False), ("t4-1x", CUDA_13, False), ("h100-sxm-1x", CUDA_13, True)])
def test_kernels_and_images_are_those_of_the_gpu(target: str, stack: str, said: str, node: str, image: str, flash: bool
                                                 ) -> None:
    files = launched(given("dp=1", node, stack=stack, **ASKED), CATALOG, target, "slurm").files
    texts = "\n".join(files.values())
    assert said.format(("fa2" if "flash_attn" in said else "flash_attention_2") if flash else "sdpa") in texts
    assert ("flash-attn" in files["install.sh"]) == ("flash-attn" in files["README.md"]) == flash
    assert image in files["variables.sh"]
    assert ("whl/cu126" in files["install.sh"]) == (image == CUDA_12)


def test_what_packs_by_flash_attention_alone_is_refused_without_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"packed .by FlashAttention, which has no kernels for t4"):
        write_all(given("dp=1", "t4-1x", stack="ms-swift", **ASKED).placed, CATALOG, tmp_path, "ms-swift")
