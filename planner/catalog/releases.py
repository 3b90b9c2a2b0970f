"""Which release of each stack launch files are written for, what installs it, and its image: all in one place."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.catalog.sourced import AsOf, Sourced
from planner.catalog.stack import AxisValue, Method, Refusal
from planner.errors import InputError, UnknownName, Unsupported
from planner.yaml_io import Frozen


class Target(Frozen):
    """A program that launch files start."""

    work: Literal["training", "serving", "posttraining", "diffusion", "generation"]
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
    only: dict[str, tuple[AxisValue, ...]] = Field(default={})
    """Axis of a layout -> the values that it can be told, where these are not all that its stack has."""
    only_for: dict[Method, dict[str, tuple[AxisValue, ...]]] = Field(default={})
    """The same for one method."""
    refuses: tuple[Refusal, ...] = ()
    """Combinations that it cannot be told."""
    offloads_together: bool = False
    """Whether it can only be told to offload optimizer states and weights both."""
    install: tuple[str, ...] = ()
    """Lines of a shell that install it."""
    models: dict[str, dict[str, str]] = Field(default={})
    """Of media: model of the catalog -> what it is called there, by what it names: a family, a class, a script."""
    source: str = Field(min_length=3)
    as_of: AsOf


class Releases(Sourced):
    """The table of targets, and the stacks that have none."""

    accelerators: dict[str, str] = Field(default={})
    """GPU -> what SkyPilot and dstack call it (sky/catalog, gpuhunt)."""
    skypilot_at: dict[str, dict[str, str]] = Field(default={})
    """Provider -> GPU -> what SkyPilot calls it there, where that differs."""
    beside: dict[str, str] = Field(default={})
    """Package -> the release that files were tried with: of schedulers' parsers, routers, and what targets run on."""
    targets: dict[str, Target]
    nothing: dict[str, str] = Field(default={})
    """Stack or engine -> why there is nothing to write for it."""

    def named(self, name: str) -> str:
        """Return the name of a target, also of the usual one of a stack or engine that is called otherwise."""
        return name if name in self.targets else next(iter(self.of_stack(name)), name)

    def target(self, name: str) -> Target:
        """Return a target by name; raises InputError."""
        if name in self.nothing:
            raise InputError(f"nothing is written for {name}: {self.nothing[name]}")
        if name not in self.targets:
            raise UnknownName("target", name, self.targets)
        return self.targets[name]

    def of_stack(self, stack: str, method: str | None = None) -> list[str]:
        """Return the targets that are a stack or engine, and train by a method, the usual one first."""
        return [name for name, target in self.targets.items()
                if stack in target.stacks and (method is None or (
                    target.work != "posttraining" and method in (target.methods or (method,))))]

    def some(self, stack: str, method: str | None = None) -> list[str]:
        """Return those of `of_stack`; raises Unsupported where there are none."""
        found = self.of_stack(stack, method)
        if not found:
            every = ", ".join(self.of_stack(stack))
            why = f"{every}: no {method}" if every else self.nothing.get(stack, "no target is this stack")
            raise Unsupported(f"files that start {stack} ({why})")
        return found
