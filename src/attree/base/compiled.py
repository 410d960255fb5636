"""Compile loops with Numba; every kernel is cached and releases the interpreter lock.

Numba caches compiled code as pickles, and opening a pickle runs code. So they lie in a folder that
only the user can write: ``NUMBA_CACHE_DIR``, else beside the source, else ``~/.cache/attree``. The
cache is keyed by the text of the kernel's *own file*: so a kernel calls only kernels of its file,
or a change elsewhere would be missed.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from attree.base.files import is_private, made_private, private_cache

_Function = TypeVar("_Function", bound=Callable[..., Any])


def kernel(function: _Function) -> _Function:
    """Compile ``function`` at its first call, by IEEE rules: a division by zero is infinite."""
    return _compile(function, fastmath=False)


def finite_kernel(function: _Function) -> _Function:
    """Compile ``function``, which never meets NaN, so that maxima are vectorised.

    Sums are not reordered, so the results equal those of :func:`kernel`.
    """
    return _compile(function, fastmath={"nnan", "nsz"})


def inlined(function: _Function) -> _Function:
    """Inline ``function`` into each kernel of its file that calls it, under that kernel's rules."""
    part: Any = numba.njit(inline="always")(function)
    return part


def _compile(function: _Function, **options: Any) -> _Function:
    options |= {"nogil": True, "error_model": "numpy"}
    beside = keeps_beside(Path(function.__code__.co_filename).parent)
    folder = None if beside else cache_folder()
    if folder is None and not beside:
        return numba.njit(**options)(function)
    config: Any = numba.config
    before = config.CACHE_DIR
    # Numba reads it when a kernel is declared; empty means beside the source
    config.CACHE_DIR = "" if folder is None else str(folder)
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # the folder cannot be written after all
        return numba.njit(**options)(function)
    finally:
        config.CACHE_DIR = before


@functools.cache
def keeps_beside(package: Path) -> bool:
    """Tell whether compiled code lies in its package's folder, where nobody else can write."""
    try:
        folders = [package, *([cache] if (cache := package / "__pycache__").exists() else [])]
        private = all(is_private(folder) and os.access(folder, os.W_OK) for folder in folders)
    except OSError:
        return False
    return private and not os.environ.get("NUMBA_CACHE_DIR")


@functools.cache
def cache_folder() -> Path | None:
    """Return the first folder for compiled code that nobody but the user can write.

    ``NUMBA_CACHE_DIR`` comes first, then ``attree`` in the user's cache folder, made with mode
    0700. Without such a folder it is ``None``, and every process compiles anew.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    with contextlib.suppress(OSError, RuntimeError):  # it cannot be made
        if chosen:
            return made_private(Path(chosen))
    with contextlib.suppress(OSError, RuntimeError):  # nor this one, or there is no home
        return private_cache("compiled")
    return None
