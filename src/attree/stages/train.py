"""Train a parser on chosen trees: run the encoder, fit, write its folder."""

import shlex
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from safetensors.numpy import save_file

from attree.base.errors import AttreeError
from attree.base.files import check_folder
from attree.base.languages import code_of, language_of_most
from attree.base.provenance import code_hash, digest
from attree.base.runs import working_folder
from attree.base.terminal import Progress, silent
from attree.encoder.device import choose_device
from attree.encoder.load import load_encoder
from attree.encoder.source import DTYPES, ResolvedEncoder, find_encoder, verify, with_adapter
from attree.evaluation.side_by_side import Evaluation, Gold
from attree.parsers.find import Overrides, find_parser
from attree.parsers.parser import Parser
from attree.ready import default_encoder
from attree.training import recipes
from attree.training.adapting import train_adapter
from attree.training.card import card, scored
from attree.training.choice import Chosen
from attree.training.options import Fitting, Layers
from attree.training.parser import TrainedModel, TrainedParser, save_parser
from attree.training.self_training import fit_in_rounds
from attree.training.start import Start


@dataclass(frozen=True, slots=True)
class TrainingRequest:
    """How a parser is trained.

    Attributes:
        recipe: recipe of the parser.
        encoder: what ``find_encoder`` finds; the encoder of the ready parsers if None.
        fitting: settings of the training.
        seed: of the training.
        layers: hidden states read; the middle of the encoder by default.
        device: ``cpu`` or ``cuda``.
        half_precision: whether weights are stored in 16 bits in place of 32.
        source: where the sentences are from, for the model card.
        language: name or code of the trees' language; by default found by table name or words.
        given: names of the recipe's settings that were asked for; those of ``fitting`` tell it.
    """

    recipe: recipes.FewShotRecipe
    encoder: str | Path | None = None
    fitting: Fitting = field(default_factory=Fitting)
    seed: int = 0
    layers: Layers = ()
    device: str | None = None
    half_precision: bool = False
    source: str = ""
    language: str | None = None
    given: Iterable[str] = ()


def check_output(folder: Path, *, overwrite: bool) -> None:
    """Refuse, before training, a folder that holds a parser or other files."""
    written, what = {recipes.ABOUT, recipes.WEIGHTS}, "a trained parser"
    check_folder(folder, recipes.FILES, written, recipes.ABOUT, what=what, overwrite=overwrite)


def train_parser(
    request: TrainingRequest, chosen: Chosen, output: Path, *, progress: Progress = silent
) -> TrainedParser:
    """Train a parser and write its folder; ``progress`` shows the progress.

    A training that adapts its encoder takes hours without a GPU: one that was killed is continued.
    """
    language = code_of(request.language) if request.language else chosen.language
    start = start_of(request, chosen)
    with _working_folder(request, chosen, start, output) as folder:
        model = train(request, chosen, start, folder=folder, progress=progress)
        parser = model.trained
        language = language or language_of_most(chosen.trees.words)
        parser.about |= {"table": chosen.provenance, "language": language, "start": start.name}
        parser.about["scores"] = list(_scores(model, chosen))
        save_parser(parser, output, card=card(parser, request.source), half=request.half_precision)
    return parser


def _working_folder(
    request: TrainingRequest, chosen: Chosen, start: Start, output: Path
) -> AbstractContextManager[Path]:
    """Return the folder for ``train``; for an encoder that is adapted, one that outlives a kill."""
    if not request.recipe.rank:
        return nullcontext(output.parent)
    trees = [(x.brackets.tolist(), x.labels, x.tags, x.heads, x.known) for x in chosen.trees.gold]
    identity = {
        "request": repr(request),
        "encoder": [_encoder_of(request, start).fingerprint, choose_device(request.device).type],
        "trees": digest([chosen.trees.words, trees, chosen.shares]),
        "code": code_hash("attree.stages.train:train"),
    }
    return working_folder(output, identity, restart=True)


def start_of(request: TrainingRequest, chosen: Chosen) -> Start:
    """Return the start that is asked for; by default the default parser if its weights fit."""
    fitting = request.fitting
    names = (recipes.WITH_LABELS, recipes.WITHOUT_LABELS)
    fits = request.recipe.parts in [recipes.RECIPES[name].parts for name in names]
    asked = request.encoder or request.layers or fitting.size or fitting.specials
    if fitting.start is None and (asked or not fits):
        return Start()
    words = (words for _, table in chosen.scored for words in table["words"].to_pylist())
    return Start.chosen(fitting.start, list(words))


def train(
    request: TrainingRequest,
    chosen: Chosen,
    start: Start,
    *,
    folder: Path | None = None,
    progress: Progress = silent,
) -> TrainedModel:
    """Train a parser; return it with its encoder.

    Args:
        request: how it is trained.
        chosen: the trees.
        start: first weights, see :func:`start_of`.
        folder: for features that do not fit in memory, and the state of a training that adapts its
            encoder, which goes on from it.
        progress: shows how far each stage is.

    Raises:
        AttreeError: see :func:`attree.training.fit.fit`; the encoder is to be
            adapted, and training starts from a parser.
    """
    recipe, trees, learned = request.recipe, chosen.trees, None
    if recipe.rank and start.parser:
        problem = f"a parser that adapts its encoder starts from the encoder, not from {start.name}"
        fix = "leave --start out, or take --parser tree-crf-joint"
        raise AttreeError("adapts-and-starts", problem, fix=fix)
    described = _encoder_of(request, start)
    encoder = load_encoder(described, device=request.device, trained=bool(recipe.rank))
    settings = asdict(request.fitting) | {"seed": request.seed, "shares": chosen.shares}
    settings = {name: value for name, value in settings.items() if value is not None}
    plan = recipes.TrainingPlan(recipe, request.layers, **settings)
    plan = start.plan(plan, encoder, trees, given={*request.given, *settings})
    if recipe.rank:
        state = folder and folder / "adapting" / "checkpoint.pt"
        weights, learned = train_adapter(
            encoder, verify(described), trees, plan, resume=state, progress=progress
        )
        with TemporaryDirectory(prefix="attree-") as temporary:
            save_file(weights, path := Path(temporary) / recipes.WEIGHTS)
            encoder = load_encoder(with_adapter(described, path), device=request.device)
    parser = fit_in_rounds(
        encoder,
        trees,
        plan,
        chosen.raw,
        held_out=chosen.held_out,
        first=start.parser,
        folder=folder,
        learned=learned,
        progress=progress,
    )
    # with these the parser finds its encoder on any machine
    parser.encoder |= {key: getattr(described, key) for key in ("kind", "id", "dtype", "revision")}
    return TrainedModel(parser, encoder)


def _encoder_of(request: TrainingRequest, start: Start) -> ResolvedEncoder:
    """Find the encoder: of the parser to start from, else the one named, else the default one."""
    if start.parser is None:
        return find_encoder(request.encoder or default_encoder())
    named = None if request.encoder is None else str(request.encoder)
    return find_parser(start.name, Overrides(encoder=named, dtype=DTYPES[0])).encoder


def _scores(model: TrainedModel, chosen: Chosen) -> Iterator[dict[str, Any]]:
    """Yield the parser's scores on the held-out trees, then on those to be evaluated on."""
    for name, table in chosen.scored:
        gold = Gold.of_table(table, chosen.provenance.get("punctuation") or "keep")
        yield from Evaluation(gold, [Parser(model).parse_gold(gold, name)]).figures()


def summary(parser: TrainedParser, output: Path) -> Iterator[str]:
    """Yield lines on the training, its F1 on trees set apart, and the next command."""
    facts = parser.about
    yield (
        f"{output}: {facts['trees']} trees, {facts['steps']} steps, {facts['seconds']:.1f} s, "
        f"loss {facts['loss']['first']:.2f} to {facts['loss']['last']:.2f}"
    )
    if facts["first"] is not None:
        yield f"first weights: of {facts['start']}; --start encoder takes those of the encoder"
    if (new := facts["plan"]["to_learn"]) is not None:
        yield f"of what these trees taught, {new:.0%} was new to {facts['start']} and is kept"
    for scores in facts["scores"]:
        yield f"F1 {scored(scores)}"
    if facts["dev_f1"] is not None:
        right = facts["dev_right_branching"]
        yield f"right branching {right:.1f} on the held-out trees, which training was stopped by"
    yield f'next: attree try "A sentence." --parser {shlex.quote(str(output))}'
