"""Launch files of services: layouts x targets x places, each read by the real parser and compared with the plan.

    PATH=ENV/bin:$PATH python -m benchmarks.launch_serving [TARGET..]

ENV is where the engines are installed. Of each folder one file is broken too, which has to be refused.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.table import table
from planner.answer.schema import to_json
from planner.ask.estimate import estimating
from planner.catalog.load import Catalog
from planner.errors import PlannerError
from planner.launch.check import differences, manifest_of, misplaced, parsed, told
from planner.launch.emitter import service_emitters
from planner.launch.folder import launched
from planner.launch.given import Given
from planner.launch.place import place_of

DENSE = ("llama-3.1-8b", "llama-3.3-70b", "qwen2.5-32b")
MIXED = ("mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-120b")
NODES = ("dgx-h100", "dgx-a100", "dgx-b200")
DENSE_LAYOUTS = (("tp=1", 4), ("tp=2", 8), ("tp=8", 8), ("tp=4,pp=2", 16), ("tp=8,pp=2", 16), ("tp=16", 16))
MIXED_LAYOUTS = (("tp=2", 8), ("tp=8", 8), ("tp=1,dp=8,ep=8", 8), ("tp=1,dp=16,ep=16", 16), ("tp=2,dp=4,ep=1", 8),
                 ("tp=8,pp=2", 16))
ASKED = ({}, {"quantization": "fp8"}, {"quantization": "int4"}, {"kv_cache": "fp8"}, {"speculative": "3:0.7"},
         {"adapters": "4", "lora_rank": "16"}, {"max_model_len": "6000"})
PLACES = ("torchrun", "slurm", "kubernetes")
BROKEN = ("--max-model-len", "--context-length", "--max_seq_len", "--parallel")


def cases(target: str, catalog: Catalog) -> list[Given]:
    """Return an estimate of each layout that is legal, runs and fits; prefill and decode apart for every fifth."""
    engine = catalog.releases.target(target).stacks[0]
    found: list[Given] = []
    for models, layouts in ((DENSE, DENSE_LAYOUTS), (MIXED, MIXED_LAYOUTS)):
        for at, model in enumerate(models):
            for number, (layout, gpus) in enumerate(layouts):
                asked = ASKED[(at + number * len(models)) % len(ASKED)]
                words = {"kind": "serving", "model": model, "engine": engine, "input": "1500", "output": "200", **asked}
                node = NODES[number % len(NODES)]
                try:
                    placed = estimating(None, {**{f"workload.{key}": value for key, value in words.items()},
                                               "limits.gpus": str(gpus)}, catalog, node=node,
                                        layout=dict(part.split("=") for part in layout.split(",")), labels={}
                                        ).answer().assignment
                except PlannerError as error:
                    print(f"no plan: {model} {layout} on {node}, {asked}: {error}", file=sys.stderr)
                    continue
                given = Given(placed, None, to_json(placed))
                if len(found) % 5 == 4 and placed.serving is not None and not placed.serving.drafts:
                    roles = [placed.model_copy(update={"serving": placed.serving.model_copy(update={"role": role})})
                             for role in ("prefill", "decode")]
                    given = Given(roles[0], None, to_json(roles[0]), (roles[1],))
                found.append(given)
    return found


def main(targets: list[str]) -> None:
    """Print how many plans were tried, accepted, resolved equal, and refused; and how many broken ones were."""
    catalog, rows = Catalog(), []
    for target in targets:
        counts: Counter[str] = Counter()
        with TemporaryDirectory() as place:
            folders: dict[Path, Given] = {}
            schedulers: dict[str, list[Path]] = {}
            for number, given in enumerate(cases(target, catalog)):
                scheduler = PLACES[number % len(PLACES)]
                try:
                    files = launched(given, catalog, target, scheduler).files
                except PlannerError as error:
                    counts["refused"] += 1
                    print(f"{target} refused: {error}", file=sys.stderr)
                    continue
                folder = Path(place) / str(number)
                folder.mkdir()
                for name, text in files.items():
                    with (folder / name).open("w") as file:
                        file.write(text)
                folders[folder] = given
                schedulers.setdefault(scheduler, []).append(folder)
            broken = _broken(list(folders)[:3])
            _engine(target, catalog, folders, broken, counts)
            _places(schedulers, counts)
        rows.append([target, catalog.releases.target(target).release, *(str(counts[key]) for key in (
            "tried", "accepted", "equal", "broken refused", "broken", "refused", "placed", "placed equal"))])
    print("\n".join(table(("target", "release", "tried", "accepted", "equal", "broken refused", "of", "not expressed",
                           "at a place", "equal"), rows)))


def _broken(folders: list[Path]) -> list[Path]:
    made = []
    for folder in folders:
        copy = folder.with_name(folder.name + "-broken")
        shutil.copytree(folder, copy)
        for path in copy.glob("*.sh"):
            text = path.read_text()
            for key in BROKEN:
                text = text.replace(key + " ", key + "s-of ")
            with path.open("w") as file:
                file.write(text)
        made.append(copy)
    return made


def _engine(target: str, catalog: Catalog, folders: dict[Path, Given], broken: list[Path], counts: Counter[str]
            ) -> None:
    python = str(shutil.which("python3"))
    for found in parsed(target, catalog.releases.target(target).package, [*folders, *broken], python):
        if found.missing:
            raise SystemExit(f"{target} is not installed for {python}: {found.missing}")
        path = Path(found.folder)
        given = next((given for folder, given in folders.items() if folder.resolve() == path), None)
        if given is None:
            counts["broken"] += 1
            counts["broken refused"] += bool(found.error)
            continue
        counts["tried"] += 1
        counts["accepted"] += not found.error
        different = [found.error] if found.error else list(differences(told(given, catalog, target),
                                                                       found.resolved or {}))
        counts["equal"] += not different
        for line in different:
            print(f"{target} {given.placed.model} {given.placed.split} {given.placed.layout.precision}: {line}",
                  file=sys.stderr)


def _places(schedulers: dict[str, list[Path]], counts: Counter[str]) -> None:
    for scheduler, folders in schedulers.items():
        place = place_of(scheduler)
        if not place.check:
            continue
        for found in parsed(place.check, place.package, folders, str(shutil.which("python3"))):
            counts["placed"] += 1
            different = [found.error or found.missing] if found.error or found.missing else list(
                misplaced(manifest_of(Path(found.folder)), found.resolved or {}))
            counts["placed equal"] += not different
            for line in different:
                print(f"{scheduler}: {line}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:] or [*service_emitters()])
