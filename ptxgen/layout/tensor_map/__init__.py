"""Tensor maps (CUtensorMap): the rules, the 128 bytes, and a table to read them by.

    ArrayMeta + TensorMapParam --from_array--> TensorMapSpec --check--> --encode--> 128 bytes

Everything is in NumPy order (outermost axis first) with strides in bytes. The reversal to the
driver's order (innermost first) happens in this package and nowhere else. On a GPU the launcher
uses the driver's own encoder; ours serves the emulator, tests and printing: the same bytes.
"""

from ptxgen.layout.tensor_map.arrays import array_violations, from_array
from ptxgen.layout.tensor_map.bits import decode, encode
from ptxgen.layout.tensor_map.compare import Comparison, Disagreement, compare_with_driver
from ptxgen.layout.tensor_map.rules import RULES, broken_rules, check, violations
from ptxgen.layout.tensor_map.spec import (
    MAP_TYPES,
    MapType,
    TensorMapSpec,
    box_bytes,
    find_map_type,
    map_type,
)

__all__ = [
    "MAP_TYPES",
    "RULES",
    "Comparison",
    "Disagreement",
    "MapType",
    "TensorMapSpec",
    "array_violations",
    "box_bytes",
    "broken_rules",
    "check",
    "compare_with_driver",
    "decode",
    "encode",
    "find_map_type",
    "from_array",
    "map_type",
    "violations",
]
