"""Integer expressions over named numbers: `${max(8, 4 * conc)}`. Nothing but + - * //, min and max."""

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping

from prony.base.errors import ConfigError

MAX_LENGTH = 200
MAX_VALUE = 2**63 - 1
OPERATORS = "integers, + - * //, min(…), max(…), parentheses"

_HOLE = re.compile(r"\$\{([^{}]*)\}")
_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_FUNCTIONS: dict[str, Callable[[list[int]], int]] = {"min": min, "max": max}


def evaluate(text: str, names: Mapping[str, int]) -> int:
    """Compute the inside of a `${…}`. Raises ConfigError with what is allowed."""
    return _Evaluator(text, names).value(_parse(text, names))


def evaluate_whole(text: str, names: Mapping[str, int]) -> int:
    """Compute a text that is one integer, written out ("12") or as one expression ("${4 * conc}")."""
    hole = _HOLE.fullmatch(text.strip())
    if hole:
        return evaluate(hole[1], names)
    if re.fullmatch(r"[+-]?[0-9]{1,19}", text.strip()):
        return int(text)
    raise ConfigError(f"{text!r} is not an integer", allowed="12, or ${…} with " + _allowed(names))


def substitute(text: str, names: Mapping[str, int]) -> str:
    """Replace every `${…}` in a text by its value. Raises ConfigError, also for one that is not closed."""
    _refuse_unclosed(text)
    return _HOLE.sub(lambda hole: str(evaluate(hole[1], names)), text)


def check(text: str, names: Collection[str]) -> None:
    """Raise ConfigError if a `${…}` in a text can't be an expression over these names; computes nothing."""
    _refuse_unclosed(text)
    for hole in _HOLE.finditer(text):
        _parse(hole[1], names)


def check_whole(text: str, names: Collection[str]) -> None:
    """Raise ConfigError if a text can't be one integer, written out or as an expression over these names."""
    hole = _HOLE.fullmatch(text.strip())
    if hole:
        _parse(hole[1], names)
    else:
        evaluate_whole(text, dict.fromkeys(names, 1))


def _refuse_unclosed(text: str) -> None:
    if "${" in _HOLE.sub("", text):
        raise ConfigError(f"{text!r} has a '${{' that is not closed or holds braces", fix="write ${expression}")


def _allowed(names: Collection[str]) -> str:
    return f"{OPERATORS}; names: {', '.join(sorted(names)) or 'none'}"


def _parse(text: str, names: Collection[str]) -> ast.expr:
    """Return the tree of an expression in which every part is allowed."""
    shown = f"${{{text}}}" if len(text) <= MAX_LENGTH else f"${{{text[:40]}…"
    if len(text) > MAX_LENGTH:
        raise ConfigError(f"{shown} is too long ({len(text)} characters)", allowed=f"at most {MAX_LENGTH} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ConfigError(f"{shown} is not an expression", allowed=_allowed(names)) from None
    fault = _first_fault(tree, names)
    if fault:
        raise ConfigError(f"{shown}: {fault}", allowed=_allowed(names))
    return tree


def _first_fault(node: ast.expr, names: Collection[str]) -> str | None:
    """Say what is not allowed in a tree, or None."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return None
        case ast.Name(id=name):
            return None if name in names else f"'{name}' is not known here"
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
            return _first_fault(operand, names)
        case ast.BinOp(left=left, op=op, right=right):
            if type(op) not in _BINARY:
                return f"the operator {type(op).__name__} is not allowed"
            return _first_fault(left, names) or _first_fault(right, names)
        case ast.Call(func=ast.Name(id="min" | "max"), args=[_, *_] as args, keywords=[]):
            return next((fault for arg in args if (fault := _first_fault(arg, names))), None)
    return f"'{ast.unparse(node)}' is not allowed"


class _Evaluator:
    """Computes a checked tree, with every step within bounds."""

    def __init__(self, text: str, names: Mapping[str, int]) -> None:
        self.text = text
        self.names = names

    def value(self, node: ast.expr) -> int:
        result = self.raw(node)
        if abs(result) > MAX_VALUE:
            raise ConfigError(f"${{{self.text}}}: the result is too large", allowed=f"at most {MAX_VALUE}")
        return result

    def raw(self, node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int() as number):
                return number
            case ast.Name(id=name):
                return self.names[name]
            case ast.UnaryOp(op=sign, operand=operand):
                return -self.value(operand) if isinstance(sign, ast.USub) else self.value(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return self.binary(op, self.value(left), self.value(right))
            case ast.Call(func=ast.Name(id=name), args=args):
                return _FUNCTIONS[name]([self.value(arg) for arg in args])
        raise AssertionError(f"unchecked node {node!r}")

    def binary(self, op: ast.operator, left: int, right: int) -> int:
        if isinstance(op, ast.FloorDiv) and right == 0:
            raise ConfigError(f"${{{self.text}}}: division by zero", fix="guard it: x // max(1, y)")
        return _BINARY[type(op)](left, right)
