"""What has been measured so far, a JSON line each, so that a second run goes on where the first ended."""

from __future__ import annotations

import json
from pathlib import Path

from planner.errors import InputError
from planner.probe.tasks import Machine
from planner.text_io import io_error, json_text, read_text, write_text

NAME = "probe.jsonl"


class Journal:
    """The journal of a folder. Raises InputError where it is of another machine, or is no journal."""

    def __init__(self, folder: Path, machine: Machine) -> None:
        """Read what is there; of a line that was cut short, nothing."""
        self._path, self.measured = folder / NAME, dict[str, float | str]()
        self._head = json_text({"machine": machine.identity})
        text = read_text(self._path) if self._path.is_file() else self._head + "\n"
        self._lines, self._whole = text[:text.rfind("\n") + 1].splitlines(), text.endswith("\n")
        if not self._lines or self._read(1) != json.loads(self._head):
            raise InputError("another machine or other software was probed into this folder: choose a new one",
                             file=str(self._path), line=1)
        for number in range(2, len(self._lines) + 1):
            line = self._read(number)
            if not isinstance(line, dict) or not isinstance(line.get("task"), str):
                raise InputError('expected a JSON object with "task"', file=str(self._path), line=number)
            if "seconds" in line:
                self.measured[line["task"]] = float(line["seconds"])
            else:
                self.measured[line["task"]] = str(line.get("error", ""))

    def _read(self, number: int) -> object:
        try:
            return json.loads(self._lines[number - 1])
        except ValueError:
            raise InputError("not a JSON line of planner probe", file=str(self._path), line=number) from None

    def add(self, key: str, result: float | str) -> None:
        """Note the seconds of a task, or why it has none."""
        self.measured[key] = result
        name = "seconds" if isinstance(result, float) else "error"
        self._lines.append(json_text({"task": key, name: result}))
        try:
            if not self._path.is_file() or not self._whole:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_text(self._path, "\n".join(self._lines) + "\n")
                self._whole = True
                return
            with self._path.open("a", encoding="utf-8") as file:
                file.write(self._lines[-1] + "\n")
        except OSError as error:
            raise io_error(error, self._path, "cannot be written") from None
