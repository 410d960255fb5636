"""A small run made by the stages themselves, from attention matrices that no encoder has seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attree.association.columns import mean_column
from attree.association.shards import open_shard
from attree.base import tables as render
from attree.base.files import write_json
from attree.base.schemas import (
    ASSOCIATIONS_SCHEMA,
    HEADS_SCHEMA,
    PARSES_SCHEMA,
    SENTENCES_SCHEMA,
    read_table,
    write_table,
)
from attree.evaluation import DEFAULT_LABELS
from attree.evaluation.baselines import write_baselines
from attree.evaluation.summary import score_parses
from attree.reports.page.page import write_page
from attree.reports.page.run import AskedTable, ReportedRun
from attree.stages.from_others import write_imported
from attree.stages.from_shards import write_parses
from attree.treebank.as_table import Treebank
from attree.treebank.sentence import SplitSettings
from tests.scoring.reference import attention

EVIL = "<script>alert(1)</script>"
CHOSEN = [(0, 1), (1, 0)]
SCORING: Any = {"labels": list(DEFAULT_LABELS), "max_words": None}
PARSERS = {"upoa": ("outside", "greedy"), "upio": ("inside_outside", "chart")}
#: What another parser makes of English; one label is hostile, one long.
LABELLED = """\
(S (<b>NP (X The) (X <script>alert-LRB-1-RRB-</script>)) (VP (X sees) (NP (X a) (X '\"&amp;))))
(S (NP (X Rain)) (VP (X fell) (PP (X on) (NP (X the) (X old)) (X town))))
(S (PP (X The) (X cat)) (VP:of_a_very_long_name (X sat)))
(S (NP (X The) (X small) (X dog)) (VP (X ran) (X very) (X far)))
(NP (X Home))
"""
#: Its words are hostile in one, run from right to left in another.
TREEBANKS = {
    "english": [
        "(S (NP (DT The) (NN <script>alert-LRB-1-RRB-</script>))"
        " (VP (VB sees) (NP (DT a) (NN '\"&amp;))))",
        "(S (NP (NN Rain)) (VP (VB fell) (PP (IN on) (NP (DT the) (JJ old) (NN town)))))",
        "(S (NP (DT The) (NN cat)) (VP (VB sat)))",
        "(S (NP (DT The) (JJ small) (NN dog)) (VP (VB ran) (ADVP (RB very) (RB far))))",
        "(NP (NN Home))",
    ],
    "hebrew": [
        "(S (NP (D ה) (N ילדה)) (VP (V קראה) (NP (N ספר) (A מעניין))))",
        "(S (NP (N אבא)) (VP (V הלך) (PP (P ל) (NP (N עבודה)))))",
    ],
    "korean": [
        "(S (NP (N 동생은)) (VP (NP (N 아침마다)) (VP (ADVP (A 공원에서)) (V 운동한다))))",
        "(S (NP (N 어머니와) (N 할머니는))"
        " (VP (NP (N 시장에서)) (VP (NP (N 사과와) (N 배를)) (V 샀다))))",
    ],
}  # fmt: skip


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of two parsers on three treebanks; a fourth treebank was refused."""
    folder = tmp_path_factory.mktemp("run") / "results"
    for parser, (score, decoder) in PARSERS.items():
        _rank(folder, parser, {"association": "raw", "score": score, "decoder": decoder})
    for language, trees in TREEBANKS.items():
        sentences = _read(folder, language, trees)
        manifest = _attend(folder, language, sentences)
        baselines = folder / f"scores/baselines/{language}/test.json"
        write_baselines(sentences, baselines, **SCORING, seeds=2)
        for parser in PARSERS:
            _parse(folder, parser, language, manifest)
    _parse_by_trained(folder)
    _import(folder)
    _experiment(folder / "experiments/tables/few-shot")
    log = folder / "logs/treebanks/latin/test.log"
    log.parent.mkdir(parents=True)
    log.write_text(f"warning: x\nattree: error: latin.ptb:4: byte 0xFC {EVIL} — set encoding\n")
    rows = [("tiny", parser, language, "test") for language in TREEBANKS for parser in PARSERS]
    rows += [("tiny", "upio", "latin", "test")]
    rows += [("tiny", parser, "english", "test") for parser in ("tree-crf", "labelled")]
    recipes = {
        parser: {"association": "raw", "score": score, "decoder": decoder, "heads": "above:30"}
        for parser, (score, decoder) in PARSERS.items()
    }
    asked = {"across": AskedTable("Toy treebanks", None, rows)}
    problems = {"elvish": "treebanks/elvish/language.yaml: unknown key speling"}
    configuration = {"parsers": recipes, "encoders": {"tiny": {"path": f"models/{EVIL}"}}}
    ReportedRun(configuration, asked, [*TREEBANKS, "latin"], problems).write(
        folder / "report/run.json"
    )
    return folder


@pytest.fixture(scope="session")
def page(results: Path) -> Path:
    """The page about them."""
    write_page(results, results / "report/index.html")
    return results / "report/index.html"


def _experiment(prefix: Path) -> None:
    """Write a table of an experiment, and numbers of its heat maps beside it."""
    records = [
        {"label": label, "column": str(trees), "source": "computed", "trees": str(trees),
         "corpus_f1": 30.0 + trees + place, "corpus_f1_std": 1.25}
        for place, label in enumerate(("fpio", EVIL)) for trees in (5, 10, 20)
    ]  # fmt: skip
    shown = render.Table("Few trees: Corpus F1", ["trees", "5"], [["fpio", "35.00 ± 1.25"]])
    about = {"settings": {"title": "Few trees", "axis": "trees"}}
    render.save(prefix, records, [shown], about)
    places = [(y, x) for y in range(6) for x in range(6)]
    maps = [{"map": EVIL, "from": y, "to": x, "value": y / 10} for y, x in places]
    words = {"settings": {"words": ["Rain", "fell", "on", "the", "old", "town"]}}
    render.save(f"{prefix}.sentence", maps, [], words)
    weights = [{"map": "fpio, 5", "layer": y, "head": x, "value": 0.5} for y, x in places]
    render.save(f"{prefix}.weights", weights, [], {})


def _read(folder: Path, language: str, trees: list[str]) -> Path:
    file = folder.parent / f"{language}.mrg"
    file.write_text("".join(f"( {tree} )\n" for tree in trees), encoding="utf-8")
    path = folder / f"treebanks/{language}/test.parquet"
    found = Treebank.read([file], SplitSettings())
    about = {
        "language": language,
        "split": "test",
        "counts": {"read": len(trees), "skipped": 0, "failed": 0, "emptied": 0},
        "derived": "constituency",
        "punctuation": "keep",
    }
    write_table(path, found.table, schema=SENTENCES_SCHEMA, metadata=about)
    return path


def _attend(folder: Path, language: str, sentences: Path) -> Path:
    """Write the shards of a set: the mean of the chosen heads of every sentence."""
    manifest = folder / f"attention/tiny/selected/{language}/test.json"
    column, described = mean_column(CHOSEN)
    lengths = [len(words) for words in read_table(sentences)[0]["words"].to_pylist()]
    matrices = [attention(n, seed).astype(np.float32) for seed, n in enumerate(lengths)]
    with open_shard(
        manifest.parent / "test.shards/0.parquet", {column: described}, metadata={}
    ) as shard:
        flat = np.concatenate([matrix.ravel() for matrix in matrices])
        numbers, words = np.arange(len(lengths), dtype=np.int32), np.array(lengths, np.int32)
        shard.add(numbers, words, np.zeros_like(words), status="ok", values={column: flat})
    about: dict[str, Any] = {
        "columns": {column: {"units": described.units, "mean": True, "matrices": 1}},
        "shards": [{"file": "test.shards/0.parquet"}],
        "counts": {"sentences": len(lengths)},
        "too_long": "right_branching",
        "encoder": {"slug": "tiny", "fingerprint": "f1"},
        "language": language,
        "split": "test",
        "provenance": {},
    }
    write_json(manifest, about)
    return manifest


def _rank(folder: Path, parser: str, recipe: dict[str, str]) -> None:
    place = folder / f"heads/tiny/{parser}/english/dev"
    rows = [
        {"layer": layer, "head": head, "corpus_f1": 20.0 + 10 * layer + 5 * head,
         "corpus_f1_no_root": 9.0, "sentence_f1": 9.0, "selected": (layer, head) in CHOSEN}
        for layer in range(2) for head in range(3)
    ]  # fmt: skip
    made = pa.Table.from_pylist(rows, schema=HEADS_SCHEMA)
    write_table(place.with_suffix(".parquet"), made, schema=HEADS_SCHEMA, metadata={})
    chosen = {"encoder": "f1", "heads": CHOSEN, "language": "english", "split": "dev"}
    write_json(place.with_suffix(".json"), {**chosen, **recipe, "trees": None, "seed": 0})


def _parse(folder: Path, parser: str, language: str, manifest: Path) -> None:
    parses = folder / f"parses/tiny/{parser}/{language}/test.parquet"
    selection = folder / f"heads/tiny/{parser}/english/dev.json"
    none: dict[str, str | None] = dict.fromkeys(("association", "score", "decoder"))
    write_parses(manifest, selection, parses, recipe=none)
    _score(folder, parser, language)


def _parse_by_trained(folder: Path) -> None:
    """Write what a tree CRF leaves: the trees of UPIO, all inner spans as likely as one in four."""
    parses = folder / "parses/tiny/tree-crf/english/test.parquet"
    table, about = read_table(folder / "parses/tiny/upio/english/test.parquet")
    write_table(parses, table, schema=PARSES_SCHEMA, metadata=about)
    said = [
        {
            "sentence": row["sentence"],
            "marginals": [1.0, *[0.25] * (row["n_words"] - 2)] if row["n_words"] > 1 else [],
            "association": [1 - place % 2 * 0.5 for place in range(row["n_words"] ** 2)],
        }
        for row in table.to_pylist()
    ]
    path = folder / "attention/tiny/trained/tree-crf/english/test.parquet"
    found = pa.Table.from_pylist(said, schema=ASSOCIATIONS_SCHEMA)
    write_table(path, found, schema=ASSOCIATIONS_SCHEMA, metadata={})
    _score(folder, "tree-crf")


def _import(folder: Path) -> None:
    """Write the labelled trees of another parser as parses."""
    sentences, trees = folder / "treebanks/english/test.parquet", folder.parent / "labelled.mrg"
    trees.write_text(LABELLED, encoding="utf-8")
    parses = folder / "parses/tiny/labelled/english/test.parquet"
    write_imported([trees], sentences, parses, SplitSettings())
    _score(folder, "labelled")


def _score(folder: Path, parser: str, language: str = "english") -> None:
    place = f"tiny/{parser}/{language}/test"
    score_parses(
        folder / f"parses/{place}.parquet",
        folder / f"treebanks/{language}/test.parquet",
        output=folder / f"scores/{place}.parquet",
        summary=folder / f"scores/{place}.json",
        encoder="tiny",
        parser=parser,
        **SCORING,
    )
