"""Hardware and methods that people ask about and that are not modeled: refused by name, with the nearest that is."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from planner.errors import InputError, UnknownName

_WORDS = re.compile(r"[a-z]+|\d+", re.ASCII)


class Outsider(NamedTuple):
    """A family of hardware: the words that its names begin with or have, what it is, and the nearest that is modeled.
    """

    words: str
    what: str
    nearest: str


FAMILIES = (
    Outsider("macbook mac macmini macstudio imac apple m1 m2 m3 m4 m5 mps metal", "Apple silicon",
             "dgx-spark, which has one memory for CPU and GPU too"),
    Outsider("tpu v5e v5p v6e trillium ironwood", "a Google TPU", "h100-sxm"),
    Outsider("trainium trn1 trn2 trn3 inferentia inf1 inf2", "an AWS accelerator", "h100-sxm"),
    Outsider("gaudi gaudi2 gaudi3 hpu", "an Intel Gaudi", "h100-pcie"),
    Outsider("arc a770 a750 b580 b570 b60", "an Intel Arc", "rtx-3060"),
    Outsider("radeon rx 7900 7800 7900xtx 7900xt 7900gre 7800xt 6900xt 6800xt 9070xt 6900 6800 9070 w7900",
             "an AMD Radeon",
             "rtx-3090 of 24 GB, or mi210 among AMD's"),
    Outsider("cerebras wse groq lpu sambanova graphcore ipu", "no GPU", "h100-sxm"),
    Outsider("ascend 910b 910c", "a Huawei Ascend", "a100-sxm-80gb"),
    Outsider("jetson orin thor", "an NVIDIA Jetson", "dgx-spark"),
    Outsider("strix halo ryzen 8060s 890m", "an AMD APU", "dgx-spark, which has one memory for CPU and GPU too"),
    Outsider("rubin vr200 vera r100 r200 nvl144 cpx", "an NVIDIA Rubin", "gb300-nvl72"),
    Outsider("mi400 mi430x mi450 mi450x mi455x helios", "an AMD MI400", "mi355x"),
    Outsider("moore mtt biren kunlun cambricon mlu hygon dcu", "a Chinese accelerator", "a100-sxm-80gb"),
    Outsider("cpu xeon epyc laptop raspberry", "a CPU, or a computer whose GPU is not said", "rtx-4090-laptop"),
)


METHODS = {
    "dora": "DoRA is not modeled; 'lora' is the nearest: DoRA also norms every adapted matrix in each step, which "
            "takes longer, and trains one more vector for each",
    **dict.fromkeys(("onlinedpo", "iterativedpo"), "answers drawn while it trains are not modeled; 'dpo' is the step "
                    "on pairs that are there"),
    **dict.fromkeys(("rlhf", "rlvr", "rl"), "name the method: grpo, ppo, rloo or reinforce"),
    **dict.fromkeys(("ppo", "grpo", "rloo", "reinforce", "gspo", "dapo"), "that is kind: posttraining"),
    **dict.fromkeys(("distill", "distillation"), "of a teacher on-policy-distillation alone is modeled"),
    **dict.fromkeys(("prefixtuning", "prompttuning", "ia3", "galore", "lisa", "badam", "loha", "lokr", "vera",
                     "adalora", "qdora", "loftq"), "not modeled; the nearest are 'lora', 'qlora' and 'full'")}
"""Ways to train that are not modeled, in small letters and digits, with what to write instead."""


TASKS = {
    **dict.fromkeys(("tts", "texttospeech", "speechsynthesis", "voicecloning"), "text to speech is not modeled; models "
                    "that hear (whisper-large-v3) and models of music and sound (ace-step) are"),
    **dict.fromkeys(("3dgeneration", "textto3d", "imageto3d", "nerf"), "making shapes in three dimensions is not "
                    "modeled; images and clips are (flux.1-dev, wan2.1-t2v-14b)"),
    **dict.fromkeys(("xgboost", "lightgbm", "randomforest", "resnet", "yolo"), "language models, and models of images, "
                    "clips and sound made by diffusion, are modeled, and no other")}
"""What models do that is not modeled, in small letters and digits, with what is."""
_GPU_FORMAT = "not modeled; the nearest of its bits are 'int4' (AWQ, GPTQ) on vLLM and 'q4_k_m' on llama.cpp"
FORMATS = {**dict.fromkeys(("exl2", "exl3", "exllama", "exllamav2", "exllamav3", "hqq", "aqlm", "quip", "quipsharp",
                            "eetq", "spqr", "squeezellm"), _GPU_FORMAT),
           "mlx": "Apple's format, not modeled; the nearest is 'q4_k_m' on llama.cpp"}
"""Formats of weights that are not modeled, in small letters and digits, with what to write instead."""


def modeled_format(value: object) -> object:
    """Return a format of weights as given. Raises ValueError for a known one that is not modeled, naming the nearest.
    """
    why = FORMATS.get("".join(filter(str.isalnum, value.lower()))) if isinstance(value, str) else None
    if why is not None:
        raise ValueError(f"{value!r}: {why}")
    return value


def modeled_method(value: object) -> object:
    """Return a method as given. Raises ValueError for a known one that is not modeled, naming the nearest."""
    why = METHODS.get("".join(filter(str.isalnum, value.lower()))) if isinstance(value, str) else None
    if why is not None:
        raise ValueError(f"{value!r}: {why}")
    return value


def family_of(name: str) -> Outsider | None:
    """Return the family that a name is of; none where it is of no known one."""
    text = name.lower()
    # m3 and 910b are words of letters and digits, and so is 7900 in rx7900xtx
    words = {*re.split(r"[^a-z0-9]+", text), *_WORDS.findall(text)}
    return next((family for family in FAMILIES if words & set(family.words.split())), None)


SEEING = (
    Outsider("vision", "a model that sees and is not in the catalog",
             "qwen2.5-vl-7b and gemma-3-12b"),
    Outsider("heartmula musicgen audiogen yue minimaxmusic", "a language model of music, which writes the tokens of a "
             "codec", "ace-step-1.5, which makes songs by diffusion"),
    Outsider("audioldm musicldm riffusion", "a UNet of pictures of sound", "stable-audio-open or ace-step-1.5"),
    Outsider("infinitetalk s2v", "a video model that follows sound", "wan2.1-14b"),
    Outsider("deepfloyd", "a cascade of models of pixels", "sdxl"),
    Outsider("wav2vec2 canary parakeet seamless", "a model of speech that is no decoder of text tokens",
             "whisper-large-v3, which writes what it hears; sound is asked for as --audio 30s"),
    Outsider("t5 flan ul2 bart mbart nllb madlad marian pegasus t5gemma", "an encoder with a decoder behind it",
             "llama-3.1-8b, which reads and writes with one stack of layers"),
    Outsider("claude gemini chatgpt gpt4 gpt4o gpt5 4o", "a model whose weights are not published", "llama-3.3-70b, "
             "deepseek-v3 or qwen3-235b-a22b"),
    Outsider("vit deit swin dinov2 dinov3 beit mae convnext", "a vision transformer or image encoder", "sdxl to train "
             "on images, llama-3.1-8b on text"),
    Outsider("clip siglip openclip blip", "a model of images beside text (CLIP)", "sdxl to train on images, "
             "llama-3.1-8b on text"),
    Outsider("resnet resnet50 resnet101 resnet152 efficientnet mobilenet vgg yolo yolov8 unet maskrcnn", "an image "
             "classifier or detector", "sdxl to train on images, llama-3.1-8b on text"))
"""Models of images and sound that are no diffusion models of the catalog's kind."""


def seeing(name: str) -> str | None:
    """Return what a name of no catalog model is and what is nearest, where it is of models of images."""
    found = _WORDS.findall(name.lower())
    # gpt-4 is a word too, and gpt-j none of these
    words = {*found, *map("".join, pairwise(found)), *re.split(r"[^a-z0-9]+", name.lower())}
    for family in SEEING:
        if words & set(family.words.split()):
            return f"{name!r} is {family.what}, which is not modeled; the nearest that is: {family.nearest}"
    return None


class Unmodeled(UnknownName):
    """A name of hardware that no catalog entry could describe."""

    def __init__(self, name: str, family: Outsider) -> None:
        self.name = name
        InputError.__init__(self, f"{name!r} is {family.what}, which is not modeled; the nearest that is: "
                            f"{family.nearest}")
