"""Compiled loops: one decorator, so that every kernel is cached and releases the interpreter lock.

Numba caches compiled code beside the module or, where that folder is not writable, in the user's
cache folder (``NUMBA_CACHE_DIR`` sets another). Its key is the text of the kernel's *own file*: a
kernel therefore calls only kernels of its own file, or a change elsewhere would go unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile ``function`` at its first call, by IEEE rules: a division by zero is infinite."""
    return _compile(function, fastmath=False)


def finite_kernel(function: _Function) -> _Function:
    """Compile ``function``, which never meets NaN: lets maxima be taken several at a time.

    Sums are not reordered, so results are those of :func:`kernel`.
    """
    return _compile(function, fastmath={"nnan", "nsz"})


def inlined(function: _Function) -> _Function:
    """Make ``function`` a part of each kernel of its file that calls it, under that one's rules."""
    part: Any = numba.njit(inline="always")(function)
    return part


def _compile(function: _Function, **options: Any) -> _Function:
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's nor the user's cache folder can be written
        return numba.njit(**options)(function)
