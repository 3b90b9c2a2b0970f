"""Which release of each stack launch files are written for, what installs it, and its image: all in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from planner.catalog.architecture import Model
from planner.catalog.hardware import Precision
from planner.catalog.sourced import AsOf, Sourced
from planner.catalog.stack import AxisValue, Conflict, Method
from planner.errors import InputError, UnknownName, Unsupported
from planner.yaml_io import Frozen

Kind = Literal["training", "serving", "posttraining", "diffusion", "generation"]
WORDS: dict[Kind, str] = {"training": "training", "serving": "serving", "posttraining": "reinforcement learning",
                          "diffusion": "training diffusion models", "generation": "making images, clips or sound"}
"""What a kind of work is called."""


class Target(Frozen):
    """A program that launch files start."""

    work: Kind
    package: str
    """On the package index, or the name of its program."""
    release: str
    stacks: tuple[str, ...] = ()
    """Stacks or engines of the catalog that it is."""
    image: str | None = None
    """Container with it, or with what it needs; pinned."""
    complete: bool = False
    """Whether the container has it, and nothing is to be installed there."""
    methods: tuple[Method, ...] = ()
    """What training it does; none named means all that its stacks do."""
    precisions: tuple[Precision, ...] = ()
    """Number formats that it can be told; none named means all that its stacks have."""
    precisions_of: dict[str, tuple[Precision, ...]] = Field(default={})
    """The same of a stack that has others."""
    only: dict[str, tuple[AxisValue, ...]] = Field(default={})
    """Axis of a layout -> the values that it can be told, where these are not all that its stack has."""
    only_for: dict[Method, dict[str, tuple[AxisValue, ...]]] = Field(default={})
    """The same for one method."""
    refuses: tuple[Conflict, ...] = ()
    """Combinations that it cannot be told."""
    offloads_together: bool = False
    """Whether it can only be told to offload optimizer states and weights both."""
    install: tuple[str, ...] = ()
    """Lines of a shell that install it."""
    models: dict[str, dict[str, str]] = Field(default={})
    """Model of the catalog -> what it is called there, by what it names: a family, a flavour, a class, a script."""
    builds: Literal["", "megatron", "llama"] = ""
    """By whose parts it builds other language models; by none it has those that are named, or any."""
    has: tuple[str, ...] = ()
    """Language models that it loads under the name of their checkpoint."""
    checkpoints: dict[str, str] = Field(default={})
    """Others that it loads -> the name of the checkpoint that it knows."""
    source: str = Field(min_length=3)
    as_of: AsOf

    def formats(self, stack: str, asked: tuple[Precision, ...]) -> tuple[Precision, ...]:
        """Return the number formats of those asked that it can be told of a stack."""
        known = self.precisions_of.get(stack, self.precisions)
        return tuple(name for name in asked if name in (known or asked))


class Older(Frozen):
    """GPUs that newer builds have no code for, and the builds that have."""

    on: tuple[str, ...]
    """Architectures."""
    images: dict[str, str]
    """Image of a target -> the one that they have in its place."""
    index: str
    """Package index with wheels for them."""
    why: str = Field(min_length=3)


class Releases(Sourced):
    """The table of targets, and the stacks that have none."""

    accelerators: dict[str, str] = Field(default={})
    """GPU -> what SkyPilot calls it (sky/catalog)."""
    dstack: dict[str, str] = Field(default={})
    """GPU -> what dstack calls it; after a hyphen its memory, where cards of one name differ."""
    ray: dict[str, str] = Field(default={})
    """GPU -> what Ray calls it."""
    skypilot_at: dict[str, dict[str, str]] = Field(default={})
    """Provider -> GPU -> what SkyPilot calls it there, where that differs."""
    flash_attention: tuple[str, ...] = ()
    """Architectures of GPUs that FlashAttention 2 has kernels for."""
    older: Older | None = None
    beside: dict[str, str] = Field(default={})
    """Package -> the release that files were tried with: of schedulers' parsers, routers, and what targets run on."""
    targets: dict[str, Target]
    modules: dict[str, str] = Field(default={})
    """Matrix of a layer that may have adapters -> what the code of `modules_of` calls it."""
    modules_of: tuple[str, ...] = ()
    """Models whose names begin so, dense ones."""
    nothing: dict[str, str] = Field(default={})
    """Stack or engine -> why there is nothing to write for it."""

    def modules_in(self, model: Model) -> Mapping[str, str]:
        """Return what a model's code calls its matrices; nothing where that is not known."""
        # an encoder may have modules of the same names
        alone = model.tower is None and model.ear is None and not model.mixes_experts
        known = alone and model.name.startswith(self.modules_of)
        return self.modules if known and self.modules_of else {}

    def named(self, name: str, work: Kind | None = None) -> str:
        """Return the name of a target, also of the usual one of a stack or engine that is called otherwise.

        Of one kind of work that target goes first.
        """
        known = [*(self.of_stack(name, work=work) if work else ()), *self.of_stack(name)]
        fits = name in self.targets and work in (None, self.targets[name].work)
        return name if fits else next(iter(known), name)

    def target(self, name: str) -> Target:
        """Return a target by name; raises InputError."""
        if name in self.nothing:
            raise InputError(f"nothing is written for {name}: {self.nothing[name]}")
        if name not in self.targets:
            raise UnknownName("target", name, self.targets)
        return self.targets[name]

    def of_stack(self, stack: str, method: str | None = None, work: Kind | None = None) -> list[str]:
        """Return the targets that are a stack or engine, of a kind of work, and train by a method; the usual one first.
        """
        return [name for name, target in self.targets.items()
                if stack in target.stacks and target.work == (work or target.work) and (method is None or (
                    target.work != "posttraining" and method in (target.methods or (method,))))]

    def of_work(self, work: Kind, method: str | None = None) -> list[str]:
        """Return the targets of a kind of work, that train by a method."""
        return [name for name, target in self.targets.items() if target.work == work and (
            method is None or work != "training" or method in (target.methods or (method,)))]

    def some(self, stack: str, method: str | None = None, work: Kind | None = None) -> list[str]:
        """Return those of `of_stack`; raises Unsupported where there are none."""
        found = self.of_stack(stack, method, work)
        if not found:
            every = ", ".join(self.of_stack(stack))
            why = self.nothing.get(stack, f"{every}: no {method or work}" if every else "no target is this stack")
            raise Unsupported(f"files that start {stack} ({why})")
        return found

    def of_kind(self, name: str, work: Kind) -> Target:
        """Return the target of a name; raises InputError for one of other work."""
        target = self.target(name)
        if target.work != work:
            raise InputError(f"{name} is for {WORDS[target.work]}, and this is {WORDS[work]}: "
                             f"{', '.join(self.of_work(work))}")
        return target
