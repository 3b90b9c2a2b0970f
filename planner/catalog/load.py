"""Find catalog entries by name: shipped ones first, then the user's folders, the later the stronger.

One file holds one entry and bears its name, so that a question reads only the files it needs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from planner.catalog.architecture import Model
from planner.catalog.calibrated import CALIBRATION, Calibrated
from planner.catalog.calibration import ArchitectureRates
from planner.catalog.config_path import of_config
from planner.catalog.diffusion import Diffusion
from planner.catalog.engine import Engine
from planner.catalog.entry_file import read_entry
from planner.catalog.fitted import FITTED, Fitted, fitted_files, read_fitted, value_of, with_values
from planner.catalog.folders import checked
from planner.catalog.hardware import Fabric, Gpu, Node
from planner.catalog.part_node import part_named
from planner.catalog.parts import NetPart
from planner.catalog.price import PriceList, Purchase, Site
from planner.catalog.published import PublishedRun, published
from planner.catalog.quirk import Quirks, Sources
from planner.catalog.releases import Releases
from planner.catalog.shared import share
from planner.catalog.sized import TEMPLATE, size_of, sized
from planner.catalog.sourced import Sourced
from planner.catalog.speed import Speeds
from planner.catalog.spelling import Spellings, canonical
from planner.catalog.stack import Method, Stack
from planner.catalog.tool import Tool
from planner.errors import InputError, UnknownName
from planner.text_io import read_bytes
from planner.yaml_io import Document

S = TypeVar("S", bound=Sourced)
KINDS: dict[str, type[Sourced]] = {"gpus": Gpu, "nodes": Node, "fabrics": Fabric, "models": Model,
                                   "prices": PriceList, "stacks": Stack, "sites": Site, "parts": NetPart,
                                   "purchases": Purchase, "engines": Engine, "speeds": Speeds, "evidence": Quirks,
                                   "launch": Releases, "diffusion": Diffusion, "tools": Tool}
ALL_KINDS = (*KINDS, "calibration")


@cache
def data_root(folder: str) -> Path:
    """Return the shipped `folder` (catalogs, scenarios): inside the wheel, else at the top of the checkout."""
    packaged = Path(str(resources.files("planner"))) / "_data" / folder
    return packaged if packaged.is_dir() else Path(str(resources.files("planner"))).parent / folder


class Catalog(Calibrated):
    """Lazy, read-only view of the catalog folders. `folders` are the user's, later ones override earlier ones."""

    def __init__(self, folders: Sequence[Path] = (), *, unfitted: Path | None = None, configs: bool = False) -> None:
        """Open the shipped folder and the user's; `unfitted` is one whose fitted constants are left out.

        configs: whether a model may be the path of a Hugging Face config; not where others than its owner ask.
        """
        self.roots = [data_root("catalogs"), *(checked(folder, ALL_KINDS) for folder in folders)]
        self._entries, self._whole = dict[tuple[str, str], Sourced](), dict[str, list[Any]]()
        self._files: dict[str, dict[str, Path]] = {}
        self._names: dict[str, Spellings] = {}
        self._parts: dict[str, Node] = {}
        self._unfitted = unfitted
        share(self, (tuple(self.roots), unfitted))
        self._configs = configs

    def files(self, kind: str) -> dict[str, Path]:
        """Return the winning file of every entry of `kind`, by name."""
        if kind not in self._files:
            paths: dict[str, Path] = {}
            for root in self.roots:
                paths.update({p.stem: p for p in sorted((root / kind).glob("*.yaml"))})
            self._files[kind] = dict(sorted(paths.items()))
        return self._files[kind]

    def names(self, kind: str) -> list[str]:
        """Return the names of all entries of `kind`, sorted."""
        return list(self.files(kind))

    def _read(self, kind: str, name: str, model: type[S]) -> S:
        key = (kind, name)
        if key not in self._entries:
            path = self.files(kind)[name]
            document, whole = read_entry(path, model, self.files(kind))
            entry = self._fitted(kind, name, document, whole)
            if entry.name != name:
                raise InputError(f"name: expected {name!r} as the file is called, got {entry.name!r}", file=str(path))
            self._entries[key] = entry
        known = self._entries[key]
        assert isinstance(known, model)
        return known

    @cached_property
    def fitted(self) -> list[Fitted]:
        """Constants that lie over stacks, speeds, calibration and networks, the stronger later."""
        return [read_fitted(file) for file in fitted_files(self.roots, self._unfitted)]

    def with_fitted(self, constants: Fitted) -> Catalog:
        """Return a catalog over whose entries `constants` lie too, which are in no file yet."""
        other = copy(self)
        other._entries, other._whole, other.fitted = {}, {}, [*self.fitted, constants]
        return other

    def _fitted(self, kind: str, name: str, document: Document, entry: S) -> S:
        """Return an entry with its fitted constants, and those that it takes from the entry it is like."""
        if kind not in ("stacks", "speeds", "calibration", "fabrics") or name == FITTED:
            return entry
        base = getattr(entry, "like", None)
        for fitted in self.fitted:
            taken = {} if base is None else {
                field: constant for field, constant in fitted.values.get(f"{kind}/{base}", {}).items()
                if field not in document.data and field.partition(".")[0] not in document.data}
            entry = fitted.over(fitted.applied(entry, taken), kind, name)
        return entry

    def changed(self, values: Mapping[tuple[str, str], Mapping[str, float]]) -> Catalog:
        """Return a catalog in which some figures differ: (kind, name) to dotted field to value.

        Stacks that are like a changed one change with it where their figure was the same.
        """
        other = copy(self)
        other._entries, other._whole = dict(self._entries), {}
        for (kind, name), fields in values.items():
            model = KINDS.get(kind) or CALIBRATION.get(name, ArchitectureRates)
            before: Sourced = self._read(kind, name, model)
            other._entries[kind, name] = with_values(other._read(kind, name, model), fields)
            for stack in self.all("stacks", Stack) if kind == "stacks" else []:
                if stack.like == name:
                    same = {f: v for f, v in fields.items() if value_of(stack, f) == value_of(before, f)}
                    other._entries["stacks", stack.name] = with_values(other._read("stacks", stack.name, Stack), same)
        return other

    def _find(self, kind: str, name: str, model: type[S], what: str) -> S:
        entry = self._known(kind, name, model)
        if entry is None:
            raise UnknownName(what, name, self._spellings(kind, model).known)
        return entry

    def _known(self, kind: str, name: str, model: type[S]) -> S | None:
        wanted = canonical(name)
        for spelling in (name, name.lower(), wanted):
            if spelling in self.files(kind):
                return self._read(kind, spelling, model)
        known = self._spellings(kind, model).entry(wanted)
        return None if known is None else self._read(kind, known, model)

    def _spellings(self, kind: str, model: type[S]) -> Spellings:
        if kind not in self._names:
            self._names[kind] = Spellings(
                (spelling, entry.name) for entry in self.all(kind, model)
                for spelling in filter(None, (entry.name, *entry.aliases, getattr(entry, "hf_id", None))))
        return self._names[kind]

    def all(self, kind: str, model: type[S]) -> list[S]:
        """Read and return every entry of `kind`."""
        whole = self._whole.get(kind) or [self._read(kind, name, model) for name in self.names(kind)]
        return [*self._whole.setdefault(kind, whole)]

    def gpu(self, name: str) -> Gpu:
        """Return a GPU by name or alias; raises UnknownName."""
        return self._find("gpus", name, Gpu, "GPU")

    def known_gpu(self, name: str) -> Gpu | None:
        """Return a GPU as `gpu` does; none where the catalog has none of that name."""
        return self._known("gpus", name, Gpu)

    def node(self, name: str) -> Node:
        """Return a node type by name or alias, or one cut from a larger (rtx-3090-6x); raises UnknownName."""
        node = self.known_node(name)
        if node is None:
            raise UnknownName("node", name, self._spellings("nodes", Node).known)
        return node

    def known_node(self, name: str) -> Node | None:
        """Return a node type as `node` does; none where there is none of that name."""
        node = self._known("nodes", name, Node) or self._parts.get(name) or part_named(name, self.all("nodes", Node))
        if node is not None and node.name not in self.files("nodes"):
            self._parts[node.name] = node
        return node

    def fabric(self, name: str) -> Fabric:
        """Return a fabric by name or alias; raises UnknownName."""
        return self._find("fabrics", name, Fabric, "fabric")

    def model(self, name: str) -> Model:
        """Return a model by short name or Hugging Face id, in any case, organization optional; by its size alone; or by
        the path of its config. Raises UnknownName, and InputError for a config that cannot be read.
        """
        model = self.known_model(name) or (of_config(name) if self._configs else None)
        if model is not None:
            return model
        if (size := size_of(name)) is None:
            if (tuned := self._spellings("models", Model).within(name)) is not None:
                return self._read("models", tuned, Model)
            known = (*self._spellings("models", Model).known, *self._spellings("diffusion", Diffusion).known)
            raise UnknownName("model", name, known, unlike=(
                "none of the catalog is like it: the path of its Hugging Face config.json stands for a model, and a "
                "size such as 13b for a dense one"))
        return sized(name, size, self._find("models", TEMPLATE, Model, "model"))

    def known_model(self, name: str) -> Model | None:
        """Return a model as `model` does; none where the catalog has none of that name."""
        return self._known("models", name, Model)

    def diffusion(self, name: str) -> Diffusion:
        """Return a diffusion model as `model` does a language model; raises UnknownName."""
        return self._find("diffusion", name, Diffusion, "diffusion model")

    def known_diffusion(self, name: str) -> Diffusion | None:
        """Return a diffusion model; none where the catalog has none of that name."""
        return self._known("diffusion", name, Diffusion)

    def stack(self, name: str) -> Stack:
        """Return a software stack by name or alias; raises UnknownName."""
        return self._find("stacks", name, Stack, "stack")

    def usual_stacks(self, method: Method, trains: str = "full", *, silent: bool = False) -> list[Stack]:
        """Return the stacks that people use for a method, the most usual first; silent: as of `Stack.place_for`."""
        used = [(place, stack.name, stack) for stack in self.all("stacks", Stack)
                if (place := stack.place_for(method, trains, silent=silent)) is not None]
        return [stack for _, _, stack in sorted(used, key=lambda each: each[:2])]

    def last_stacks(self, method: Method) -> list[Stack]:
        """Return the stacks that have a method, and that few use for it."""
        return [stack for stack in self.all("stacks", Stack) if method in stack.last_resort_for]

    def published_runs(self, name: str) -> tuple[PublishedRun, ...]:
        """Return the runs that the shipped intervals stand on: step-runs, tpot-runs of serving, or those of a task."""
        return published(self.roots[0] / "calibration" / f"{name}.csv")

    def site(self, name: str) -> Site:
        """Return a site by name or alias; raises UnknownName."""
        return self._find("sites", name, Site, "site")

    def engine(self, name: str) -> Engine:
        """Return an inference engine by name or alias; raises UnknownName."""
        return self._find("engines", name, Engine, "engine")

    def speeds(self, engine: str) -> Speeds:
        """Return how fast an inference engine's steps are; raises UnknownName."""
        return self._find("speeds", engine, Speeds, "speeds of the engine")

    @property
    def releases(self) -> Releases:
        """Releases that launch files are written for."""
        return self._find("launch", "versions", Releases, "table of releases")

    def part(self, name: str) -> NetPart:
        """Return a part of a network by name or alias; raises UnknownName."""
        return self._find("parts", name, NetPart, "part")

    def purchase(self, node: str) -> Purchase | None:
        """Return what a node type costs to buy, by the last folder that says; none where no price is known."""
        mine = {purchase.name: purchase for purchase in self.all("purchases", Purchase)
                if self.node(purchase.node).name == node}
        folders = {name: self._folder("purchases", name) for name in mine}
        last = [name for name in mine if folders[name] == max(folders.values())]
        if len(last) > 1:
            raise InputError(f"{node} has two purchase prices: {' and '.join(last)}",
                             file=str(self.files("purchases")[last[-1]]))
        return mine[last[0]] if last else None

    def _folder(self, kind: str, name: str) -> int:
        """Return of which folder an entry is, the stronger the higher."""
        return max(at for at, root in enumerate(self.roots) if root in self.files(kind)[name].parents)

    @cached_property
    def price_lists(self) -> list[PriceList]:
        """Every provider's offers."""
        return self.all("prices", PriceList)

    @cached_property
    def sources(self) -> Sources:
        """What the words of evidence rows mean; rules of later folders answer first."""
        strongest = sorted(self.names("evidence"), key=lambda name: -self._folder("evidence", name))
        return Sources(self._read("evidence", name, Quirks) for name in strongest)

    def calibration_entries(self) -> list[Sourced]:
        """Read and return every calibration entry."""
        return [self._read("calibration", n, CALIBRATION.get(n, ArchitectureRates)) for n in self.names("calibration")]

    @cached_property
    def digest(self) -> str:
        """SHA-256 over every file that can decide an answer, so that a plan names its catalog."""
        total = hashlib.sha256()
        for kind in ALL_KINDS:
            for name, path in self.files(kind).items():
                total.update(f"{kind}/{name}\n".encode())
                total.update(read_bytes(path))
        for path in fitted_files(self.roots, self._unfitted)[:-1]:
            total.update(read_bytes(path))
        return total.hexdigest()[:16]
