"""Launch files of a matrix of plans, read by the stacks' own parsers in an environment of their own.

    python -m benchmarks.launch ENVIRONMENT [TARGET or scheduler ..]

builds the environment (about 3.3 GB, two minutes) where it is missing, writes the files of every plan that a target
can be told, each at one of the schedulers, has its parser read them all, compares what it made of them with the plan,
breaks one key and sees that it is refused; does the same with the jobs of the schedulers; and writes the rows of
docs/launch.md. `llama-server` has to be on PATH; $PLANNER_TRTLLM_CONTRACT, $PLANNER_NEMO_RL and $PLANNER_CRDS name the
contract of trtllm-serve, a checkout of NeMo RL and the folder with the CRD of LeaderWorkerSets
(planner/launch/checks). Without one, a row says so.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.launch_cases import cases
from benchmarks.launch_environment import build
from benchmarks.table import table
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.launch.axes import CannotExpress
from planner.launch.check import Found, differences, manifest_of, misplaced, parsed, syntax_errors, told
from planner.launch.emitter import all_targets
from planner.launch.folder import Launched, launched
from planner.launch.given import Given
from planner.launch.place import all_places, place_of

PAGE = Path(__file__).parents[1] / "docs" / "launch.md"
HEAD = "## Files read by the stacks' own parsers"
COLUMNS = ("parser", "tried", "plans", "accepted", "resolved equal", "slip refused", "cannot be told")
BROKEN = {"megatron-bridge": ("pretrain.py", "get_mixed_precision_config(", "get_mixed_precision_confg("),
          "megatron-lm": ("train.sh", "--global-batch-size", "--global-bach-size"),
          "torchtitan": ("plan_config.py", "tensor_parallel_degree", "tensor_parallel_degre"),
          "deepspeed": ("train.yaml", "gradient_checkpointing", "gradient_checkpoint"),
          "accelerate": ("accelerate.yaml", "distributed_type", "distribution_type"),
          "axolotl": ("axolotl.yaml", "micro_batch_size", "micro_batchsize"),
          "unsloth": ("train.yaml", "per_device_train_batch_size", "per_device_train_batchsize"),
          "ms-swift": ("ms-swift.yaml", "gradient_accumulation_steps", "gradient_accumulate_steps"),
          "llama-factory": ("llama-factory.yaml", "cutoff_len", "cutof_len"),
          "litgpt": ("litgpt.yaml", "micro_batch_size", "micro_batchsize"),
          "vllm": ("*.sh", "--max-model-len ", "--max-modl-len "),
          "sglang": ("*.sh", "--context-length ", "--contxt-length "),
          "tensorrt-llm": ("*.sh", "--max_seq_len ", "--max_sq_len "),
          "llama-cpp": ("*.sh", "--parallel ", "--paralell "),
          "verl": ("train.sh", "actor.ppo_mini_batch_size", "actor.ppo_mini_batchsize"),
          "openrlhf": ("train.sh", "--rollout.n_samples_per_prompt", "--rollout.n_sample_per_prompts"),
          "nemo-rl": ("train.sh", "grpo.num_prompts_per_step", "grpo.num_prompt_per_step"),
          "trl-grpo": ("train.yaml", "num_generations", "num_generation"),
          "ms-swift-grpo": ("train.yaml", "num_generations", "num_generation"),
          "simpletuner": ("config.json", "train_batch_size", "train_batchsize"),
          "diffusers": ("settings.json", "num_inference_steps", "num_inferenc_steps"),
          "xdit": ("replica.sh", "--batch_size ", "--batchsize "),
          "kubernetes": ("kubernetes.yaml", "containers:", "containrs:"),
          "trainjob": ("kubernetes.yaml", "numNodes:", "numNode:"),
          "skypilot": ("sky.yaml", "num_nodes:", "num_node:"),
          "skyserve": ("service.yaml", "readiness_probe:", "readines_probe:"),
          "dstack": (".dstack.yml", "commands:", "comands:"),
          "dynamo": ("dynamo.yaml", "components:", "component:"),
          "ray": ("ray_job.py", "placement_group_bundle_index=", "placement_group_bundle_indx="),
          "ray-serve": ("ray-serve.yaml", "engine_kwargs:", "engine_kwrgs:")}
"""Of each target and scheduler a file, a key in it, and the same with a slip."""
NOT_TRIED = "not tried"


@dataclass
class Tried:
    """How many plans a target or scheduler was tried with, accepted and resolved as planned."""

    package: str
    release: str = NOT_TRIED
    plans: int = 0
    accepted: int = 0
    equal: int = 0
    slip: bool | None = None
    refused: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)

    def take(self, name: str, found: Found, different: Iterator[str]) -> None:
        """Count one folder that was read; `different` is asked only where it was accepted."""
        self.plans += 1
        self.accepted += found.resolved is not None
        off = [found.error or found.missing] if found.resolved is None else list(different)
        self.equal += not off
        self.wrong += [f"{name}: {problem}" for problem in off]

    def row(self) -> list[str]:
        """Return the cells of the page."""
        done = [f"{self.accepted}", f"{self.equal}", {None: "-", True: "yes", False: "no"}[self.slip]]
        return [f"{self.package} {self.release}", date.today().isoformat(), f"{self.plans}",
                *(done if self.release != NOT_TRIED else [NOT_TRIED] * 3), ", ".join(sorted(self.refused)) or "-"]


def written(target: str, place: Path, catalog: Catalog, tried: Tried) -> list[tuple[str, Path, Given]]:
    """Write the folders of a target, each for the next scheduler that takes it."""
    made: list[tuple[str, Path, Given]] = []
    schedulers = cycle(sorted(all_places()))
    for name, given in cases(target, catalog):
        try:
            files = _somewhere(given, target, schedulers, catalog)
        except CannotExpress as error:
            tried.refused.update(error.refused)
            continue
        except InputError:
            tried.refused.add("model")
            continue
        folder = place / f"{target}-{len(made):03d}"
        folder.mkdir()
        for file, text in files.files.items():
            with (folder / file).open("w") as opened:
                opened.write(text)
        tried.wrong += [f"{name}: {problem}" for problem in syntax_errors(folder)]
        made.append((name, folder, given))
    return made


def _somewhere(given: Given, target: str, schedulers: Iterator[str], catalog: Catalog) -> Launched:
    for _ in all_places():
        try:
            return launched(given, catalog, target, next(schedulers))
        except CannotExpress:
            raise
        except InputError:
            continue
    return launched(given, catalog, target)


def by_target(target: str, made: Sequence[tuple[str, Path, Given]], python: str, catalog: Catalog, tried: Tried
              ) -> None:
    """Have the parser of a target read its folders, and one with a slip."""
    if not made:
        return
    broken = broken_copy(target, made[0][1])
    found = parsed(target, tried.package, [*(folder for _, folder, _ in made), broken], python)
    tried.release = found[0].release or NOT_TRIED
    for (name, _, given), one in zip(made, found, strict=False):
        tried.take(name, one, differences(told(given, catalog, target), one.resolved or {}))
    tried.slip = bool(found[-1].error) and len(found) == len(made) + 1


def by_place(scheduler: str, folders: Sequence[Path], python: str) -> Tried:
    """Have what reads the files of a scheduler read them, and one with a slip."""
    place = place_of(scheduler)
    tried = Tried(place.package)
    found = parsed(place.check, place.package, [*folders, broken_copy(scheduler, folders[0])], python)
    tried.release = found[0].release or NOT_TRIED
    for folder, one in zip(folders, found, strict=False):
        tried.take(folder.name, one, misplaced(manifest_of(folder), one.resolved or {}))
    tried.slip = bool(found[-1].error)
    return tried


def broken_copy(name: str, folder: Path) -> Path:
    """Return a copy of a folder in which one key of the target or scheduler has a slip."""
    pattern, key, slip = BROKEN[name]
    copy = folder.with_name(f"broken-{name}")
    shutil.copytree(folder, copy)
    paths = [path for path in copy.glob(pattern) if key in path.read_text()]
    assert paths, f"{name}: no {pattern} has {key}"
    for path in paths:
        text = path.read_text().replace(key, slip)
        with path.open("w") as file:
            file.write(text)
    return copy


def section(old: str, rows: Mapping[str, Tried]) -> str:
    """Return the section of the page: the rows of what was tried, and those that it has of others."""
    lines = {line.split("`")[1]: [cell.strip() for cell in line.strip("| ").split(" | ")[1:]]
             for line in old.splitlines() if line.startswith("| `")}
    lines |= {name: one.row() for name, one in rows.items()}
    names = [name for name in (*all_targets(), *all_places()) if name in lines]
    return "\n".join([
        HEAD, "", "Written by `python -m benchmarks.launch`: plans that vary every axis (dense and mixture, from "
        "scratch, tuned, served, by reinforcement learning; images, clips and sound) and all shipped scenarios; "
        "accepted by the parser; "
        "resolved to every axis of the plan that the parser knows; whether a key with a slip is refused; axes of "
        "which the target refuses some value. The schedulers are held to the plan's nodes, GPUs and copies.", "",
        *table(("for", *COLUMNS), [[f"`{name}`", *lines[name]] for name in names])]) + "\n"


def main() -> None:
    """Try the targets, then the schedulers, print what is wrong, and write the table."""
    where, *names = sys.argv[1:] or ["launch-environment"]
    catalog = Catalog()
    python = build(Path(where), catalog.releases)
    os.environ["PATH"] = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    rows: dict[str, Tried] = {}
    schedulers: dict[str, list[Path]] = {}
    with TemporaryDirectory() as place:
        for target in [name for name in names if name in all_targets()] or all_targets():
            rows[target] = Tried(catalog.releases.target(target).package)
            made = written(target, Path(place), catalog, rows[target])
            by_target(target, made, python, catalog, rows[target])
            for _, folder, _ in made:
                schedulers.setdefault(str(manifest_of(folder)["scheduler"]), []).append(folder)
            tell(target, rows[target])
        for name, folders in schedulers.items():
            if place_of(name).check and (not names or name in names):
                rows[name] = by_place(name, folders, python)
                tell(name, rows[name])
    before, _, after = PAGE.read_text().partition(HEAD)
    old, more, rest = after.partition("\n## ")
    text = before.rstrip() + "\n\n" + section(old, rows) + (more + rest)
    with PAGE.open("w") as page:
        page.write(text)


def tell(name: str, one: Tried) -> None:
    """Print the row, and what is wrong, the commonest first."""
    print(json.dumps([name, *one.row()]), flush=True)
    for problem, count in Counter(one.wrong).most_common():
        print(f"  {count} x {problem}", flush=True)


if __name__ == "__main__":
    main()
