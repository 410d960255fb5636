"""One training session: trees chosen, the encoder run, settings tuned, the parser trained."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from attree.encoder.load import Encoder, load_encoder
from attree.encoder.source import find_encoder
from attree.errors import AttreeError
from attree.fewshot.card import card
from attree.fewshot.fit import choose, grid
from attree.fewshot.gold import GoldTrees, read_trees
from attree.fewshot.parser import ABOUT, FILES, WEIGHTS, TrainedParser, load_parser, save_parser
from attree.fewshot.recipes import FewShotRecipe, TrainingPlan
from attree.fewshot.scorer import PARTS
from attree.fewshot.self_training import fit_in_rounds
from attree.sampling import by_id, draw_trees, fingerprints, refuse_overlap
from attree.schemas import HALF, HALF_KNOWN, SENTENCES, read_table

Layers = tuple[int, ...]
#: Shows how far work is: :func:`attree.progress.progress`.
Progress = Callable[..., AbstractContextManager[Callable[[int], None]]]


@dataclass(frozen=True, slots=True)
class Choice:
    """What is asked for.

    Attributes:
        trees: a number, or ``all``.
        ids: sentence numbers, comma-separated, in place of a draw.
        seed: of the draws.
        factor: how trees are binarised.
        held_out, tuning: how many further trees for early stopping and for choosing settings.
    """

    trees: str
    ids: str | None
    seed: int
    factor: str = "right"
    held_out: int = 0
    tuning: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that no draw can be made by."""
        given = {"seed": self.seed, "held-out": self.held_out, "tune-on": self.tuning}
        for name, number in given.items():
            if number < 0:
                raise AttreeError(f"--{name} is {number}", fix="give 0 or more")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The trees, and where they came from; ``raw``, if asked for: the words of other sentences.

    Those are of the same tables, without the sentences that are to be evaluated on.
    """

    trees: GoldTrees
    held_out: GoldTrees | None
    tuning: GoldTrees | None
    provenance: dict[str, Any]
    raw: Sequence[Sequence[str]] = ()


def choose_trees(
    path: Path,
    choice: Choice,
    evaluated: Sequence[Path],
    *,
    also: Sequence[Path] = (),
    allow_overlap: bool = False,
    raw: bool = False,
) -> Chosen:
    """Draw training trees, then tuning trees, then held-out trees, none of them twice.

    Half-known trees are for training only. Those of tables in ``also`` follow those of ``path``,
    and numbers count on. With ``raw`` the words of the other sentences are kept.

    Raises:
        AttreeError: fewer than asked, crossing brackets, or training trees that are among those of
            a table in ``evaluated``.
    """
    table, metadata = _joined(path, also)
    rows = _training_rows(table, choice)
    half = _half_known(table)
    # the trees that settings are tuned on come from the far end of the same order: they stay the
    # same whatever the number of training trees
    tuning = (
        draw_trees(table, choice.tuning, seed=choice.seed + 1, apart_from={*rows, *half})
        if choice.tuning
        else []
    )
    apart = {*rows, *tuning, *half}
    held = (
        draw_trees(table, choice.held_out, seed=choice.seed + 2, apart_from=apart)
        if choice.held_out
        else []
    )
    parts = [read_trees(table, part, factor=choice.factor) for part in (rows, held, tuning)]
    everything = fingerprints(words for part in parts for words in part.words)
    seen: set[tuple[str, ...]] = set()
    shared = 0
    for other in evaluated:
        sentences, _ = read_table(other, schema=SENTENCES)
        words = sentences.column("words").to_pylist()
        shared += refuse_overlap(everything, words, allow=allow_overlap)
        seen.update(map(tuple, words) if raw else ())
    provenance = {
        "language": metadata.get("language"),
        "split": metadata.get("split"),
        "punctuation": metadata.get("punctuation"),
        "overlap": shared,
    }
    chosen = (parts[0], parts[1] if held else None, parts[2] if tuning else None)
    others = _others(table, {*apart, *held}) if raw else []
    return Chosen(*chosen, provenance, [words for words in others if tuple(words) not in seen])


def _others(table: pa.Table, taken: set[int]) -> list[list[str]]:
    """Return the words of the sentences in all rows but those that are taken."""
    left = ~np.isin(np.arange(len(table)), list(taken))
    words: list[list[str]] = table["words"].filter(pa.array(left)).to_pylist()
    return words


def _joined(path: Path, also: Sequence[Path]) -> tuple[pa.Table, dict[str, Any]]:
    """Return the sentences of several tables, and the metadata of the first."""
    table, metadata = read_table(path, schema=HALF_KNOWN)
    if not also:
        return table, metadata
    tables = [table, *(read_table(one, schema=HALF_KNOWN)[0] for one in also)]
    for place, one in enumerate(tables):
        if HALF.name not in one.schema.names:
            tables[place] = one.append_column(HALF, pa.array([False] * len(one)))
    joined = pa.concat_tables(tables)
    numbers = pa.array(range(len(joined)), pa.int32())
    return joined.set_column(0, SENTENCES.field("sentence"), numbers), metadata


def _half_known(table: pa.Table) -> list[int]:
    """Return the rows of half-known trees, which nothing can be chosen by."""
    if HALF.name not in table.schema.names:
        return []
    rows: list[int] = np.flatnonzero(table[HALF.name].to_numpy()).tolist()
    return rows


def _training_rows(table: pa.Table, choice: Choice) -> list[int]:
    if choice.ids is not None:
        return by_id(table, _numbers(choice.ids, "sentence numbers"))
    if choice.trees == "all":
        return draw_trees(table, None, seed=choice.seed)
    (wanted,) = _numbers(choice.trees, "number of trees")
    return draw_trees(table, wanted, seed=choice.seed)


def _numbers(text: str, what: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise AttreeError(f"{text!r} is not a {what}", fix="write it in digits") from None


@dataclass(frozen=True, slots=True)
class Request:
    """What ``attree train`` is asked for.

    Attributes:
        sentences: table that trees are chosen from.
        also: further ones.
        encoder: what ``find_encoder`` finds.
        recipe: the parser.
        choice: which trees.
        layers: hidden states read; the middle of the encoder if None.
        training: further settings of a :class:`~attree.fewshot.recipes.TrainingPlan`.
        tune_layers: what is chosen among, where there are trees to tune on; each by default.
        tune_dropouts: dropout rates chosen among with them; the recipe's own by default.
        evaluated: tables that no tree may be in, unless ``allow_overlap``.
        device: ``cpu`` or ``cuda``.
        source: where the sentences are from, for people.
    """

    sentences: Path
    encoder: Path
    recipe: FewShotRecipe
    choice: Choice
    also: Sequence[Path] = ()
    layers: Layers | None = None
    training: dict[str, Any] = field(default_factory=dict)
    tune_layers: tuple[Layers, ...] = ()
    tune_dropouts: tuple[float, ...] = ()
    evaluated: Sequence[Path] = ()
    allow_overlap: bool = False
    device: str | None = None
    source: str = ""


def check_output(folder: Path, *, overwrite: bool) -> None:
    """Refuse a folder that holds a parser or anything of others, before anything is trained.

    What an unfinished training left there is replaced.

    Raises:
        AttreeError: a parser is there and ``overwrite`` is false, or other files are, or no folder
            can be made there.
    """
    above = next(one for one in (folder, *folder.parents) if one.exists() or one.is_symlink())
    if not above.is_dir():
        raise AttreeError(
            "a folder is needed here, and this is none", file=above, fix="choose another --output"
        )
    there = {one.name for one in folder.iterdir()} if above == folder else set()
    ours = set(FILES) if there & {ABOUT, WEIGHTS} else set()
    foreign = sorted(
        name for name in there - ours if not (name[0] == "." and name.endswith(".part"))
    )
    if foreign:
        raise AttreeError(
            f"this folder holds other files ({foreign[0]})",
            file=folder,
            fix="choose another --output",
        )
    if ABOUT in there and not overwrite:
        raise AttreeError(
            "a trained parser is here already",
            file=folder,
            fix="choose another --output, or add --overwrite to replace it",
        )


def train_parser(
    request: Request, output: Path, *, progress: Progress | None = None
) -> TrainedParser:
    """Train a parser and write its folder; ``progress`` shows how far it is."""
    chosen = choose_trees(
        request.sentences,
        request.choice,
        request.evaluated,
        also=request.also,
        allow_overlap=request.allow_overlap,
        raw=request.recipe.rounds > 0,
    )
    described = find_encoder(request.encoder)
    encoder = load_encoder(described, device=request.device)
    request, first = _first(request, str(encoder.device))
    plan, tried = _plan(request, encoder, chosen, first)
    scratch = output.with_name(f".{output.name}.features")
    try:
        steps = plan.steps * (1 + plan.recipe.rounds)
        with progress("training", total=steps, unit="steps") if progress else _silent() as on:
            parser = fit_in_rounds(
                encoder,
                chosen.trees,
                plan,
                chosen.raw,
                held_out=chosen.held_out,
                first=first,
                folder=scratch,
                advance=on,
            )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    parser.about |= {"tuning": tried, "table": chosen.provenance}
    # with these the parser finds its encoder again wherever it is
    parser.encoder |= {key: getattr(described, key) for key in ("kind", "id", "dtype", "revision")}
    save_parser(parser, output, card=card(parser, request.source))
    return parser


def _first(request: Request, device: str) -> tuple[Request, TrainedParser | None]:
    """Read the parser whose weights are the first ones, where ``start`` is its folder."""
    folder = Path(request.training.get("start", ""))
    if not (folder / ABOUT).is_file():
        return request, None
    training = request.training | {"start": "encoder"}
    return replace(request, training=training), load_parser(folder, device=device)


@contextmanager
def _silent() -> Iterator[None]:
    yield None


def _plan(
    request: Request, encoder: Encoder, chosen: Chosen, first: TrainedParser | None
) -> tuple[TrainingPlan, list[dict[str, Any]]]:
    """Settle the plan, on the tuning trees if there are any; and what was tried there."""
    recipe = request.recipe
    layers = request.layers or around_middle(encoder.n_layers, recipe.spread)
    plan = TrainingPlan(recipe, layers, seed=request.choice.seed, **request.training)
    if chosen.tuning is None:
        return plan, []
    if not any(PARTS[name].reads_layers for name in recipe.parts):
        raise AttreeError("head weights have no layer to tune", fix="leave --tune-on out")
    wanted = request.tune_layers or tuple((number,) for number in range(encoder.n_layers + 1))
    plans = grid(plan, layers=wanted, dropouts=request.tune_dropouts)
    return choose(encoder, chosen.trees, chosen.tuning, plans, first=first)


def around_middle(n_layers: int, spread: int) -> Layers:
    """Return the middle layer and ``spread`` layers on each side of it."""
    middle = n_layers // 2
    return tuple(range(max(middle - spread, 0), min(middle + spread, n_layers) + 1))


def parse_layers(text: str) -> Layers:
    """Read ``3`` or ``2,3,4``.

    Raises:
        AttreeError: not numbers.
    """
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise AttreeError(f"{text!r} is not a list of layers", fix="write 3, or 2,3,4") from None


def summary(parser: TrainedParser, output: Path) -> Iterator[str]:
    """Yield what was trained, its F1 on trees set apart if there are any, and what comes next."""
    about = parser.about
    yield (
        f"{output}: {about['trees']} trees, {about['steps']} steps, {about['seconds']:.1f} s, "
        f"loss {about['loss']['first']:.2f} to {about['loss']['last']:.2f}"
    )
    if about["dev_f1"] is not None:
        right = about["dev_right_branching"]
        yield (
            f"F1 {about['dev_f1']:.1f} on {about['dev_trees']} held-out trees "
            f"(right branching {right:.1f}; unlabelled corpus F1)"
        )
    yield f'next: attree try "A sentence." --parser {shlex.quote(str(output))}'
