"""Launch files of a matrix of plans, read by the stacks' own parsers in an environment of their own.

    python -m benchmarks.launch ENVIRONMENT [TARGET ..]

builds the environment (about 3.3 GB, two minutes) where it is missing, writes the files of every plan that a target of
training can be told, has its parser read them all, compares what it made of them with the plan, breaks one key and sees
that it is refused, and writes the rows of docs/launch.md.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.launch_cases import cases
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.launch.axes import CannotExpress
from planner.launch.check import differences, parsed, syntax_errors
from planner.launch.emitter import all_emitters
from planner.launch.folder import launched
from planner.launch.work import work_of

PAGE = Path(__file__).parents[1] / "docs" / "launch.md"
HEAD = "## Training files, read by the stacks' own parsers"
RESOLVED = ("torch==2.13.0", "transformers==5.19.0", "accelerate==1.15.0", "trl==1.16.0", "peft", "deepspeed==0.19.8",
            "datasets<5", "torchtitan==0.3.0", "tyro", "rich", "omegaconf", "hydra-core", "tensorboard", "six",
            "einops", "jsonargparse", "requests", "psutil", "addict", "colorama", "fire", "python-dotenv", "typer",
            "lightning", "ray")
ALONE = ("megatron-core==0.19.2", "megatron-bridge==0.6.2", "axolotl==0.21.0", "unsloth==2026.10.9",
         "llamafactory==0.9.5", "ms-swift==4.6.0", "litgpt==0.5.13", "torchao==0.18.0",
         "verl==0.9.1", "openrlhf==0.11.2", "tensordict", "pyvers")
"""Installed without what they ask for, which is CUDA for the most part."""
BROKEN = {"megatron-bridge": ("pretrain.py", "get_mixed_precision_config(", "get_mixed_precision_confg("),
          "megatron-lm": ("train.sh", "--global-batch-size", "--global-bach-size"),
          "torchtitan": ("plan_config.py", "tensor_parallel_degree", "tensor_parallel_degre"),
          "deepspeed": ("train.yaml", "gradient_checkpointing", "gradient_checkpoint"),
          "accelerate": ("accelerate.yaml", "distributed_type", "distribution_type"),
          "axolotl": ("axolotl.yaml", "micro_batch_size", "micro_batchsize"),
          "unsloth": ("train.yaml", "per_device_train_batch_size", "per_device_train_batchsize"),
          "ms-swift": ("ms-swift.yaml", "gradient_accumulation_steps", "gradient_accumulate_steps"),
          "llama-factory": ("llama-factory.yaml", "cutoff_len", "cutof_len"),
          "litgpt": ("litgpt.yaml", "micro_batch_size", "micro_batchsize")}
"""Of each target a file, a key in it, and the same with a slip."""


def build(place: Path) -> str:
    """Return the interpreter of an environment with every parser, built where it is missing."""
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        pip = [str(python), "-m", "pip", "install", "-q"]
        subprocess.run([*pip, *RESOLVED], check=True)
        subprocess.run([*pip, "--no-deps", "--ignore-requires-python", *ALONE], check=True)
    return str(python)


def tried(target: str, python: str, catalog: Catalog) -> dict[str, object]:
    """Return how many plans a target was tried with, accepted and resolved as planned, and what it cannot be told."""
    emitter, release = all_emitters()[target], catalog.releases.target(target)
    refused: Counter[str] = Counter()
    works, wrong = [], []
    with TemporaryDirectory() as place:
        for stack in release.stacks[:2]:
            for name, given in cases(stack, catalog):
                try:
                    made = launched(given, catalog, target)
                except CannotExpress as error:
                    refused.update([*error.refused])
                    continue
                except InputError:
                    refused["model"] += 1
                    continue
                folder = Path(place) / f"{len(works):03d}"
                folder.mkdir()
                for file, text in made.files.items():
                    (folder / file).write_text(text)
                wrong += [f"{name}: {problem}" for problem in syntax_errors(folder)]
                works.append((name, folder, work_of(given.placed, given.scenario, catalog, target)))
        broken = _broken(target, works[0][1]) if target in BROKEN else None
        found = parsed(target, release.package, [*(folder for _, folder, _ in works), *([broken] if broken else [])],
                       python)
    accepted = equal = 0
    for (name, _, work), one in zip(works, found, strict=False):
        accepted += one.resolved is not None
        off = list(differences(work, one.resolved)) if one.resolved is not None else [one.error or one.missing]
        equal += not off
        wrong += [f"{name}: {problem}" for problem in off]
    slip = bool(broken) and bool(found[-1].error)
    return {"target": target, "package": release.package, "release": found[0].release or "not tried",
            "plans": len(works), "accepted": accepted, "equal": equal, "slip": slip, "refused": sorted(refused),
            "axes": len(emitter.table), "wrong": wrong, "missing": found[0].missing}


def _broken(target: str, folder: Path) -> Path:
    file, key, slip = BROKEN[target]
    copy = folder.with_name("broken")
    shutil.copytree(folder, copy)
    text = (copy / file).read_text()
    assert key in text, f"{target}: {file} has no {key}"
    (copy / file).write_text(text.replace(key, slip))
    return copy


def row_of(row: dict[str, object]) -> str:
    """Return the line of the page for a target."""
    told = ("not tried", "not tried", "not tried") if row["missing"] else (
        row["accepted"], row["equal"], "yes" if row["slip"] else "no")
    refused = row["refused"]
    assert isinstance(refused, list)
    return (f"| `{row['target']}` | {row['package']} {row['release']} | {date.today().isoformat()} | {row['plans']} | "
            f"{' | '.join(map(str, told))} | {', '.join(refused)} |")


def section(old: str, rows: list[dict[str, object]]) -> str:
    """Return the section of the page: the rows of what was tried, and those that it has of other targets."""
    lines = {line.split("`")[1]: line for line in old.splitlines() if line.startswith("| `")}
    lines |= {str(row["target"]): row_of(row) for row in rows}
    return "\n".join([
        HEAD, "", "Written by `python -m benchmarks.launch`: plans that vary every axis (dense and mixture, "
        "from scratch and tuned); accepted by the parser; resolved to every axis of the plan that the parser knows; "
        "whether a key with a slip is refused; axes of which the target refuses some value.", "",
        "| target | parser | tried | plans | accepted | resolved equal | slip refused | cannot be told |",
        "|---|---|---|---|---|---|---|---|", *(lines[name] for name in sorted(lines))]) + "\n"


def main() -> None:
    """Try the targets, print what is wrong, and write the table."""
    place, *names = sys.argv[1:] or ["launch-environment"]
    python, catalog = build(Path(place).resolve()), Catalog()
    rows = []
    for target in names or list(all_emitters()):
        row = tried(target, python, catalog)
        rows.append(row)
        print(json.dumps(row), flush=True)
    before, _, after = PAGE.read_text().partition(HEAD)
    old, more, rest = after.partition("\n## ")
    PAGE.write_text(before.rstrip() + "\n\n" + section(old, rows) + (more + rest))


if __name__ == "__main__":
    main()
