"""Which release of a stack this interpreter has, told before anything of the stack is imported."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LLAMA_SERVER = "llama-server"
CONTRACT = "PLANNER_TRTLLM_CONTRACT"
"""File tests/unittest/api_stability/references/trtllm_serve_cli.yaml of TensorRT-LLM's repository."""
NEMO_RL = "PLANNER_NEMO_RL"
"""Checkout of NVIDIA-NeMo/RL."""
PATIENCE = 60
"""Seconds."""


def release_of(target: str, package: str) -> str:
    """Return the release that reads the files of a target. Raises ImportError where there is none."""
    if target in _OWN:
        return _OWN[target]()
    return version(package)


def said_by_llama_server(*words: str) -> str:
    """Return what llama-server prints. Raises RuntimeError where it refuses its options."""
    ran = subprocess.run([LLAMA_SERVER, *words], capture_output=True, text=True, timeout=PATIENCE, check=False)
    if ran.returncode:
        raise RuntimeError((ran.stderr + ran.stdout).strip()[-300:])
    return ran.stdout + ran.stderr


def _llama_cpp() -> str:
    if shutil.which(LLAMA_SERVER) is None:
        raise ImportError(f"{LLAMA_SERVER} is not on PATH")
    return said_by_llama_server("--version").partition("version: ")[2].split()[0]


def _tensorrt_llm() -> str:
    try:
        return version("tensorrt-llm")
    except PackageNotFoundError:
        if CONTRACT not in os.environ:
            raise ImportError(f"tensorrt-llm is not installed, and ${CONTRACT} names no contract") from None
        return "by its published contract"


def _nemo_rl() -> str:
    if NEMO_RL not in os.environ:
        raise ImportError(f"${NEMO_RL} names no checkout of NVIDIA-NeMo/RL")
    said = dict(re.findall(r"^(MAJOR|MINOR|PATCH) = (\d+)$", (
        Path(os.environ[NEMO_RL]) / "nemo_rl" / "package_info.py").read_text(), re.MULTILINE))
    return f"{said['MAJOR']}.{said['MINOR']}.{said['PATCH']}"


_OWN = {"llama-cpp": _llama_cpp, "tensorrt-llm": _tensorrt_llm, "nemo-rl": _nemo_rl}
"""Stacks that are no Python package, or are read without it."""
