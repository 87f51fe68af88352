"""PTX as data: `parse` a module, look at its tree, `print_module` or `edit` it."""

from __future__ import annotations

from .ast import Function, Instruction, Module
from .parser import parse
from .printer import print_module
from .signature import Parameter, Signature, parameters, signature

__all__ = [
    "Function",
    "Instruction",
    "Module",
    "Parameter",
    "Signature",
    "parameters",
    "parse",
    "print_module",
    "signature",
]
