"""Shell scripts as far as flags need: comments, continued lines, variables, arrays, sums, and scripts beside them."""

from __future__ import annotations

import ast
import operator
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from planner.scenario.configs.heredocs import heredocs

_ASSIGNED = re.compile(r"(?:export |local |readonly )?([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_EXPORTED = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL | re.ASCII)
_ELEMENT = re.compile(r"(?<![\w./])[\w.-]{1,99}\.sh(?![\w.])", re.ASCII)
"""A script that an element of an array names: of a loop that starts them."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)(?:\[[@*]\])?(?::?[-=]([^}$]*))?\}|\$([A-Za-z_]\w*)")
_TRIMMED = re.compile(r"\$\{([A-Za-z_]\w*)(?:\[0\])?%{1,2}([^}*$/]{1,20})\}")
"""A variable without what it ends with: ${BASH_SOURCE[0]%.sh}."""
_HERE = re.compile(r'"?\$\(.{0,200}\b(?:dirname|pwd)\b.{0,200}\)"?', re.DOTALL)
"""The folder of the script."""
_WHOLE = re.compile(r'"(\$\{[A-Za-z_]\w*\[@\]\})"')
"""An array in quotes, which is as many words as it has elements."""
_SETS = re.compile(r'^: "?\$\{([A-Za-z_]\w*):?=([^}]*)\}')
"""A variable that is set unless it is already: : "${MODEL:=Qwen/Qwen3-8B}"."""
_UNSET = re.compile(r"\$\{[A-Za-z_]\w*\[[@*]\]\}")
_ARITHMETIC = re.compile(r"\$\(\(((?:[^()$]|\([^()]*\)|\$(?!\())*)\)\)")
_EXPR = re.compile(r"(?:\$\(|`)expr ([^()`$]+)[)`]")
_SUBSTITUTED = re.compile(r"(?:\$\(|`)[^()`]*[)`]")
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv}
_SLURM = re.compile(r"^#SBATCH[ \t]+--?([a-zA-Z-]+)[= ][ \t]*(\d+)", re.MULTILINE | re.ASCII)
_SLURM_SETS = {**dict.fromkeys(("nodes", "N"), ("SLURM_NNODES", "SLURM_JOB_NUM_NODES")),
               **dict.fromkeys(("ntasks", "n"), ("SLURM_NTASKS", "SLURM_NPROCS")),
               "gpus-per-node": ("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"),
               "ntasks-per-node": ("SLURM_NTASKS_PER_NODE",)}
"""Options of a job -> the variables that Slurm sets by them."""
_OVERRIDE = re.compile(r"\+{0,2}([A-Za-z_]\w*(?:\.\w+)+)=(.*)", re.DOTALL | re.ASCII)
_SHELLS = ("bash", "sh", "zsh")
_BETWEEN = ("&&", "||", ";", "|", "&")
_READS = ("source", ".")
_COPIES = ("sed", "envsubst", "cat", "cp")
"""Programs that write a file as another with some words changed."""
_BEFORE = ("exec", "nohup", "time", "sudo", "then", "do", "else", "{", "(")
"""Words before a command that are not of it."""
_RUNS = re.compile(r"-[a-z]{0,4}c")
"""The option by which a shell runs what follows."""
COUNTED = ("NPROC_PER_NODE", "NNODES", "CUDA_VISIBLE_DEVICES")
"""Variables by which launchers count GPUs."""
STARTED = ("vllm", "sglang", "trtllm-serve", "torchrun", "python", "python3")
"""Programs that stand behind a launcher's switches: mpirun --oversubscribe trtllm-serve."""
HELD = "_"
"""The first word of flags that a variable or an array holds."""
MOST = 10**18
"""No figure of a launch script comes near, tokens of a run included; larger ones are not worked out."""
SCRIPTS = 30
"""That one script runs or reads at most."""
DEEPEST = 4
"""Sums of a script that stand in one another."""


@dataclass(slots=True)
class Words:
    """Words before flags, and flags with their values: true where a flag stands alone."""

    words: list[str] = field(default_factory=list)
    flags: dict[str, object] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    """Of `COUNTED`, what the script has set before it."""


Beside = Callable[[str], str | None]
"""The text of a script beside the one that is read, by the name that it is called; none where it is not there."""


def _nothing(name: str) -> None:
    return None


NOTHING: Beside = _nothing
"""Of text that has no files beside it."""


def commands(text: str, beside: Beside = NOTHING, file: str = "") -> list[Words]:
    """Return what each line of a script runs, and what its arrays of flags hold; of a script beside it its lines."""
    return ran(text, beside, file)[0]


def ran(text: str, beside: Beside, file: str) -> tuple[list[Words], Mapping[str, str]]:
    """Return the same, and the files that the script writes, by their last name."""
    shell = _Shell(beside)
    return shell.run(text, {"PWD": ".", "BASH_SOURCE": file.rpartition("/")[2]}), shell.written


@dataclass(slots=True)
class _Shell:
    """What a script and those that it runs have in common."""

    beside: Beside
    copies: dict[str, str] = field(default_factory=dict)
    """Files that the script writes of others beside it -> those."""
    written: dict[str, str] = field(default_factory=dict)
    """Files that the script writes itself, by their last name."""
    inside: list[str] = field(default_factory=list)
    """Scripts that are being read, which may run one another."""
    inlined: int = 0

    def run(self, text: str, known: dict[str, str]) -> list[Words]:
        known |= {name: value for option, value in _SLURM.findall(text) for name in _SLURM_SETS.get(option, ())}
        lines: list[Words] = []
        apart = heredocs(text)
        for statement in _statements("\n".join(apart.lines)):
            for name, value in _SETS.findall(statement):
                known.setdefault(name, _expanded(value, known))
            line, assigned = statement, _ASSIGNED.fullmatch(statement)
            if assigned is not None and (_HERE.fullmatch(assigned.group(3)) or not _prefixes_a_command(
                    assigned.group(3))):
                name, more, value = assigned.groups()
                for script in _ELEMENT.findall(value) if value.startswith("(") else ():
                    lines += self._inlined(script, dict(known))
                value = "." if _HERE.fullmatch(value) else _expanded(_unwrapped(value.strip()), known)
                known[name] = f"{known.get(name, '')} {value}".strip() if more else value
                line = f"{HELD} {value}" if value.startswith("-") else ""
            if line:
                lines += self._line(_words(_expanded(line, known)), known)
            for name in [name for name in apart.written if "$" not in (file := _expanded(name, known))]:
                self.written[file.rpartition("/")[2]] = _expanded(apart.written.pop(name), known)
        return lines

    def _line(self, words: list[str], known: dict[str, str]) -> list[Words]:
        """Return what a line runs, one command behind the other."""
        if _inner(words) is not None:
            return self._one(words, known)
        parts: list[list[str]] = [[]]
        for word in words:
            if word not in _BETWEEN:
                parts[-1].append(word.removesuffix(";"))
            if word in _BETWEEN or word.endswith(";"):
                parts.append([])
        return [found for part in parts if part for found in self._one(part, known)]

    def _one(self, words: list[str], known: dict[str, str]) -> list[Words]:
        while words and words[0] in _BEFORE:
            words = words[1:]
        if words[:1] == ["export"]:
            known |= {pair[1]: pair[2] for word in words[1:] if (pair := _EXPORTED.fullmatch(word)) is not None}
            return []
        if words and words[0] in _COPIES and ">" in words[2:-1]:
            self.copies[words[words.index(">") + 1]] = words[words.index(">") - 1]
            return []
        if words and words[0] in _READS and len(words) > 1:
            return self._inlined(words[1], known)
        if (inner := _inner(words)) is not None:
            return self.run(inner, dict(known))
        run = [script for shell, script in pairwise(words)
               if shell.rsplit("/", 1)[-1] in _SHELLS and script.endswith(".sh")]
        lines = [line for script in run for line in self._inlined(script, dict(known))]
        return lines or [_command([self.copies.get(word, word) for word in words], known)]

    def _inlined(self, script: str, known: dict[str, str]) -> list[Words]:
        """Return what a script beside this one runs, with the variables that it is given."""
        name = script.rpartition("/")[2]
        text = None if name in self.inside or self.inlined >= SCRIPTS else (
            self.written.get(name) or self.beside(script))
        if text is None:
            return []
        self.inlined += 1
        self.inside.append(name)
        known["BASH_SOURCE"], before = name, known.get("BASH_SOURCE", "")
        lines = self.run(text, known)
        known["BASH_SOURCE"] = before
        self.inside.pop()
        return lines


def _inner(words: list[str]) -> str | None:
    """Return the script that a line hands to a shell: srun bash -c "torchrun ...", eval "$CMD"."""
    for at, word in enumerate(words[:-1]):
        if word.rsplit("/", 1)[-1] in _SHELLS and at + 2 < len(words) and _RUNS.fullmatch(words[at + 1]):
            return words[at + 2]
        if word == "eval" and at == 0:
            return " ".join(words[1:])
    return None


def _unwrapped(value: str) -> str:
    """Return an array's elements, or text without the quotes around all of it."""
    if value.startswith("("):
        return value[1:].removesuffix(")").strip()
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] in "\"'" and value[0] not in value[1:-1] else value


def _without_comment(line: str) -> str:
    """Return a line up to the sign of a comment that stands outside quotes."""
    quote = ""
    for at, sign in enumerate(line):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign == "#" and (at == 0 or line[at - 1] in " \t"):
            return line[:at]
    return line


def _prefixes_a_command(value: str) -> bool:
    """Say whether an assignment stands before a command that it is for: `A=1 python run.py`."""
    try:
        return not value.startswith(("(", "$((")) and not _SUBSTITUTED.fullmatch(value) and len(shlex.split(value)) > 1
    except ValueError:
        return False


def _statements(text: str) -> Iterator[str]:
    """Yield lines with continued ones joined, arrays over several lines whole, comments gone."""
    waiting = ""
    for line in text.splitlines():
        bare = _without_comment(line).strip()
        goes_on = bare.endswith("\\")
        waiting = f"{waiting} {bare.removesuffix(chr(92)).strip()}".strip()
        if goes_on or waiting.count("(") > waiting.count(")") or waiting.count('"') % 2:
            continue
        if waiting:
            yield waiting
        waiting = ""
    if waiting:
        yield waiting


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """Return text with the variables that are known, or have a default, put in, and products worked out."""

    def value(match: re.Match[str]) -> str:
        name = match.group(1) or match.group(3)
        return known.get(name, match.group(2) if match.group(2) is not None else match.group(0))

    text = _TRIMMED.sub(lambda m: known[m[1]].removesuffix(m[2]) if m[1] in known else m[0], _WHOLE.sub(r"\1", text))
    for _ in range(3):  # a default may name another variable
        text = _VARIABLE.sub(value, text)
    for _ in range(DEEPEST):  # the inner ones first: $(( $((A * B)) / C )), $(( (A + B) * C ))
        text, before = _ARITHMETIC.sub(lambda m: _worked_out(_bare(m.group(1), known)) or m.group(0), text), text
        if text == before:
            break
    return _EXPR.sub(lambda m: _worked_out(m.group(1).replace("\\*", "*")) or m.group(0), text)


def _bare(text: str, known: Mapping[str, str]) -> str:
    return re.sub(r"\$?([A-Za-z_]\w*)", lambda m: known.get(m.group(1), m.group(0)), text)


def _worked_out(text: str) -> str | None:
    try:
        return str(_number(ast.parse(text.strip(), mode="eval").body))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _number(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) <= MOST:
        return node.value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        number = _OPERATORS[type(node.op)](_number(node.left), _number(node.right))
        if abs(number) <= MOST:
            return number
    raise ValueError("not a sum of whole numbers")


def _words(line: str) -> list[str]:
    try:
        words = shlex.split(line)
    except ValueError:
        return line.split()
    # an element of an array may hold a flag with its value; of an array that is set elsewhere nothing is known
    return [part for word in words for part in (word.split() if word.startswith("--") else [word])
            if not _UNSET.fullmatch(part)]


def _command(words: list[str], known: Mapping[str, str]) -> Words:
    """Return words and flags; `--flag=value`, `--flag value`, `-tp 2`, Hydra's `a.b=value`; of several values the list.
    """
    command, key = Words(environment={name: known[name] for name in COUNTED if name in known}), None
    for word in words:
        if (override := _OVERRIDE.fullmatch(word)) is not None:
            command.flags[override[1].replace("_", "-")] = override[2]
            continue
        if len(word) > 1 and word.startswith("-") and not word[1:].replace(".", "", 1).isdigit():
            name, equals, value = word.lstrip("-").partition("=")
            key = name.replace("_", "-")
            command.flags[key] = value if equals else True
            key = None if equals else key
        elif key is not None and not (word in STARTED and command.flags[key] is True):
            held = command.flags[key]
            command.flags[key] = word if held is True else [*(held if isinstance(held, list) else [held]), word]
        else:
            key = None
            command.words.append(word)
    return command
