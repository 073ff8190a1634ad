"""Start in half the time: import this before anything that imports lsprotocol, and call `finish` when all is built.

attrs compiles the methods of lsprotocol's 550 message classes as they are defined: four fifths of this start.
Half of that goes into `__repr__`, `__eq__` and slots, which nothing here needs; positions and ranges bring their own
equality, which stays. Nothing that is made while starting is garbage, so none is looked for. Where lsprotocol is there
already, as in a test, only that is left.
"""

import functools
import gc

import attrs

gc.disable()
_define = attrs.define
attrs.define = functools.partial(_define, repr=False, eq=False, slots=False)
try:
    import lsprotocol.types  # noqa: F401
finally:
    attrs.define = _define


def finish() -> None:
    """Collect garbage from now on, but never again go through what is here already."""
    gc.freeze()
    gc.enable()
