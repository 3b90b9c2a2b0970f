"""Finished answers: in memory, and those of searches in a folder, so that stopping the server loses none."""

from __future__ import annotations

import json
from collections import OrderedDict
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock

from planner.errors import PlannerError
from planner.process.version import __version__
from planner.text_io import json_text, read_text, write_text
from planner.web.answering import Answered
from planner.web.limits import MOST_KEPT, MOST_REMEMBERED

MOST_BYTES = 64 << 20
"""Of an answer read back."""


def code() -> str:
    """Return what tells the code that answers here from any other: its version, and when each of its files was made."""
    here = Path(__file__).parents[1]
    made = [(str(file.relative_to(here)), file.stat().st_mtime_ns, file.stat().st_size)
            for file in sorted(here.rglob("*")) if file.suffix in (".py", ".j2", ".css", ".js")]
    return f"{__version__} {sha256(repr(made).encode()).hexdigest()[:16]}"


class AnswerStore:
    """Answers by the key of their question. A folder that cannot be written keeps none, and no answer fails for it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.lock = folder, Lock()
        self.remembered: OrderedDict[str, Answered] = OrderedDict()

    def get(self, key: str) -> Answered | None:
        """Return the answer to a question; none where it has not been answered."""
        with self.lock:
            if key in self.remembered:
                self.remembered.move_to_end(key)
                return self.remembered[key]
        try:
            data = json.loads(read_text(self.folder / f"{key}.json", MOST_BYTES))
            found = Answered(str(data["text"]), int(data["exit_code"]), str(data["page"]))
        except (PlannerError, ValueError, KeyError, TypeError):
            return None
        self._remember(key, found)
        return found

    def put(self, key: str, answer: Answered, *, on_disk: bool) -> None:
        """Keep an answer, also beyond the end of this server."""
        self._remember(key, answer)
        if on_disk:
            with suppress(PlannerError, OSError):
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_text(self.folder / f"{key}.json", json_text(
                    {"text": answer.text, "exit_code": answer.exit_code, "page": answer.page}))
                self._tidy()

    def _remember(self, key: str, answer: Answered) -> None:
        with self.lock:
            self.remembered[key] = answer
            self.remembered.move_to_end(key)
            while len(self.remembered) > MOST_REMEMBERED:
                self.remembered.popitem(last=False)

    def _tidy(self) -> None:
        with suppress(OSError):
            files = sorted(self.folder.glob("*.json"), key=lambda file: file.stat().st_mtime_ns)
            for file in files[:-MOST_KEPT]:
                file.unlink(missing_ok=True)
