"""Build a parser of SuPar, benepar or Stanza, or measure one, in a process of its own.

    python peer_parsers.py build|measure NAME CHECKPOINT FOLDER

:mod:`tests.benchmarks.peers` runs this file, in the peers' environment too: nothing of this project
may be imported before a function asks for it. FOLDER has sentences (``sentences.json``) and trees
of these, a line each (``trees.mrg``), whose labels the parsers get. A parser is built with random
weights over the checkpoint, and saved and loaded as its package does that.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

#: The first sentences, as words → their trees.
Parse = Callable[[list[list[str]]], Iterable[Any]]

WARM_UP = 50


def load_attree(folder: Path) -> Parse:
    """``universal``, with its own weights; labels and tags."""
    from attree import Parser

    parser = Parser.load("universal", device="cpu", dtype="float32", threads=1)
    return lambda sentences: parser.parse(sentences)


def build_supar(checkpoint: str, folder: Path) -> None:
    """Build the CRF parser, of the sizes that it has by default."""
    from supar import CRFConstituencyParser

    trees = str(folder / "trees.mrg")
    parser = CRFConstituencyParser.build(
        str(folder / "supar"), train=trees, encoder="bert", bert=checkpoint, build=True
    )
    parser.save(str(folder / "supar"))


def load_supar(folder: Path) -> Parse:
    """Its CRF parser on four layers, decoded by minimum Bayes risk as by default; no tags."""
    from supar import Parser

    parser = Parser.load(str(folder / "supar"))
    return lambda sentences: parser.predict(sentences, verbose=False).trees


def build_benepar(checkpoint: str, folder: Path) -> None:
    """Build the chart parser, with two layers of 1,024 and tags."""
    import nltk
    import torch
    from benepar.decode_chart import ChartDecoder
    from benepar.nkutil import HParams
    from benepar.parse_chart import ChartParser

    lines = (folder / "trees.mrg").read_text(encoding="utf-8").splitlines()
    trees = [nltk.Tree.fromstring(line) for line in lines]
    tags = {tag for tree in trees for _, tag in tree.pos()}
    sizes = HParams(
        **dict.fromkeys(("use_pretrained", "use_encoder", "predict_tags"), True),
        **dict.fromkeys(("morpho_emb_dropout", "residual_dropout", "attention_dropout"), 0.2),
        **{"pretrained_model": checkpoint, "use_chars_lstm": False, "relu_dropout": 0.1},
        **{"d_model": 1024, "num_layers": 2, "num_heads": 8, "d_kv": 64, "d_ff": 2048},
        **{"d_label_hidden": 256, "d_tag_hidden": 256, "tag_loss_scale": 5.0},
        **{"encoder_max_len": 512, "force_root_constituent": True},
    )
    numbers = {tag: number for number, tag in enumerate(["UNK", *sorted(tags)])}
    parser = ChartParser(numbers, ChartDecoder.build_vocab(trees), None, sizes)
    saved = {"config": parser.config, "state_dict": parser.state_dict()}
    torch.save(saved, folder / "benepar")


def load_benepar(folder: Path) -> Parse:
    """Its component of spaCy, its faster way; two layers of its own above the encoder; tags."""
    from benepar import BeneparComponent
    from spacy.tokens import Doc
    from spacy.vocab import Vocab

    component, vocabulary = BeneparComponent(str(folder / "benepar")), Vocab()

    def parse(sentences: list[list[str]]) -> Iterable[Any]:
        words = [word for sentence in sentences for word in sentence]
        starts: list[Any] = [
            not number for sentence in sentences for number in range(len(sentence))
        ]
        return component(Doc(vocabulary, words=words, sent_starts=starts)).sents

    return parse


def build_stanza(checkpoint: str, folder: Path) -> None:
    """Build the in-order parser, of the sizes that it has by default, with random word vectors."""
    import torch
    from stanza.models import constituency_parser
    from stanza.models.common.foundation_cache import FoundationCache
    from stanza.models.common.pretrain import Pretrain, PretrainedWordVocab
    from stanza.models.constituency import parser_training, tree_reader

    trees = tree_reader.read_treebank(str(folder / "trees.mrg"))
    vectors = Pretrain(str(folder / "vectors"))
    words = sorted({word for tree in trees for word in tree.leaf_labels()})
    vectors._vocab = PretrainedWordVocab(words, lang="en")
    vectors._emb = torch.randn(len(vectors._vocab), 100)
    vectors.save(vectors.filename)
    options = f"--no_multistage --wordvec_pretrain_file {vectors.filename} --save_dir {folder}"
    asked = [*options.split(), "--bert_model", checkpoint, "--lang", "en", "--shorthand", "en_x"]
    arguments = constituency_parser.parse_args(asked)
    trainer, *_ = parser_training.build_trainer(
        arguments, trees, trees[:1], [], FoundationCache(), None
    )
    trainer.save(str(folder / "stanza"), save_optimizer=False)


def load_stanza(folder: Path) -> Parse:
    """Its shift-reduce parser without its tagger, led by gold trees once a step is scored.

    By random scores it would go on up to its limit. Sorted by length, as in its pipeline.
    """
    from stanza.models.constituency import tree_reader
    from stanza.models.constituency.trainer import Trainer

    model = Trainer.load(str(folder / "stanza"), args={"device": "cpu"}).model.eval()
    lines = (folder / "trees.mrg").read_text(encoding="utf-8").splitlines()

    def parse(sentences: list[list[str]]) -> Iterable[Any]:
        gold = tree_reader.read_trees("\n".join(lines[: len(sentences)]))
        gold.sort(key=len, reverse=True)
        start = model.build_batch_from_trees_with_gold_sequence
        return model.parse_sentences_no_grad(iter(gold), start, 50, model.predict_gold)

    return parse


BUILD = {"supar": build_supar, "benepar": build_benepar, "stanza": build_stanza}
LOAD: dict[str, Callable[[Path], Parse]] = {
    "attree": load_attree,
    "supar": load_supar,
    "benepar": load_benepar,
    "stanza": load_stanza,
}


def measure(name: str, folder: Path) -> dict[str, float]:
    """Return sentences a second, seconds from cold to the first tree, and the peak memory in MB."""
    sentences = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    parse = LOAD[name](folder)
    list(parse(sentences[:1]))
    first = time.process_time()
    list(parse(sentences[:WARM_UP]))
    began = time.process_time()
    trees = list(parse(sentences))
    seconds = time.process_time() - began
    if len(trees) != len(sentences):
        raise RuntimeError(f"{len(trees)} trees of {len(sentences)} sentences")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    memory = peak / (1024 if sys.platform == "linux" else 1024**2)
    return {"rate": len(sentences) / seconds, "first": first, "memory": memory}


def main() -> None:
    """Build or measure a parser; print what was measured as JSON."""
    what, name, checkpoint, folder = sys.argv[1:]
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # packages print
    if what == "build":
        BUILD[name](checkpoint, Path(folder))
    else:
        answer.write(json.dumps(measure(name, Path(folder))))
    answer.close()


if __name__ == "__main__":
    main()
