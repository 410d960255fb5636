"""A WordPiece tokeniser of one's own, trained on text of all languages in balance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from attree.encoder.mlm.data import Corpus
from attree.encoder.mlm.examples import proportions
from attree.encoder.mlm.runs import whole_folder

_SPECIALS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def balanced_lines(
    corpora: Sequence[Corpus], sizes: Sequence[int], *, characters: int, exponent: float
) -> Iterator[str]:
    """Yield lines spread over each corpus, so that its text is ∝ ``size ** exponent``.

    Args:
        corpora: the languages.
        sizes: their characters.
        characters: about how many to yield in all, at most as many as there are. A small language
            may be repeated, so that it has its share.
        exponent: see :func:`attree.encoder.mlm.examples.proportions`.
    """
    total = min(characters, sum(sizes))
    shares = proportions(sizes, exponent)
    for corpus, size, share in zip(corpora, sizes, shares, strict=True):
        owed = 0.5
        for line in corpus.lines():
            owed += total * float(share) / size
            for _ in range(int(owed)):
                yield line
            owed %= 1


def train_tokeniser(
    lines: Callable[[], Iterator[str]], *, vocabulary: int, cased: bool
) -> Tokenizer:
    """Train BERT's kind of tokeniser; the same text gives the same one.

    Unlike BERT's own, the uncased one keeps accents: many languages tell words apart by them, and
    taking them off would take Korean syllables apart.

    Args:
        lines: gives the text, from its start each time.
        vocabulary: pieces, specials included; a quarter of it at most are characters.
        cased: keep upper case.
    """
    made = Tokenizer(models.WordPiece(unk_token=_SPECIALS["unk_token"]))
    made.normalizer = normalizers.BertNormalizer(lowercase=not cased, strip_accents=False)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = list(_SPECIALS.values())
    starting, continuing = _alphabet(map(made.normalizer.normalize_str, lines()), vocabulary // 4)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary,
        min_frequency=2,
        initial_alphabet=starting,
        limit_alphabet=len(starting),
        # Left to itself the trainer numbers these as it meets them, in another order each time,
        # and breaks ties between merges by number.
        special_tokens=[*specials, *(f"##{character}" for character in continuing)],
        show_progress=False,
    )
    made.train_from_iterator(lines(), trainer)
    pieces = sorted(set(made.get_vocab()) - set(specials))
    numbers = {piece: number for number, piece in enumerate([*specials, *pieces])}
    # Anew, since in the trained one the pieces of one character would be special.
    again = Tokenizer(models.WordPiece(numbers, unk_token=_SPECIALS["unk_token"]))
    again.normalizer, again.pre_tokenizer = made.normalizer, made.pre_tokenizer
    first, last = _SPECIALS["cls_token"], _SPECIALS["sep_token"]
    again.post_processor = processors.BertProcessing((last, numbers[last]), (first, numbers[first]))
    return again


def _alphabet(lines: Iterator[str], limit: int) -> tuple[list[str], list[str]]:
    """Return the ``limit`` commonest characters, and those of them that words go on with."""
    counts, continuing = Counter[str](), set[str]()
    for line in lines:
        for word in line.split():
            counts.update(word)
            continuing.update(word[1:])
    kept = sorted(counts, key=lambda character: (-counts[character], character))[:limit]
    return sorted(kept), sorted(continuing.intersection(kept))


def save_tokeniser(trained: Tokenizer, folder: Path, *, length: int) -> None:
    """Write it as ``transformers`` reads it, for a model that takes ``length`` pieces."""
    tokeniser = PreTrainedTokenizerFast(
        tokenizer_object=trained, model_max_length=length, **_SPECIALS
    )
    with whole_folder(folder) as part:
        tokeniser.save_pretrained(part)
