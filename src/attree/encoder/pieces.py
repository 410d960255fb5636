"""Split words into pieces, and merge piece-level attention to word-level attention.

A fast tokeniser splits every word without regard to its neighbours, so that each word is tokenised
once and cached. The word of each piece is thus known, and not guessed from ``##`` or ``▁``.
Sentences of similar length are run together (:func:`batches`).

A tokeniser that its files describe in full is read here (:func:`read_plain`), any other by
``transformers``, which takes seconds to import. A large Unigram vocabulary is read in a sixth of
the time of ``tokenizers``, which takes two seconds to build a tree of a quarter of a million
pieces, although a sentence needs only a few hundred look-ups of substrings. The library still
normalises text and handles white space; the search for the most probable pieces is done here, by
exactly the library's rules.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from tokenizers import Tokenizer

from attree.base.errors import AttreeError
from attree.encoder.spelling import plain

#: Words in the cache before it is emptied: about 150 MB, all words of most corpora.
_REMEMBERED = 1_000_000

#: Cost of an unknown piece above that of the least probable known piece.
_UNKNOWN_COSTS = 10.0

#: Tokeniser classes that use ``tokenizer.json`` as it is.
_PLAIN = ("PreTrainedTokenizerFast", "TokenizersBackend")

#: Tokeniser classes that build one like it out of settings, and their settings if not told.
_BERT = ("BertTokenizer", "BertTokenizerFast")
_OF_BERT = {
    "unk_token": "[UNK]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "do_lower_case": True,
    "strip_accents": None,
    "tokenize_chinese_chars": True,
}

#: Files that may define more special pieces.
_MORE = ("special_tokens_map.json", "added_tokens.json")

#: Settings by which ``transformers`` changes what ``tokenizer.json`` says, or runs other code.
_REBUILT = {"add_bos_token", "add_eos_token", "extra_special_tokens", "auto_map"}


@dataclass(slots=True)
class Pieces:
    """The word pieces of one sentence.

    Args:
        ids: int32 (pieces,), with the special pieces at both ends.
        word_of: int32 (pieces,), the 0-based word of each piece, -1 for special pieces.
        n_words: number of words.
        n_unknown: number of words with an unknown piece.
        too_long: whether the encoder has too few positions for the pieces.
    """

    ids: np.ndarray
    word_of: np.ndarray
    n_words: int
    n_unknown: int
    too_long: bool


class PieceTokeniser:
    """Tokenises sentences of words.

    Args:
        splitter: splits words.
        max_pieces: most pieces that the encoder takes, with special pieces.
    """

    def __init__(self, splitter: Splitter, max_pieces: int) -> None:
        self.max_pieces, self.pad_id = max_pieces, splitter.padding
        self._split, self._unknown = splitter, splitter.unknown
        backend = _with_prefix_space(splitter.backend)
        # a checkpoint may have been saved with truncation and padding switched on
        backend.no_truncation()
        backend.no_padding()
        # a word that is spelled like a special token must not act as one
        backend.encode_special_tokens = True
        # their numbers in the encoder: the library may have been given only some of the pieces
        ids = backend.get_vocab() if splitter.unigram is None else splitter.unigram.ids
        added = backend.get_added_tokens_decoder().values()
        self._special = {ids.get(token.content) for token in added if token.special}
        self._before, self._after = _specials(backend)
        self._known: dict[str, tuple[int, ...]] = {}
        self._unread: set[str] = set()

    def __call__(self, sentences: Sequence[Sequence[str]]) -> list[Pieces]:
        """Return the pieces of sentences, in their order."""
        if len(self._known) > _REMEMBERED:
            self._known.clear()
            self._unread.clear()
        words = dict.fromkeys(chain.from_iterable(sentences))
        if new := [word for word in words if word not in self._known]:
            for word, ids in zip(new, self._split(list(map(plain, new))), strict=True):
                # some models have special pieces among the others
                ids = [self._unknown if number in self._special else number for number in ids]
                self._known[word] = tuple(ids) or (self._unknown,)
                if self._unknown in self._known[word]:
                    self._unread.add(word)
        return [self._assemble(sentence) for sentence in sentences]

    def _assemble(self, words: Sequence[str]) -> Pieces:
        of_word = [self._known[word] for word in words]
        counts = [len(ids) for ids in of_word]
        before, after, n_pieces = self._before, self._after, sum(counts)
        every = chain(before, chain.from_iterable(of_word), after)
        ids = np.fromiter(every, np.int32, count=n_pieces + len(before) + len(after))
        word_of = np.full(len(ids), -1, dtype=np.int32)
        numbers = np.repeat(np.arange(len(words), dtype=np.int32), counts)
        word_of[len(before) : len(before) + n_pieces] = numbers
        n_unknown = sum(word in self._unread for word in words) if self._unread else 0
        return Pieces(ids, word_of, len(words), n_unknown, len(ids) > self.max_pieces)


def _with_prefix_space(backend: Tokenizer) -> Tokenizer:
    """Make a tokeniser treat every word as one after a space, as most words of a sentence are.

    Byte-level and sentencepiece tokenisers treat a word at the start of a text differently, and
    words given one by one have no space before them.
    """
    if backend.pre_tokenizer is None:
        return backend
    state = json.loads(backend.pre_tokenizer.__getstate__())
    for part in state.get("pretokenizers", [state]):
        if part["type"] == "ByteLevel":
            part["add_prefix_space"] = True
        elif part["type"] == "Metaspace":
            part["prepend_scheme"] = "always"
    changed = backend.pre_tokenizer
    changed.__setstate__(json.dumps(state).encode())
    backend.pre_tokenizer = changed
    return backend


def _specials(backend: Tokenizer) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the special ids before and after a sentence."""
    sentence = backend.encode(["a"], is_pretokenized=True)
    of_words = [index for index, word in enumerate(sentence.word_ids) if word is not None]
    first, last = (of_words[0], of_words[-1] + 1) if of_words else 2 * (len(sentence.ids),)
    return tuple(sentence.ids[:first]), tuple(sentence.ids[last:])


class Unigram:
    """A Unigram model.

    Args:
        pieces: pieces and their log probabilities, in the order of their ids.
        unknown: id of the unknown piece.
    """

    def __init__(self, pieces: Sequence[tuple[str, float]], unknown: int) -> None:
        self.ids = {piece: number for number, (piece, _) in enumerate(pieces)}
        self._scores = [score for _, score in pieces]
        self._unknown = unknown
        self._longest = max(map(len, self.ids))
        self._cost = min(self._scores) - _UNKNOWN_COSTS

    def __call__(self, text: str) -> list[int]:
        """Return the ids of the most probable pieces of normalised text."""
        length = len(text)
        best, start, number = [0.0] * (length + 1), [-1] * (length + 1), [0] * (length + 1)
        for begin in range(length):
            so_far, single = best[begin], False
            for end in range(begin + 1, min(begin + self._longest, length) + 1):
                piece = self.ids.get(text[begin:end])
                if piece is None:
                    continue
                single = single or end == begin + 1
                score = so_far + self._scores[piece]
                if start[end] < 0 or score > best[end]:
                    best[end], start[end], number[end] = score, begin, piece
            score, end = so_far + self._cost, begin + 1
            if not single and (start[end] < 0 or score > best[end]):
                best[end], start[end], number[end] = score, begin, self._unknown
        pieces: list[int] = []
        end = length
        while end > 0:
            begin, piece = start[end], number[end]
            if piece == self._unknown:  # several in a row become one
                while begin > 0 and number[begin] == self._unknown:
                    begin = start[begin]
                piece = self.ids.get(text[begin:end], self._unknown)
            pieces.append(piece)
            end = begin
        return pieces[::-1]


@dataclass(slots=True)
class Splitter:
    """What splits words into pieces, for :class:`PieceTokeniser`.

    Args:
        backend: a tokeniser of the library; with a Unigram it need not have all pieces.
        unknown: id of the unknown piece.
        padding: id of the padding piece.
        unigram: searches for pieces in place of the library; None to leave that to the library.
    """

    backend: Tokenizer
    unknown: int
    padding: int
    unigram: Unigram | None = None

    def __len__(self) -> int:
        """Return the size of the vocabulary."""
        ids = self.backend.get_vocab() if self.unigram is None else self.unigram.ids
        return max(ids.values(), default=-1) + 1

    def __call__(self, words: Sequence[str]) -> list[list[int]]:
        """Return the ids of the pieces of each word."""
        backend, unigram = self.backend, self.unigram
        if unigram is None:
            encoded = backend.encode_batch_fast(
                [[word] for word in words], is_pretokenized=True, add_special_tokens=False
            )
            return [encoding.ids for encoding in encoded]
        normaliser, splitter = backend.normalizer, backend.pre_tokenizer
        pieces = []
        for word in words:
            text = word if normaliser is None else normaliser.normalize_str(word)
            parts = [(text, None)] if splitter is None else splitter.pre_tokenize_str(text)
            pieces.append([number for part, _ in parts for number in unigram(part)])
        return pieces


def read_plain(folder: Path) -> Splitter | None:
    """Read a tokeniser that its files describe in full; None if it is another, or damaged.

    ``transformers`` then reads it, and reports what is wrong with it.
    """
    try:
        config, settings, file, *special = (
            msgspec.json.decode((folder / name).read_bytes())
            for name in ("config.json", "tokenizer_config.json", "tokenizer.json", *_MORE)
            if name not in _MORE or (folder / name).exists()
        )
        model, added = file["model"], file.get("added_tokens", [])
        kind = settings.get("tokenizer_class") or config.get("tokenizer_class")
        if kind in _BERT or (not kind and config["model_type"] == "bert"):
            settings = {**_OF_BERT, **settings}
            as_written = _is_bert(settings, file)
        else:
            as_written = kind in _PLAIN and file["post_processor"] is not None
        repeated = settings.get("added_tokens_decoder", {})
        in_full = (
            as_written
            and not (model.get("byte_fallback") or settings.keys() & _REBUILT)
            and all(token["special"] for token in added)
            and all({"id": int(number), **repeated[number]} in added for number in repeated)
            and all(settings.get(key) == token for keys in special for key, token in keys.items())
        )
        if not in_full:
            return None
        names = (settings[key] for key in ("unk_token", "pad_token"))
        unknown, padding = (x["content"] if isinstance(x, dict) else x for x in names)
        unigram = None
        if model["type"] == "Unigram":
            vocabulary, number = model["vocab"], model["unk_id"]
            unigram = Unigram(vocabulary, number)
            few = {"type": "Unigram", "unk_id": number, "vocab": vocabulary[: number + 1]}
            file, is_same = {**file, "model": few}, unigram.ids[unknown] == number
        else:
            is_same = model.get("unk_token") in (unknown, None)
        backend = Tokenizer.from_str(msgspec.json.encode(file).decode())
        ids = backend.get_vocab() if unigram is None else unigram.ids
        return Splitter(backend, ids[unknown], ids[padding], unigram) if is_same else None
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # the tokenizers library panics outside Exception
        return None


def _is_bert(settings: dict[str, Any], file: dict[str, Any]) -> bool:
    """Whether ``tokenizer.json`` is what ``transformers`` builds for BERT out of the settings."""
    normaliser = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": settings["tokenize_chinese_chars"],
        "strip_accents": settings["strip_accents"],
        "lowercase": settings["do_lower_case"],
    }
    model, splitter = file["model"], {"type": "BertPreTokenizer"}
    pieces = (model["type"], model["continuing_subword_prefix"], model["max_input_chars_per_word"])
    ends = [part.get("SpecialToken", {}).get("id") for part in file["post_processor"]["single"]]
    return (
        (file["normalizer"], file["pre_tokenizer"]) == (normaliser, splitter)
        and pieces == ("WordPiece", "##", 100)
        and ends == [settings["cls_token"], None, settings["sep_token"]]
    )


def check_pieces(pieces: int, model: Any, folder: Path) -> None:
    """Refuse a tokeniser with more pieces than ``model`` has embeddings."""
    table = model.get_input_embeddings()
    # of quantised tables transformers tells no size
    size = table.num_embeddings if hasattr(table, "num_embeddings") else len(table.weight)
    if pieces > size:
        problem = "the tokeniser has more pieces than the encoder has embeddings"
        fix = "check that tokeniser and model.safetensors belong together"
        raise AttreeError("piece-count", problem, file=folder, fix=fix)


#: What a batch costs beside its pieces, as a share of the most pieces of a batch.
_BATCH = 1 / 16


def batches(
    lengths: Sequence[int] | np.ndarray,
    *,
    tokens_per_batch: int,
    cells_per_batch: int | None = None,
) -> list[np.ndarray]:
    """Group sentences by length to avoid padding; the result is deterministic.

    Args:
        lengths: number of pieces of each sentence.
        tokens_per_batch: most pieces of a batch, with padding. A longer sentence is a batch of its
            own.
        cells_per_batch: most cells ``batch × longest²``, which limits the memory for attention
            matrices of long sentences.

    Returns:
        int64 index arrays into ``lengths``, the longest sentences first, so that memory runs out
        soon or never. Every sentence is in one batch.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")
    groups = []
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        most = tokens_per_batch // longest
        if cells_per_batch is not None:
            most = min(most, cells_per_batch // (longest * longest))
        end = min(start + max(1, most), len(order))
        # pieces of padding that are spared if the batch ends before one of its sentences
        spared = (longest - lengths[order[start:end]]) * np.arange(end - start, 0, -1)
        if spared.max() > tokens_per_batch * _BATCH:
            end = start + int(spared.argmax())
        groups.append(order[start:end])
        start = end
    return groups


@dataclass(slots=True)
class PieceBatch:
    """Sentences padded to the longest, and the maps between their pieces and words.

    Args:
        ids: int64 (batch, pieces), padded.
        mask: int64 (batch, pieces), 1 for pieces, 0 for padding.
        word_of: int64 (batch, pieces), -1 for specials and padding.
        n_words: int64 (batch,).
    """

    ids: torch.Tensor
    mask: torch.Tensor
    word_of: torch.Tensor
    n_words: torch.Tensor

    @property
    def max_words(self) -> int:
        """Number of words of the longest sentence."""
        return int(self.n_words.max())

    def piece_to_word(self) -> torch.Tensor:
        """Return float32 (batch, words, pieces), the matrix that averages each word's pieces."""
        words = torch.arange(self.max_words, device=self.ids.device)
        belongs = (self.word_of[:, None, :] == words[:, None]).float()
        return belongs / belongs.sum(-1, keepdim=True).clamp_(min=1.0)

    def to(self, device: torch.device) -> PieceBatch:
        """Return the batch on ``device``."""
        tensors = (self.ids, self.mask, self.word_of, self.n_words)
        return PieceBatch(*(tensor.to(device) for tensor in tensors))


def pad(sentences: Sequence[Pieces], pad_id: int) -> PieceBatch:
    """Pad sentences into one batch, in their order."""
    lengths = np.array([len(sentence.ids) for sentence in sentences])
    is_piece = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(is_piece.shape, pad_id, dtype=np.int64)
    ids[is_piece] = np.concatenate([sentence.ids for sentence in sentences])
    word_of = np.full(is_piece.shape, -1, dtype=np.int64)
    word_of[is_piece] = np.concatenate([sentence.word_of for sentence in sentences])
    n_words = np.array([sentence.n_words for sentence in sentences], dtype=np.int64)
    return PieceBatch(*map(torch.from_numpy, (ids, is_piece.astype(np.int64), word_of, n_words)))


class WordMerger:
    """Merges piece-level attention of one batch to words.

    Attention **to** a word is the sum over its pieces, attention **from** a word the mean over
    them. Special pieces are removed, and nothing is renormalised.
    """

    def __init__(self, batch: PieceBatch) -> None:
        self._from = batch.piece_to_word()
        self._to = (self._from > 0).float().transpose(1, 2).contiguous()

    def __call__(self, attention: torch.Tensor) -> torch.Tensor:
        """Merge ``attention`` (batch, heads, pieces, pieces) to (batch, heads, words, words).

        The result is float32, zero where a sentence of the batch has fewer words.
        """
        batch, heads, pieces, _ = attention.shape
        # one matrix product a sentence for the columns, one a head for the rows
        to_words = torch.bmm(attention.float().reshape(batch, heads * pieces, pieces), self._to)
        return torch.matmul(self._from[:, None], to_words.view(batch, heads, pieces, -1))
