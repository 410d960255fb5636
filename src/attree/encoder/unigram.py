"""Word pieces of a large Unigram vocabulary, ready in a sixth of ``tokenizers``' time.

A quarter of a million pieces are two seconds of building a tree of them, where a sentence has a few
hundred substrings to be looked up. Normalisation, and what becomes of blanks, stay the library's;
what is done here is the search for the pieces of highest probability, by its rules to the letter.
"""

from __future__ import annotations

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
            if piece == self._unknown:  # several in a row are one
                while begin > 0 and number[begin] == self._unknown:
                    begin = start[begin]
                piece = self.ids.get(text[begin:end], self._unknown)
            pieces.append(piece)
            end = begin
        return pieces[::-1]


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
        backend = self.backend_tokenizer
        normaliser, splitter = backend.normalizer, backend.pre_tokenizer
        pieces = []
        for word in words:
            text = word if normaliser is None else normaliser.normalize_str(word)
            parts = [(text, None)] if splitter is None else splitter.pre_tokenize_str(text)
            pieces.append([number for part, _ in parts for number in self.model(part)])
        return pieces


def read_unigram(folder: Path) -> UnigramTokeniser | None:
    """Read the tokeniser of a checkpoint if it is a plain Unigram; None if it is not, or damaged.

    What is not read here is for ``transformers``, which has the last word on what is wrong with it.
    """
    if any((folder / name).exists() for name in _MORE):
        return None
    try:
        settings, file = (
            msgspec.json.decode((folder / name).read_bytes())
            for name in ("tokenizer_config.json", "tokenizer.json")
        )
        model = file["model"]
        plain = (
            settings["tokenizer_class"] in _PLAIN
            and model["type"] == "Unigram"
            and not model.get("byte_fallback")
            and all(token["special"] for token in file.get("added_tokens", []))
        )
        if not plain:
            return None
        vocabulary, unknown = model["vocab"], model["unk_id"]
        unigram = Unigram(vocabulary, unknown)
        unk_id, padding = (
            unigram.ids[_text(settings[name])] for name in ("unk_token", "pad_token")
        )
        few = {"type": "Unigram", "unk_id": unknown, "vocab": vocabulary[: unknown + 1]}
        backend = Tokenizer.from_str(msgspec.json.encode({**file, "model": few}).decode())
    except Exception:
        return None
    return UnigramTokeniser(unigram, backend, unknown, padding) if unk_id == unknown else None


def _text(token: Any) -> str:
    return token["content"] if isinstance(token, dict) else str(token)
