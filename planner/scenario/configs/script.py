"""Python scripts as far as configs need: what stands for values is read, and nothing is run."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

_STATES = re.compile(r"(Config|Arguments|Args|Trainer|Provider|LoRA|model_registry|LLM|Params|Plugin|Strategy|"
                     r"Pipeline|Accelerator|from_pretrained|"
                     r"get_peft_model|_recipe|pipe|pipeline)\Z")
"""What a callee's name ends with whose keywords are settings."""
_ASIDE = re.compile(r"(?:Tokenizer|TokenizerFast|Processor|FeatureExtractor|GenerationConfig)\Z")
"""Classes that settings and names of models are not read of."""
RUNS = ("subprocess.run", "subprocess.Popen", "subprocess.check_call", "subprocess.call", "os.system")
"""What runs a line, whose words count as the script's own."""
_FILE = re.compile(r"[\w./-]{1,99}\.(?:json|ya?ml|toml)", re.ASCII)
"""A file that the script reads, which may hold its settings."""
_MODEL = "model_name_or_path"
_NAMES = {"from_pretrained": _MODEL, "LLM": _MODEL, "model_registry": "model.flavor"}
"""Of what is called -> the key of its first argument."""
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv, ast.Mod: operator.mod}
_MOST = 10**18
_OPEN = "$"
"""Begins what is worked out when the script runs, as a variable of a shell does."""


class _Open(Exception):
    """What an expression is, only running the script tells."""


@dataclass(slots=True)
class Script:
    """What a script states: keywords of its settings, defaults of its arguments, and the names that it calls."""

    keys: dict[str, object] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    """Modules that are imported, and all that is called."""
    known: dict[str, object] = field(default_factory=dict)
    """Variables, and attributes of arguments and classes."""


def script_of(text: str) -> Script | None:
    """Return what a script states; none where text is no Python that imports something."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found = Script()
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt | ast.expr)]
    for node in sorted(statements, key=lambda node: (node.lineno, node.col_offset)):
        _read(node, found)
    return found if any(isinstance(node, ast.Import | ast.ImportFrom) for node in tree.body) else None


def _read(node: ast.AST, found: Script) -> None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        found.words += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found.words += [name.name for name in node.names]
    elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Attribute) and (path := _dotted(target)):
                found.keys[path.partition(".")[2]] = _stated(node.value, found)
            elif isinstance(target, ast.Name):
                _assigned(target.id, node.value, found, field_=isinstance(node, ast.AnnAssign))
    elif isinstance(node, ast.Call):
        _called(node, found)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _FILE.fullmatch(node.value):
        found.words.append(node.value)


def _assigned(name: str, value: ast.expr, found: Script, *, field_: bool) -> None:
    """Take a variable; of a class with types it is an argument of the script."""
    if isinstance(value, ast.Call) and _dotted(value.func).endswith("field"):
        value = next((word.value for word in value.keywords if word.arg == "default"), value)
    try:
        found.known[name] = _value(value, found.known)
    except _Open:
        return
    if field_:
        found.keys.setdefault(name, found.known[name])


def _called(call: ast.Call, found: Script) -> None:
    callee = _dotted(call.func)
    name, owner = callee.rpartition(".")[2], callee.rpartition(".")[0]
    found.words.append(callee)
    if callee in RUNS and call.args:
        with suppress(_Open):
            said = _value(call.args[0], found.known)
            found.words += [part for word in (said if isinstance(said, list) else [said]) for part in str(word).split()]
        return
    if name == "add_argument":
        _argument(call, found)
        return
    if not _STATES.search(name) or _ASIDE.search(owner) or _ASIDE.search(name):
        return
    for word in call.keywords:
        stated = _stated(word.value, found)
        pairs = {word.arg: stated} if word.arg else stated if isinstance(stated, dict) else {}
        for key, value in pairs.items():
            if not str(value).startswith(_OPEN) or key not in found.keys:
                found.keys[str(key)] = value
    if call.args and name in _NAMES:
        found.keys.setdefault(_NAMES[name], _stated(call.args[0], found))


def _argument(call: ast.Call, found: Script) -> None:
    """Take the default of an argument of the command line."""
    flags = [flag.value for flag in call.args if isinstance(flag, ast.Constant) and isinstance(flag.value, str)]
    default = next((word.value for word in call.keywords if word.arg == "default"), None)
    name = next((flag for flag in flags if flag.startswith("--")), "").lstrip("-").replace("-", "_")
    if name and default is not None:
        found.known[name] = found.keys[name] = _stated(default, found)


def _dotted(node: ast.AST) -> str:
    """Return a name with dots; of what stands behind a call or an index the names behind it."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


def _stated(node: ast.expr, found: Script) -> object:
    """Return a value, or the expression where only running it tells."""
    try:
        return _value(node, found.known)
    except _Open:
        return f"{_OPEN}{ast.unparse(node)[:60]}"


def _value(node: ast.expr, known: Mapping[str, object]) -> object:
    """Return what an expression is. Raises _Open."""
    reads = next((reads for kinds, reads in _READS if isinstance(node, kinds)), None)
    if reads is None:
        raise _Open
    return reads(node, known)


def _constant(node: ast.Constant, known: Mapping[str, object]) -> object:
    if node.value is not None and not isinstance(node.value, str | int | float | bool):
        raise _Open
    return node.value


def _chosen(node: ast.BoolOp | ast.IfExp, known: Mapping[str, object]) -> object:
    if isinstance(node, ast.IfExp):
        return _value(node.body if _value(node.test, known) else node.orelse, known)
    if not isinstance(node.op, ast.Or):
        raise _Open
    return next((value for each in node.values if (value := _value(each, known))), None)


def _of_name(node: ast.Name | ast.Attribute, known: Mapping[str, object]) -> object:
    """Return a variable, an argument (args.steps), or what a module has by a name (torch.bfloat16)."""
    name = node.id if isinstance(node, ast.Name) else node.attr
    if name in known:
        if isinstance(value := known[name], str) and value.startswith(_OPEN):
            raise _Open
        return value
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("torch", "jnp"):
        return name
    raise _Open


def _pairs(node: ast.Dict, known: Mapping[str, object]) -> Iterator[tuple[object, object]]:
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            inner = _value(value, known)
            yield from inner.items() if isinstance(inner, dict) else ()
        else:
            yield _value(key, known), _value(value, known)


def _worked_out(node: ast.UnaryOp | ast.BinOp, known: Mapping[str, object]) -> object:
    if isinstance(node, ast.UnaryOp):
        value = _value(node.operand, known)
        if isinstance(node.op, ast.Not):
            return not value
        if isinstance(node.op, ast.USub) and isinstance(value, int | float):
            return -value
        raise _Open
    left, right = _value(node.left, known), _value(node.right, known)
    if isinstance(node.op, ast.Add) and isinstance(left, str) and isinstance(right, str):
        return left + right
    if not (isinstance(left, int | float) and isinstance(right, int | float)) or abs(right) > _MOST:
        raise _Open
    if isinstance(node.op, ast.Pow) and abs(left) <= 1024 and 0 <= right <= 9:
        return left ** right
    work = _OPERATORS.get(type(node.op))
    try:
        if work is not None and abs(result := work(left, right)) <= _MOST:
            return int(result) if isinstance(result, float) and result.is_integer() else result
    except (ZeroDivisionError, OverflowError):
        pass
    raise _Open


def _of_call(node: ast.Call, known: Mapping[str, object]) -> object:
    """Return what a call stands for: a number of text, an environment variable's default, a dictionary."""
    name = _dotted(node.func)
    if name.endswith("is_bf16_supported"):
        return True
    if name in ("int", "float", "str") and len(node.args) == 1:
        value = _value(node.args[0], known)
        try:
            return {"int": int, "float": float, "str": str}[name](value)
        except (TypeError, ValueError):
            raise _Open from None
    if name in ("os.environ.get", "os.getenv", "environ.get") and len(node.args) > 1:
        return _value(node.args[1], known)
    if name == "dict" and not node.args:
        return {word.arg: _value(word.value, known) for word in node.keywords if word.arg}
    raise _Open


_READS: tuple[tuple[tuple[type[ast.expr], ...], Callable[..., object]], ...] = (
    ((ast.Constant,), _constant), ((ast.Name, ast.Attribute), _of_name),
    ((ast.List, ast.Tuple), lambda node, known: [_value(each, known) for each in node.elts]),
    ((ast.Dict,), lambda node, known: dict(_pairs(node, known))),
    ((ast.JoinedStr,), lambda node, known: "".join(str(_value(
        part.value if isinstance(part, ast.FormattedValue) else part, known)) for part in node.values)),
    ((ast.UnaryOp, ast.BinOp), _worked_out), ((ast.BoolOp, ast.IfExp), _chosen), ((ast.Call,), _of_call))
"""Kinds of expressions, and what reads them."""
