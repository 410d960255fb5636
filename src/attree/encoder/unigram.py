"""Word pieces of a large Unigram vocabulary, ready in a sixth of ``tokenizers``' time.

A quarter of a million pieces are two seconds of building a tree of them, where a sentence has a few
hundred substrings to be looked up. Normalisation, and what becomes of blanks, stay the library's;
what is done here is the search for the pieces of highest probability, by its rules to the letter.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from tokenizers import Tokenizer

#: A piece that is not known costs so much more than the least probable one that is.
_UNKNOWN_COSTS = 10.0

#: Classes of ``tokenizer_config.json`` that take ``tokenizer.json`` as it is.
_PLAIN = ("PreTrainedTokenizerFast", "TokenizersBackend")

#: Files that may say more of special pieces.
_MORE = ("special_tokens_map.json", "added_tokens.json")

_Token = str | dict[str, Any] | None


class _Settings(msgspec.Struct):
    tokenizer_class: str | None = None
    unk_token: _Token = None
    pad_token: _Token = None


class _Model(msgspec.Struct):
    type: str = ""
    unk_id: int | None = None
    vocab: list[tuple[str, float]] = []
    byte_fallback: bool = False


class _Added(msgspec.Struct):
    special: bool = False


class _File(msgspec.Struct):
    model: _Model
    added_tokens: list[_Added] = []


class Unigram:
    """A Unigram model.

    Args:
        pieces: each with its log probability, in the order of their numbers.
        unknown: number of the piece that stands for what is not known.
    """

    def __init__(self, pieces: Sequence[tuple[str, float]], unknown: int) -> None:
        self.ids = {piece: number for number, (piece, _) in enumerate(pieces)}
        self._scores = [score for _, score in pieces]
        self._unknown = unknown
        self._longest = max(map(len, self.ids))
        self._cost = min(self._scores) - _UNKNOWN_COSTS

    def __call__(self, text: str) -> list[int]:
        """Return the numbers of the most probable pieces of normalised text."""
        length = len(text)
        best, start, number = [0.0] * (length + 1), [-1] * (length + 1), [0] * (length + 1)
        for begin in range(length):
            so_far, single = best[begin], False
            for end in range(begin + 1, min(begin + self._longest, length) + 1):
                found = self.ids.get(text[begin:end])
                if found is None:
                    continue
                single = single or end == begin + 1
                score = so_far + self._scores[found]
                if start[end] < 0 or score > best[end]:
                    best[end], start[end], number[end] = score, begin, found
            if not single:
                score, end = so_far + self._cost, begin + 1
                if start[end] < 0 or score > best[end]:
                    best[end], start[end], number[end] = score, begin, self._unknown
        return self._back(text, start, number)

    def _back(self, text: str, start: list[int], number: list[int]) -> list[int]:
        """Follow the best path from the end; unknown pieces in a row are one."""
        found: list[int] = []
        end = len(text)
        while end > 0:
            begin = start[end]
            if number[end] == self._unknown:
                while begin > 0 and number[begin] == self._unknown:
                    begin = start[begin]
                found.append(self.ids.get(text[begin:end], self._unknown))
            else:
                found.append(number[end])
            end = begin
        return found[::-1]


class UnigramTokeniser:
    """A tokeniser whose model is :class:`Unigram`: what ``PieceTokeniser`` asks of one."""

    def __init__(self, model: Unigram, backend: Tokenizer, unknown: int, padding: int) -> None:
        self.model, self.backend_tokenizer = model, backend
        self.unk_token_id, self.pad_token_id = unknown, padding

    def __len__(self) -> int:
        """Return how many pieces there are."""
        return len(self.model.ids)

    def split(self, words: Sequence[str]) -> list[list[int]]:
        """Return the numbers of the pieces of each word."""
        normaliser, splitter = (
            self.backend_tokenizer.normalizer,
            self.backend_tokenizer.pre_tokenizer,
        )
        found = []
        for word in words:
            text = word if normaliser is None else normaliser.normalize_str(word)
            parts = [(text, None)] if splitter is None else splitter.pre_tokenize_str(text)
            found.append([number for part, _ in parts for number in self.model(part)])
        return found


def read_unigram(folder: Path) -> UnigramTokeniser | None:
    """Read the tokeniser of a checkpoint if it is a plain Unigram; None if it is not, or damaged.

    What is not read here is for ``transformers``, which has the last word on what is wrong with it.
    """
    if any((folder / name).exists() for name in _MORE):
        return None
    try:
        settings = msgspec.json.decode(
            (folder / "tokenizer_config.json").read_bytes(), type=_Settings
        )
        if settings.tokenizer_class not in _PLAIN:
            return None
        text = (folder / "tokenizer.json").read_bytes()
        file = msgspec.json.decode(text, type=_File)
        model = file.model
        if model.type != "Unigram" or model.byte_fallback or model.unk_id is None:
            return None
        if not all(token.special for token in file.added_tokens):
            return None
        unigram = Unigram(model.vocab, model.unk_id)
        unknown, padding = (
            unigram.ids[_text(token)] for token in (settings.unk_token, settings.pad_token)
        )
        rest = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        few = {"type": "Unigram", "unk_id": model.unk_id, "vocab": model.vocab[: model.unk_id + 1]}
        whole = {**rest, "model": msgspec.Raw(json.dumps(few).encode())}
        backend = Tokenizer.from_str(msgspec.json.encode(whole).decode())
    except Exception:
        return None
    if unknown != model.unk_id:
        return None
    return UnigramTokeniser(unigram, backend, unknown, padding)


def _text(token: _Token) -> str:
    return token["content"] if isinstance(token, dict) else str(token)
