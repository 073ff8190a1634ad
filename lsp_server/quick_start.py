"""Makes the server start in half the time.

Import this module before anything that imports lsprotocol, and call `finish` when the server is built. attrs compiles
the methods of lsprotocol's 550 message classes when they are defined, which takes four fifths of the start. Half of
that goes into `__repr__`, `__eq__` and slots, which nothing here needs; positions and ranges define their own equality
and keep it. The start creates no garbage, so garbage collection waits until its end. Where lsprotocol is already
imported, as in a test, only the garbage collection changes.
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
    """Collect garbage from now on, but never visit the objects that exist already."""
    gc.freeze()
    gc.enable()
