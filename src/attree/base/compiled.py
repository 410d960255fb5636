"""Compile loops with Numba; every kernel is cached and releases the interpreter lock.

A kernel is compiled at its first call, and Numba is imported no earlier. A command that parses a
few sentences runs small loops uncompiled (:func:`interpreting_small`): that takes milliseconds,
where importing Numba and reading compiled code takes half a second.

Numba caches compiled code as pickles, and opening a pickle runs code. So they lie in a folder that
only the user can write: ``NUMBA_CACHE_DIR``, else beside the source, else ``~/.cache/attree``. The
cache is keyed by the text of the kernel's *own file*: so a kernel calls only kernels of its file,
or a change elsewhere would be missed.
"""

import contextlib
import functools
import os
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from attree.base.files import is_private, made_private, private_cache

_Function = TypeVar("_Function", bound=Callable[..., Any])


#: Most elements of an array with which a loop runs uncompiled: the chart of 50 words.
_FEW = 51 * 51
#: Options of every kernel.
_RULES: dict[str, Any] = {"nogil": True, "error_model": "numpy"}

_small_interpreted = False
#: Held while Numba's setting of the cache folder is changed.
_declaring = threading.RLock()


@contextlib.contextmanager
def interpreting_small(asked: bool) -> Iterator[None]:
    """Run kernels on small arrays uncompiled in the block, if asked: for a few sentences.

    The results are the same but for the last bits of exponentials.
    """
    global _small_interpreted
    before, _small_interpreted = _small_interpreted, asked
    try:
        yield
    finally:
        _small_interpreted = before


class _Kernel:
    """A function that Numba compiles when it is first called.

    Args:
        function: the loop; it may call other kernels of its file.
        cached: whether the compiled code is kept for the next process.
        options: of ``numba.njit``.
    """

    def __init__(self, function: Callable[..., Any], *, cached: bool, **options: Any) -> None:
        self.function, self._cached, self._options = function, cached, options
        functools.update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        if _small_interpreted and all(getattr(x, "size", 0) <= _FEW for x in arguments):
            with np.errstate(all="ignore"):  # compiled code does not warn
                return self.function(*arguments)
        return self.compiled(*arguments)

    @functools.cached_property
    def compiled(self) -> Any:
        """The function as Numba sees it, with the kernels that it calls."""
        function = self.function
        names = {name: function.__globals__.get(name) for name in function.__code__.co_names}
        called = {name: x.compiled for name, x in names.items() if isinstance(x, _Kernel)}
        body = types.FunctionType(
            function.__code__,
            function.__globals__ | called,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        functools.update_wrapper(body, function)
        with _declaring:
            return _declare(body, self._cached, self._options)


def kernel(function: _Function) -> _Function:
    """Compile ``function`` at its first call, by IEEE rules: a division by zero is infinite."""
    return _lazy(function, fastmath=False, **_RULES)


def finite_kernel(function: _Function) -> _Function:
    """Compile ``function``, which never meets NaN, so that maxima are vectorised.

    Sums are not reordered, so the results equal those of :func:`kernel`.
    """
    return _lazy(function, fastmath={"nnan", "nsz"}, **_RULES)


def inlined(function: _Function) -> _Function:
    """Inline ``function`` into each kernel of its file that calls it, under that kernel's rules."""
    return _lazy(function, cached=False, inline="always")


def _lazy(function: _Function, *, cached: bool = True, **options: Any) -> _Function:
    lazy: Any = _Kernel(function, cached=cached, **options)
    return lazy


def _declare(function: Callable[..., Any], cached: bool, options: Mapping[str, Any]) -> Any:
    import numba

    folder = cache_folder(Path(function.__code__.co_filename).parent)
    if not cached or folder is None:
        return numba.njit(**options)(function)
    config: Any = numba.config
    before, config.CACHE_DIR = config.CACHE_DIR, folder  # read when a kernel is declared
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # the folder cannot be written after all
        return numba.njit(**options)(function)
    finally:
        config.CACHE_DIR = before


@functools.cache
def cache_folder(package: Path) -> str | None:
    """Return the first folder for compiled code that nobody but the user can write.

    ``NUMBA_CACHE_DIR`` comes first, then the package's own folder, which is returned as ``""``,
    then ``attree`` in the user's cache folder, made with mode 0700. Without such a folder it is
    ``None``, and every process compiles anew.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    with contextlib.suppress(OSError, RuntimeError):  # it cannot be made, or there is no package
        if chosen:
            return str(made_private(Path(chosen)))
        folders = [package, *([cache] if (cache := package / "__pycache__").exists() else [])]
        if all(is_private(folder) and os.access(folder, os.W_OK) for folder in folders):
            return ""
    with contextlib.suppress(OSError, RuntimeError):  # nor this one, or there is no home
        return str(private_cache("compiled"))
    return None
