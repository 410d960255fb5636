"""Record what made a result: a hash of the code, found by its imports, and versions.

Code is an input. The code of a stage is the *closure* of the stage's entry: the modules that it
imports, those that they import, and so on. Rules, shards, corpora and records of experiments carry
a hash of it, so that a result is made again when the code changes.
"""

import ast
import functools
import hashlib
import importlib.metadata
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import resolve_name
from pathlib import Path
from typing import Any

import attree
from attree.base.process import without_collecting

_ROOT = Path(attree.__file__).parent
_PREFIX = f"{attree.__name__}."

#: Reads treebank files that people give in place of tables. What makes results is given tables, so
#: neither it nor the readers that it imports are hashed.
NEUTRAL = "attree.treebank.as_table"


def digest(value: Any) -> str:
    """Return a short hash of any JSON-able ``value``; equal values give equal hashes."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def closure(*entries: str, not_run: Collection[str] = ()) -> tuple[str, ...]:
    """Return the modules that decide what the entries do, sorted.

    These are imports at the top of a module and inside its functions, the packages around a
    module, and the modules that a registry names: ``DECODERS = {"greedy":
    "attree.decoding.decoders:greedy"}``; but not imports for type checkers, nor the
    :data:`NEUTRAL` module.

    Args:
        entries: ``attree.association.ranking``, or ``attree.cli.decode:decode_command``: of that
            module only the statements outside definitions, that function or class, and those that
            it uses. So two commands in one file each have their own closure.
        not_run: packages or modules that these entries never run, although a module that they
            share with others imports them.

    Raises:
        ModuleNotFoundError: an entry does not exist, so that a moved entry is noticed.
    """
    return tuple(sorted({name.partition(":")[0] for name in _hash_reached(entries, not_run)}))


@functools.cache
@without_collecting()
def code_hash(*entries: str, not_run: tuple[str, ...] = ()) -> str:
    """Hash the syntax trees, docstrings left out, of a closure (see :func:`closure`).

    A changed comment or docstring changes nothing; a changed statement does.
    """
    return digest(sorted(_hash_reached(entries, not_run).items()))


def versions(*packages: str) -> dict[str, str]:
    """Return the installed versions of attree and of ``packages``."""
    ours = {"attree": attree.__version__}
    return ours | {package: importlib.metadata.version(package) for package in packages}


def provenance(*, code: Sequence[str], settings: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Build the metadata that every output carries: code version and hash, settings, and ``more``.

    Args:
        code: the entries of the code that made the output, as for :func:`code_hash`.
        settings: of the run; hashed under ``configuration``.
        more: further entries (encoder revision, seed, protocol, counts).
    """
    made = {"attree": attree.__version__, "code": code_hash(*code)}
    return made | {"configuration": digest(settings), "settings": dict(settings), **more}


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(slots=True)
class _Part:
    """One statement at the top of a module, such as a function.

    Attributes:
        defines: the name of a function or class, else ``""``.
        syntax: a hash of its syntax tree without docstrings.
        imports: modules of attree that it imports, or names in them, with dots.
        names: every other name that it mentions, among them definitions of its module.
    """

    defines: str
    syntax: str
    imports: set[str]
    names: set[str]


def _hash_reached(entries: Iterable[str], not_run: Collection[str]) -> dict[str, str]:
    """Return entry or module → hash of its syntax, for everything in a closure."""
    hashes: dict[str, str] = {}
    waiting: set[str] = set()

    def add(name: str, parts: Iterable[_Part]) -> None:
        parts = list(parts)
        file = _file(name.partition(":")[0])
        table = file and file.with_suffix(".yaml")  # of the module, such as one of labels
        read = [table.read_text(encoding="utf-8")] if table and table.is_file() else []
        hashes[name] = digest([part.syntax for part in parts] + read)
        waiting.update(*(part.imports for part in parts))

    for entry in entries:
        module, _, name = entry.partition(":")
        if _file(module) is None or (name and name not in {p.defines for p in _parts(module)}):
            raise ModuleNotFoundError(f"no {entry.replace(':', '.')}")
        waiting.add(module.rpartition(".")[0] if name else module)
        if name:
            add(entry, _slice(_parts(module), name))
    excluded = tuple(f"{package}." for package in (NEUTRAL, *not_run))
    while waiting:
        for module in _packages_of(waiting.pop()):
            if module not in hashes and not f"{module}.".startswith(excluded):
                add(module, _parts(module))
    return hashes


def _slice(parts: Sequence[_Part], name: str) -> list[_Part]:
    """Return the statements outside definitions, definition ``name``, and those that they use."""
    kept, names = {"", name}, {name}
    while names:
        used = {name for part in parts if part.defines in kept for name in part.names}
        names = used & {part.defines for part in parts} - kept
        kept |= names
    return [part for part in parts if part.defines in kept]


@functools.cache
def _packages_of(name: str) -> list[str]:
    """Return the packages around a module and the module itself, without a name in it.

    The whole package is none of them: it imports each public name when it is asked for.
    """
    steps = name.split(".")
    names = (".".join(steps[:end]) for end in range(2, len(steps) + 1))
    return [module for module in names if _file(module) is not None]


@functools.cache
def _file(module: str) -> Path | None:
    """Return a module's file, or None where there is no such module of attree."""
    first, *rest = module.split(".")
    path = _ROOT.joinpath(*rest)
    files = (path / "__init__.py", path.with_suffix(".py"))
    return next((file for file in files if first == attree.__name__ and file.is_file()), None)


@functools.cache
def _parts(module: str) -> list[_Part]:
    file = _file(module)
    assert file is not None
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    tree = ast.parse(file.read_text(encoding="utf-8"), file)
    _drop_docstring(tree.body)
    return [_part(statement, package) for statement in tree.body]


def _part(statement: ast.stmt, package: str) -> _Part:
    """Read a statement in one pass: the workflow reads most modules when it starts."""
    syntax: list[str] = []  # every node, then its fields; of a list its length, then its items
    imports: set[str] = set()
    names: set[str] = set()
    registers = isinstance(statement, ast.Assign | ast.AnnAssign)
    todo: list[Any] = [statement]
    while todo:
        node = todo.pop()
        if not isinstance(node, ast.AST):
            is_list = isinstance(node, list)
            syntax.append(str(len(node)) if is_list else repr(node))
            todo += node if is_list else ()
            continue
        if isinstance(node, ast.expr_context):  # loaded or stored: the position tells
            continue
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, _DEFINITIONS):
            _drop_docstring(node.body)
        elif isinstance(node, ast.Import):
            imports.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            imports.update(f"{origin}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
        elif isinstance(node, ast.Dict) and registers:
            values = (value.value for value in node.values if isinstance(value, ast.Constant))
            imports.update(value.partition(":")[0] for value in values if isinstance(value, str))
        syntax.append(type(node).__name__)
        todo += [getattr(node, field, None) for field in node._fields]
    ours = {name for name in imports if name.startswith(_PREFIX)}
    hashed = hashlib.sha256(" ".join(syntax).encode("utf-8", "backslashreplace")).hexdigest()
    return _Part(statement.name if isinstance(statement, _DEFINITIONS) else "", hashed, ours, names)


def _drop_docstring(body: list[ast.stmt]) -> None:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *_]:
            del body[0]
