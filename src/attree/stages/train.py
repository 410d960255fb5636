"""Train a parser: choose trees, run the encoder, tune settings, fit the parser."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from safetensors.numpy import save_file

from attree.base.errors import AttreeError
from attree.base.files import check_folder
from attree.base.languages import code_in, code_of, language_of_most
from attree.base.progress import Progress, silent
from attree.base.schemas import SENTENCES_SCHEMA, read_table
from attree.base.terminal import say
from attree.encoder.load import Encoder, load_encoder
from attree.encoder.source import DTYPES, ResolvedEncoder, find_encoder, verify, with_adapter
from attree.evaluation.side_by_side import Evaluation, Gold
from attree.parsers.find import Overrides, find_parser
from attree.parsers.parser import Parser
from attree.ready import DEFAULT, default_encoder, folder_of_start
from attree.rivals.self_training import fit_in_rounds
from attree.training.adapting import train_adapter
from attree.training.card import card, scored
from attree.training.choice import Chosen, choose_trees
from attree.training.fit import Learned, choose, grid, plan_like
from attree.training.options import Choice, Fitting
from attree.training.parser import TrainedModel, TrainedParser, load_parser, save_parser
from attree.training.parts import PARTS
from attree.training.recipes import (
    ABOUT,
    FILES,
    RECIPES,
    WEIGHTS,
    WITH_LABELS,
    WITHOUT_LABELS,
    FewShotRecipe,
    TrainingPlan,
    continued,
)
from attree.trees.sampling import fingerprints

Layers = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """The arguments of ``attree train``.

    Attributes:
        sentences: table that trees are chosen from.
        also: further tables.
        structure: further tables, whose labels and tags are not learned.
        encoder: what ``find_encoder`` finds; the encoder of the ready parsers if None.
        recipe: recipe of the parser.
        choice: which trees are chosen.
        fitting: settings of the training.
        layers: hidden states read; the middle of the encoder if None.
        tune_layers: layers to choose among on the tuning trees; every layer by default.
        tune_dropouts: dropout rates to choose among with them; the recipe's rate by default.
        evaluated: tables that may not share a sentence with the trees, unless ``allow_overlap``.
        device: ``cpu`` or ``cuda``.
        half_precision: whether weights are stored in 16 bits in place of 32.
        source: where the sentences are from, for the model card.
        language: name or code of the trees' language; by default found by table name or words.
        rate_given: keep the learning rate: the user set it.
    """

    sentences: Path
    encoder: str | Path | None
    recipe: FewShotRecipe
    choice: Choice
    fitting: Fitting = field(default_factory=Fitting)
    also: Sequence[Path] = ()
    structure: Sequence[Path] = ()
    layers: Layers | None = None
    tune_layers: tuple[Layers, ...] = ()
    tune_dropouts: tuple[float, ...] = ()
    evaluated: Sequence[Path] = ()
    allow_overlap: bool = False
    device: str | None = None
    half_precision: bool = False
    source: str = ""
    language: str | None = None
    rate_given: bool = False


def check_output(folder: Path, *, overwrite: bool) -> None:
    """Refuse, before training, a folder that holds a parser or other files."""
    written = {ABOUT, WEIGHTS}
    check_folder(folder, FILES, written, ABOUT, what="a trained parser", overwrite=overwrite)


def train_parser(
    request: TrainingRequest, output: Path, *, progress: Progress = silent
) -> TrainedParser:
    """Train a parser and write its folder; ``progress`` shows the progress."""
    if request.language:
        request = replace(request, language=code_of(request.language))
    chosen = choose_trees(
        request.sentences,
        request.choice,
        request.evaluated,
        also=request.also,
        structure=request.structure,
        allow_overlap=request.allow_overlap,
        raw=request.recipe.rounds > 0,
    )
    request = _choose_start(request, chosen)
    _check_start(request)
    described = _encoder_of(request)
    encoder = load_encoder(described, device=request.device)
    start = request.fitting.start
    request, first = _load_start(request, len(chosen.trees.gold), str(encoder.device))
    learned = None
    if request.recipe.rank:
        encoder, learned = _adapt(encoder, described, request, chosen, progress)
    plan, tried = _plan(request, encoder, chosen, first)
    parser = fit_in_rounds(
        encoder,
        chosen.trees,
        plan,
        chosen.raw,
        held_out=chosen.held_out,
        first=first,
        folder=output.parent,
        learned=learned,
        progress=progress,
    )
    language = request.language or _language(request, chosen)
    parser.about |= {"tuning": tried, "table": chosen.provenance, "language": language}
    parser.about["start"] = start
    # with these the parser finds its encoder on any machine
    parser.encoder |= {key: getattr(described, key) for key in ("kind", "id", "dtype", "revision")}
    parser.about["scores"] = list(_scores(TrainedModel(parser, encoder), request, chosen))
    save_parser(parser, output, card=card(parser, request.source), half=request.half_precision)
    return parser


def _choose_start(request: TrainingRequest, chosen: Chosen) -> TrainingRequest:
    """Choose the start if none is named: the default parser, if its weights fit the request."""
    fitting, start = request.fitting, "encoder"
    tables = _tables_to_score(request, chosen)
    to_score = [words for _, table in tables for words in table["words"].to_pylist()]
    if fitting.start is not None:
        warn_of_overlap(fitting.start, to_score)
        return request
    fits = request.recipe.parts in [RECIPES[name].parts for name in (WITH_LABELS, WITHOUT_LABELS)]
    asked = request.encoder or request.layers or fitting.size or fitting.specials
    if fits and not asked and chosen.tuning is None:
        start = default_start(to_score)
    return replace(request, fitting=replace(fitting, start=start))


def _tables_to_score(request: TrainingRequest, chosen: Chosen) -> list[tuple[str, pa.Table]]:
    """Return the names and tables of the sentences that the new parser is scored on."""
    held_out = [] if chosen.apart is None else [("held out", chosen.apart)]
    evaluated = (read_table(path, schema=SENTENCES_SCHEMA)[0] for path in request.evaluated)
    return [*held_out, *(("to be evaluated on", table) for table in evaluated)]


def default_start(scored: Sequence[Sequence[str]]) -> str:
    """Return the default start of training: the default parser.

    Args:
        scored: sentences that the new parser is scored on. If the default parser was trained on
            one of them, training starts from the encoder, and a message on stderr says so.
    """
    if message := _describe_overlap(DEFAULT, scored):
        say(f"attree: {message}: training starts from the encoder")
        return "encoder"
    return DEFAULT


def warn_of_overlap(start: str, scored: Sequence[Sequence[str]]) -> None:
    """Say on stderr how many of the scored sentences the starting parser was trained on."""
    if message := _describe_overlap(start, scored):
        say(f"attree: {message}: their F1 is too high")


def _describe_overlap(start: str, scored: Sequence[Sequence[str]]) -> str:
    folder = folder_of_start(start) if scored else None
    seen = load_parser(folder).trained_on if folder else np.empty(0)
    shared = int(np.isin(fingerprints(scored), seen).sum())
    message = f"{start} was trained on {shared:,} of the {len(scored):,} sentences to be scored"
    return message if shared else ""


def _check_start(request: TrainingRequest) -> None:
    """Refuse a parser to start from if the encoder is to be adapted."""
    start = request.fitting.start
    if request.recipe.rank and folder_of_start(start):
        problem = f"a parser that adapts its encoder starts from the encoder, not from {start}"
        fix = "leave --start out, or take --parser tree-crf-joint"
        raise AttreeError("adapts-and-starts", problem, fix=fix)


def _encoder_of(request: TrainingRequest) -> ResolvedEncoder:
    """Find the encoder: of the parser to start from, else the one named, else the default one."""
    start = folder_of_start(request.fitting.start)
    if start is None:
        return find_encoder(request.encoder or default_encoder())
    named = None if request.encoder is None else str(request.encoder)
    return find_parser(str(start), Overrides(encoder=named, dtype=DTYPES[0])).encoder


def _adapt(
    encoder: Encoder,
    described: ResolvedEncoder,
    request: TrainingRequest,
    chosen: Chosen,
    progress: Progress,
) -> tuple[Encoder, Learned]:
    """Adapt the encoder to the trees, and load it with its low-rank weights."""
    plan = _base_plan(request, encoder, chosen)
    weights, learned = train_adapter(
        encoder, verify(described), chosen.trees, plan, progress=progress
    )
    with tempfile.TemporaryDirectory(prefix="attree-") as folder:
        path = Path(folder) / WEIGHTS
        save_file(weights, path)
        return load_encoder(with_adapter(described, path), device=request.device), learned


def _language(request: TrainingRequest, chosen: Chosen) -> str:
    """Return the code of the trees' language, told from the treebank's name or from the words."""
    named = "" if request.also else code_in(chosen.provenance["language"] or "")
    return named or language_of_most(chosen.trees.words)


def _scores(
    model: TrainedModel, request: TrainingRequest, chosen: Chosen
) -> Iterator[dict[str, Any]]:
    """Yield the parser's scores on the held-out trees, then on those to be evaluated on."""
    for name, table in _tables_to_score(request, chosen):
        gold = Gold.of_table(table, chosen.provenance.get("punctuation") or "keep")
        yield from Evaluation(gold, [Parser(model).parse_gold(gold, name)]).figures()


def _load_start(
    request: TrainingRequest, n_trees: int, device: str
) -> tuple[TrainingRequest, TrainedParser | None]:
    """Load the parser that ``start`` names, if any, and change the request to go on from it."""
    folder = folder_of_start(request.fitting.start)
    if folder is None:
        return request, None
    fitting = replace(request.fitting, start="encoder")
    recipe = continued(request.recipe, n_trees, rate_given=request.rate_given)
    request = replace(request, fitting=fitting, recipe=recipe)
    return request, load_parser(folder, device=device)


def _plan(
    request: TrainingRequest, encoder: Encoder, chosen: Chosen, first: TrainedParser | None
) -> tuple[TrainingPlan, list[dict[str, Any]]]:
    """Return the plan, chosen on the tuning trees if there are any, and what was tried there."""
    recipe, plan = request.recipe, _base_plan(request, encoder, chosen)
    if first is not None and request.layers is None:
        plan = plan_like(plan, first)
    if chosen.tuning is None:
        return plan, []
    if not any(PARTS[name].reads_layers for name in recipe.parts):
        problem = "a parser of head weights has no layer to tune"
        raise AttreeError("no-layer", problem, fix="leave --tune-on out")
    wanted = request.tune_layers or tuple((number,) for number in range(encoder.n_layers + 1))
    plans = grid(plan, layers=wanted, dropouts=request.tune_dropouts)
    return choose(encoder, chosen.trees, chosen.tuning, plans, first=first)


def _base_plan(request: TrainingRequest, encoder: Encoder, chosen: Chosen) -> TrainingPlan:
    """Return the plan before any tuning."""
    layers = request.layers or around_middle(encoder.n_layers, request.recipe.spread)
    settings = {"seed": request.choice.seed, "shares": chosen.shares, **asdict(request.fitting)}
    return TrainingPlan(request.recipe, layers, **settings)


def around_middle(n_layers: int, spread: int) -> Layers:
    """Return the middle layer and ``spread`` layers on each side of it."""
    middle = n_layers // 2
    return tuple(range(max(middle - spread, 0), min(middle + spread, n_layers) + 1))


def parse_layers(text: str) -> Layers:
    """Read ``3`` or ``2+3+4``; a configuration may have commas.

    Raises:
        AttreeError: not numbers.
    """
    try:
        return tuple(int(part) for part in re.split("[+,]", text))
    except ValueError:
        problem = f"{text!r} is not a list of layers"
        raise AttreeError("bad-layers", problem, fix="write 3, or 2+3+4") from None


def summary(parser: TrainedParser, output: Path) -> Iterator[str]:
    """Yield lines on the training, its F1 on trees set apart, and the next command."""
    facts = parser.about
    yield (
        f"{output}: {facts['trees']} trees, {facts['steps']} steps, {facts['seconds']:.1f} s, "
        f"loss {facts['loss']['first']:.2f} to {facts['loss']['last']:.2f}"
    )
    if facts["first"] is not None:
        yield f"first weights: of {facts['start']}; --start encoder takes those of the encoder"
    for scores in facts["scores"]:
        yield f"F1 {scored(scores)}"
    if facts["dev_f1"] is not None:
        right = facts["dev_right_branching"]
        yield f"right branching {right:.1f} on the held-out trees, which training was stopped by"
    yield f'next: attree try "A sentence." --parser {shlex.quote(str(output))}'
