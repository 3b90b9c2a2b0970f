"""What configs that train models of images and clips share: the model by its file or family, adapters, batch, steps."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reading

OPTIMIZERS = {
    **dict.fromkeys(("adamw", "adamw_torch", "adamw_bf16", "adamw_fused", "adam", "adamw_optimi", "came"), "adamw"),
    **dict.fromkeys(("adamw8bit", "adamw_8bit", "adam8bit", "pagedadamw8bit", "adamw8bitkahan", "bnb-adamw8bit",
                     "optimi-adamw8bit"), "adamw-8bit"),
    **dict.fromkeys(("lion", "lion8bit", "bnb-lion", "bnb-lion8bit"), "lion"), "prodigy": "prodigy",
    "prodigyopt": "prodigy", "prodigy8bit": "prodigy", "adafactor": "adafactor", "sgdnesterov": "sgd-momentum",
    "sgd": "sgd-momentum"}
"""Names in trainers -> the planner's; another is refused by name."""
FAMILIES = {"sdxl": "sdxl", "flux2": "flux.2-dev", "flux": "flux.1-dev", "sd3.5": "sd3.5-large", "sd35": "sd3.5-large",
            "sd3": "sd3.5-medium", "wan22": "wan2.2-a14b", "wan2.2": "wan2.2-a14b", "wan": "wan2.1-14b",
            "hunyuan": "hunyuan-video", "hv": "hunyuan-video", "qwen": "qwen-image", "lumina": "lumina2",
            "chroma": "chroma", "cogvideox": "cogvideox-5b", "ltx": "ltx-video-0.9.5", "pixart": "pixart-sigma",
            "kolors": "kolors", "zimage": "z-image", "z_image": "z-image", "sana": "sana-1.6b"}
"""Words in the name of a script or in a kind of model -> the model where its weights are in a file."""
FP8 = ("float8", "fp8", "qfloat8", "fp8-torchao", "fp8-quanto")


def model(reading: Reading, named: str | None, said: str, usual: str) -> None:
    """Put down the model: by its name, else by the family that a word tells.

    said: what may name the family, such as the script; usual: where it names none.
    """
    reading.put("workload.kind", "diffusion", "the kind of file")
    words = f"{said} {named or ''}".lower()
    family = next((name for word, name in FAMILIES.items() if word in words), usual or said)
    file = (named or "").rpartition("/")[2].removesuffix(".safetensors").removesuffix(".ckpt")
    reading.names = tuple(name for name in (named, file.replace("_", "-"), family) if name)


def adapters(reading: Reading, rank: int, key: str, *, mlp: bool) -> None:
    """Put down adapters of a rank; mlp: whether the feed-forward has them too."""
    reading.put("workload.method", "lora", key)
    reading.put("workload.lora_rank", rank, key)
    if mlp:
        reading.put("workload.lora_targets", "attention+mlp", key)


def size(reading: Reading, value: object, key: str) -> None:
    """Put down the pixels of an image: 768, 1024,1024, [512, 768, 1024], of which the largest is taken."""
    if isinstance(value, list) and len(value) > 1 and all(isinstance(each, int) for each in value):
        pair = len(value) == 2 and value[1] < 2 * value[0]
        reading.put("workload.resolution", f"{value[0]}x{value[1]}" if pair else str(max(value)), key)
        if not pair:
            reading.counted.append(f"{key} {value}: at the largest")
        return
    numbers = re.findall(r"\d+", str(value)) if value is not None else []
    if numbers:
        reading.put("workload.resolution", "x".join(numbers[:2]), key)


def optimizer(reading: Reading, *keys: str) -> None:
    """Read the optimizer. Raises InputError for one that is not modeled."""
    name = reading.word(*keys)
    if name is None:
        return
    if name not in OPTIMIZERS:
        raise reading.wrong(keys, name, f"an optimizer that is modeled ({', '.join(OPTIMIZERS)})")
    reading.put("workload.optimizer", OPTIMIZERS[name], keys[0])


def batch(reading: Reading, micro: int, key: str, accumulation: int | None) -> None:
    """Put down the samples of a GPU, how often they are gathered before a step, and that nothing is sharded."""
    reading.axis("mbs", micro, key)
    reading.axis("zero", 0, "no deepspeed or fsdp")
    reading.accumulation = accumulation or 1


def recompute(reading: Reading, key: str) -> None:
    """Put down whether blocks are recomputed."""
    trainer.recompute(reading, reading.on(key), key)


def plain_names(keys: Mapping[str, object]) -> dict[str, object]:
    """Return keys without the tables that they stand in, which trainers pass over."""
    return {key.rpartition(".")[2]: value for key, value in keys.items()}
