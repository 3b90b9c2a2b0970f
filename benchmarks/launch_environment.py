"""The environment apart in which the stacks' own parsers run: built once, with the releases of catalogs/launch.

Apart because OR-Tools and the engines want different protobufs, and one because one is enough: without CUDA, and with
what contradicts another's pins installed alone, it takes about 3.3 GB and two minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from planner.catalog.releases import Releases

BUILT = "built.txt"
"""File that says what was installed, written last."""
NEEDED = 8 * 2**30
"""Bytes of disk that a build may take, with what it downloads."""
WHOLE = ("accelerate", "transformers", "trl", "deepspeed", "torchtitan", "skypilot", "dstack", "ray",
         "kubernetes-validate", "kubeflow-trainer-api")
"""Of the table of releases: installed with what they ask for."""
OF_THE_PLACE = ("tensorrt-llm", "llama-server", "nemo-rl")
"""Of the table, and on no package index."""
BESIDE = (
    "peft", "datasets<5", "tyro", "rich", "omegaconf", "hydra-core", "tensorboard", "six", "einops", "jsonargparse",
    "requests", "psutil", "addict", "colorama", "fire", "python-dotenv", "typer", "lightning", "jsonschema",
    "tensordict", "pyvers", "cachetools", "cbor2", "blake3", "py-cpuinfo", "sentencepiece", "prometheus_client",
    "prometheus-fastapi-instrumentator", "tiktoken", "lark", "partial-json-parser", "pyzmq", "msgspec", "watchfiles",
    "python-json-logger", "pybase64", "ijson", "setproctitle", "cloudpickle", "orjson", "openai", "fastapi[standard]",
    "uvloop", "compressed-tensors==0.17.0", "llguidance>=1.7.0,<1.8", "pillow", "art", "posthog", "interegular",
    "gguf", "dill", "modelscope", "scipy", "IPython", "structlog", "zstandard", "oss-harmony",
    "apache-tvm-ffi==0.1.11", "json_repair", "codetiming", "pylatexenc", "ftfy", "beautifulsoup4")
"""What the code that reads configs imports, of what its packages ask for."""
ALONE = ("torchao==0.18.0", "xgrammar==0.2.8")
FORCED = "click>=8.4.2"
"""SkyPilot asks for an older one than the Hub's client."""


def build(place: Path, releases: Releases) -> str:
    """Return the interpreter of an environment with every parser, built where it is missing.

    A build that broke off, or of other releases, is begun again.
    """
    place = place.absolute()
    whole, alone = packages(releases)
    wanted = "\n".join([*whole, *alone])
    built = place / BUILT
    if not built.exists() or built.read_text() != wanted:
        _room(place)
        shutil.rmtree(place, ignore_errors=True)
        _build(place, releases)
        with built.open("w") as file:
            file.write(wanted)
    return str(place / "bin" / "python")


def packages(releases: Releases) -> tuple[list[str], list[str]]:
    """Return what is installed with what it asks for, and what is installed alone; both with their releases."""
    known = {one.package: one.release for one in releases.targets.values()} | releases.beside
    pins = {name: f"{name}=={release}" for name, release in known.items() if name not in OF_THE_PLACE}
    pins["ray"] = pins["ray"].replace("ray", "ray[serve]", 1)
    torch = f"torch=={releases.beside['torch']}+cpu"
    return [torch, *(pins[name] for name in WHOLE), *BESIDE], [
        *(pin for name, pin in sorted(pins.items()) if name not in (*WHOLE, "torch")), *ALONE]


def _build(place: Path, releases: Releases) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    python = str(place / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "uv"], check=True)
    whole, alone = packages(releases)
    forced = place / "forced.txt"
    with forced.open("w") as file:
        file.write(f"{FORCED}\n{whole[0]}\n")
    # pip takes over an hour to find releases that go together
    uv = [str(place / "bin" / "uv"), "pip", "install", "--python", python]
    environment = {**_like_pip(python), "UV_INDEX_STRATEGY": "unsafe-best-match", "UV_PYTHON_DOWNLOADS": "never"}
    subprocess.run([*uv, "-q", "--override", str(forced), *whole], check=True, env=environment)
    # several ask for Python 3.12 and run on 3.11
    subprocess.run([*uv, "-q", "--no-deps", "--python-version", "3.12", *alone], check=True, env=environment)
    # no check needs it, and it takes as much room as all others together
    subprocess.run([*uv[:2], "uninstall", "-q", "--python", python, "triton"], check=False, env=environment,
                   capture_output=True)


def _room(place: Path) -> None:
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    free = shutil.disk_usage(there).free
    if free < NEEDED:
        raise SystemExit(f"{there} has {free / 1e9:.1f} GB free; the environment needs {NEEDED / 1e9:.1f} GB")


def _like_pip(python: str) -> dict[str, str]:
    """Return the environment in which uv takes packages from where pip does."""
    environment = dict(os.environ)
    for name, variable, between in (("index-url", "UV_DEFAULT_INDEX", " "), ("extra-index-url", "UV_INDEX", " "),
                                    ("find-links", "UV_FIND_LINKS", ","), ("cert", "SSL_CERT_FILE", " ")):
        asked = [python, "-m", "pip", "config", "get", f"global.{name}"]
        value = os.environ.get("PIP_" + name.upper().replace("-", "_")) or subprocess.run(
            asked, capture_output=True, text=True, check=False).stdout
        if value.strip():
            environment.setdefault(variable, between.join(value.split()))
    return environment
