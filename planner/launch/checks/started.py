"""What a script starts: run for its first node, with a stand-in for the launcher that writes down how it was called."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PATIENCE = 60
"""Seconds that a script may take to start something."""
_STAND_IN = """#!{python}
import json, os, sys
with open(os.environ["PLANNER_STARTED"], "w") as file:
    json.dump([sys.argv, dict(os.environ)], file)
"""
_LEFT = TemporaryDirectory()
"""Of what scripts leave where checkpoints go; until this process ends."""
BASH = shutil.which("bash") or "bash"
"""The real one, also where a stand-in of that name is first in PATH."""
_OURS = {"NODE_RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


@dataclass(frozen=True)
class Started:
    """A call of a launcher."""

    launcher: str
    words: list[str]
    """Its arguments."""
    environment: dict[str, str]

    def option(self, name: str, default: str = "") -> str:
        """Return the value of `--name=value` of the launcher."""
        return next((word.partition("=")[2] for word in self.words if word.startswith(f"--{name}=")), default)

    @property
    def world(self) -> int:
        """Processes that torchrun starts on all nodes."""
        return int(self.option("nnodes", "1")) * int(self.option("nproc-per-node", "1"))

    @property
    def program(self) -> list[str]:
        """What the launcher starts, a file or `-m` and a module, and its arguments."""
        return self.words[next(place for place, word in enumerate(self.words) if not word.startswith("--")):]


def started(folder: Path, script: str, *launchers: str, environment: Mapping[str, str] | None = None,
            beside: tuple[str, ...] = (), words: tuple[str, ...] = ()) -> Started:
    """Run a script of a folder up to the launcher that it calls last. Raises RuntimeError where it calls none.

    beside: programs that it calls too, which do nothing. words: arguments of the script.
    """
    with TemporaryDirectory() as place:
        for name in (*launchers, *beside):
            path = Path(place) / name
            with path.open("w") as file:
                file.write(_STAND_IN.format(python=sys.executable) if name in launchers else "#!/bin/sh\n")
            path.chmod(0o755)
        record = Path(place) / "started.json"
        whole = {**os.environ, **_OURS, **(environment or {}), "PLANNER_STARTED": str(record),
                 "CHECKPOINTS": _LEFT.name, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"}
        whole.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
        ran = subprocess.run([BASH, str((folder / script).resolve()), *words], env=whole, cwd=folder, text=True,
                             capture_output=True, timeout=PATIENCE, check=False)
        if not record.exists():
            raise RuntimeError(f"{script} started none of {', '.join(launchers)}: {ran.stderr.strip()[-300:]}")
        called, seen = json.loads(record.read_text())
    return Started(Path(called[0]).name, called[1:], seen)


def yaml_of(path: Path) -> dict[str, Any]:
    """Return a YAML file by the reader that the stacks have."""
    found: dict[str, Any] = import_module("yaml").safe_load(path.read_text())
    return found
