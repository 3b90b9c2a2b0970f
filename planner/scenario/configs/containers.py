"""The line that a container starts, of a file for Docker Compose or Kubernetes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

ENGINES = {"vllm": "vllm serve", "vllm-openai": "python -m vllm.entrypoints.openai.api_server"}
"""Images that start an engine themselves, by the last part of their name, with the line that the arguments follow."""
SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash", "/usr/bin/bash")


def command_in(data: Mapping[str, object]) -> str | None:
    """Return the line of the first container that starts an inference engine; none where none does."""
    for container in _containers(data):
        line = _line(container)
        if "vllm" in line or "sglang" in line:
            return line
    return None


def _containers(data: object) -> Iterator[Mapping[str, object]]:
    """Yield what has an image, wherever it stands: a service, a container of a pod."""
    if isinstance(data, Mapping):
        if "image" in data and ("command" in data or "args" in data):
            yield data
        for value in data.values():
            yield from _containers(value)
    elif isinstance(data, list):
        for value in data:
            yield from _containers(value)


def _line(container: Mapping[str, object]) -> str:
    started = " ".join(filter(None, (_words(container.get(key)) for key in ("entrypoint", "command", "args"))))
    image = str(container["image"]).rpartition("/")[2].partition(":")[0].partition("@")[0]
    own = ENGINES.get(image)
    return started if own is None or "vllm" in started.split() or "vllm." in started else f"{own} {started}"


def _words(value: object) -> str:
    """Return words as one line; of a shell the script that it runs."""
    if not isinstance(value, list):
        return "" if value is None else str(value)
    words = [str(word) for word in value]
    if words and words[0] in SHELLS and any(word.startswith("-") and word.endswith("c") for word in words[1:2]):
        return " ".join(words[2:])
    return words[0] if len(words) == 1 and " " in words[0] else shlex.join(words)
