"""Read bracketed treebanks whose leaves are not written as the Penn Treebank's.

A dialect declares the form of its leaves, the leaves that are no words, and a test of its files.
"""

import dataclasses
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping

from attree.treebank import brackets, sentence
from attree.treebank.sentence import Format, Rejected, Sentence, SplitSettings

_LEAF = re.compile(r"\(([^\s()]+)([ \t]+)([^\s()]+)((?:[ \t]+[^\s()]+)?)([ \t]*)\)")
_ICEPAHC_LEAF = re.compile(r"[^a-z\s]+ (?:\S+-\S+|0|\*\S+|<\S+|\{\S+)")
_CESS_LEAF = re.compile(r"(?:[a-z]+\d[a-z0-9]*|r[gn]|c[cs]|i|F[a-z]{1,2}|[ZWX][a-z]?|-\S+) \S+ \S+")
_SAMPLE = 70  # leaves at each position by which a dialect is recognised

#: Words as the dialect writes them → as they are read.
_ICELANDIC = {"<dash/>": "–", "<paren>": "-LRB-", "</paren>": "-RRB-", "<slash/>": "/"}
_HISTORICAL = {"<paren>": "-LRB-", "</paren>": "-RRB-"}
SPOKEN = {f"/{mark}": mark for mark in ".,?!:;-"}
_SPANISH = {"-Fpa-": "-LRB-", "-Fpt-": "-RRB-", "-Fca-": "[", "-Fct-": "]"}


def _rewriting(
    word: Callable[[str, str], str], words: Mapping[str, str]
) -> Callable[[str, str, SplitSettings], Iterator[Sentence | Rejected]]:
    """Return a reader that rewrites each leaf to its tag and its word."""

    def leaf(match: re.Match[str]) -> str:
        tag, space, first, rest, end = match.groups()
        written = word(first, rest.strip())
        return f"({tag}{space}{words.get(written, written)}{end})"

    def read(text: str, file: str, settings: SplitSettings) -> Iterator[Sentence | Rejected]:
        return brackets.read(_LEAF.sub(leaf, text), file, settings)

    return read


def _word_dash_lemma(word: str, more: str) -> str:
    """Return the word of ``word-lemma``: the first half of the parts, as the lemma keeps hyphens.

    ``$`` marks where a word was split in two.
    """
    if more or re.fullmatch(sentence.PENN_TRACE, word):
        return f"{word} {more}".strip()
    parts = word.split("-")
    if len(parts) > 1:
        word = "-".join(parts[: len(parts) // 2 if len(parts) % 2 == 0 else -1])
    return _SPLIT.sub("", word) or "-"


#: Marks where a word was split in two, at the end of one half and the beginning of the other.
_SPLIT = re.compile(r"(?<=\w)[$@]\Z|\A[$@](?=[^\W\d])")
_TWICE = re.compile(r"([^\w\s-]+)-\1")


def _historical_word(word: str, more: str) -> str:
    """Return a word without the marks of a split (``fyrstu$ $ni``); ``,-,`` is a comma."""
    word = _TWICE.sub(r"\1", word) if _TWICE.fullmatch(word) else _SPLIT.sub("", word)
    return f"{word} {more}".strip()


#: A leaf of layers: ``(NP {turkish=Kedi}{english=cat})``.
_LAYERS = re.compile(r"(\([^\s()]+\s+)((?:\{\w+=[^{}()]*\}\s*)+)(?=\))")
_LAYER = re.compile(r"\{([a-z]+)=([^{}]*)\}")
_NO_LANGUAGE = frozenset(("dependency", "polarity", "propbank", "semantics"))


def _read_layers(text: str, file: str, settings: SplitSettings) -> Iterator[Sentence | Rejected]:
    """Read the words of the layer ``turkish``, else of the first that is named as a language."""

    def leaf(match: re.Match[str]) -> str:
        layers = dict(_LAYER.findall(match[2]))
        words = [word for layer, word in layers.items() if layer not in _NO_LANGUAGE]
        return match[1] + layers.get("turkish", next(iter(words), ""))

    return brackets.read(_LAYERS.sub(leaf, text), file, settings)


def _read_floresta(text: str, file: str, settings: SplitSettings) -> Iterator[Sentence | Rejected]:
    """Cut functions, which precede labels: ``SUBJ+np``, ``H+n``; ``CJT+?`` would be a mark."""
    if settings.functions == "keep":
        yield from brackets.read_spmrl(text, file, settings)
        return
    for tree in brackets.read_spmrl(text, file, dataclasses.replace(settings, functions="keep")):
        if isinstance(tree, Sentence):
            spans = tuple((start, end, _category(label)) for start, end, label in tree.spans)
            tree = dataclasses.replace(tree, tags=tuple(map(_category, tree.tags)), spans=spans)
        yield tree


@functools.cache
def _category(label: str) -> str:
    """Return the part of a label after its last ``+``, without the part after a ``-``."""
    last = label.rpartition("+")[2]
    return sentence.cut_label(last if last.isalpha() or "-" in last[1:] else label)


def _share(text: str, leaf: re.Pattern[str]) -> float:
    """Return the share of leaves, sampled at three positions, that match a regular expression.

    If all leaves have one tag, they are no leaves but phrases of two words without labels.
    """
    leaves = [
        match
        for part in range(3)
        for match in itertools.islice(_LEAF.finditer(text, len(text) * part // 3), _SAMPLE)
    ]
    if len({match[1] for match in leaves}) < 2:
        return 0.0
    fit = sum(leaf.fullmatch(f"{match[1]} {match[3]}{match[4]}") is not None for match in leaves)
    return fit / max(len(leaves), 1)


def _is_icepahc(text: str) -> bool:
    """Tell whether nearly all leaves are ``TAG word-lemma``, and there are Penn traces."""
    trace = re.search(r"\*(?:T|ICH|con|exp|pro|arb)\*|\(C 0\)|\(ID \S+\)", text)
    return trace is not None and _share(text, _ICEPAHC_LEAF) > 0.9


def _is_penn_history(text: str) -> bool:
    """Tell whether every tree of words has an ``ID`` and a root without a label.

    Trees of one remark, such as ``( (CODE <P_1>))``, may be as many as trees of words.
    """
    ids = len(re.findall(r"(?m)\(ID [^\s()]+\)\s*\)\s*(?:\Z|^\()", text))
    trees = len(_HISTORY_TREE.findall(text)) if ids else 0
    return ids > 0 and ids >= 0.9 * trees - 1 and not _is_icepahc(text)


def _is_starlang(text: str) -> bool:
    """Tell whether most leaves have layers."""
    return "{" in text and len(_LAYERS.findall(text)) > len(_LEAF.findall(text)) / 2


_HISTORY_DROPPED = ("ID", "CODE", "META", "METADATA", "COMMENT", "REF", "LINEBREAK")
_HISTORY_TREE = re.compile(
    rf"^\( ?\((?!(?:{'|'.join(_HISTORY_DROPPED)}) [^()]*\)\s*\))", re.MULTILINE
)
_dialect = functools.partial(Format, dummy_roots=(*sentence.DUMMY_ROOTS, ""), family="brackets")
_historical = functools.partial(
    _dialect, drop_labels=_HISTORY_DROPPED, traces=sentence.PENN_TRACE, labels="icepahc"
)

#: Icelandic and Faroese Parsed Historical Corpora: ``(N-N hest$-hestur)``.
ICEPAHC = _historical(_rewriting(_word_dash_lemma, _ICELANDIC), (), certain=_is_icepahc)
#: Penn Parsed Corpora of Historical English and corpora in their manner, without lemmas.
PENN_HISTORY = _historical(_rewriting(_historical_word, _HISTORICAL), (), certain=_is_penn_history)
#: GreynirCorpus: META beside every tree, lemmas and hyphenation inside its preterminals.
GREYNIR = _dialect(
    brackets.read_spmrl,
    (),
    drop_labels=(*sentence.DROP_LABELS, "exp_seg", "exp_abbrev"),
    certain=lambda text: "(META" in text and "(lemma " in text,
    labels="greynir",
)
_REMARK = r"#\d+ C[A-Z]\d+-\d+ "
#: Floresta Sintá(c)tica: comments, leafless punctuation, Latin-1.
FLORESTA = _dialect(
    _read_floresta, (), fallback="latin-1", certain=sentence.has_line(_REMARK), labels="floresta"
)
#: CESS-ECE and AnCora: ``(ncms000 grupo grupo)``, ``*0*`` for a subject that is not expressed.
CESS = _dialect(
    _rewriting(lambda word, lemma: word, _SPANISH),
    (".tbf",),
    traces=r"\*\d*\*",
    fallback="iso8859-15",
    certain=lambda text: _share(text, _CESS_LEAF) > 0.8,
    labels="cess",
)
_spoken = _rewriting(lambda word, more: f"{word} {more}".strip(), SPOKEN)
#: OntoNotes: marks of punctuation are written ``/.`` to tell them from speakers' pauses.
ONTONOTES = Format(_spoken, (".parse",), punctuation="auto", family="brackets", labels="ptb")
#: Switchboard: speakers, pauses and repairs stand among the words of the Penn Treebank.
_SPEAKER = sentence.has_line(r"\( *\(CODE \(SYM Speaker")
_NO_WORDS = (*sentence.DROP_LABELS, "-DFL-", "CODE")
SWITCHBOARD = _dialect(
    brackets.read, (), punctuation="auto", drop_labels=_NO_WORDS, certain=_SPEAKER
)
#: Starlang's Turkish translation of the Penn Treebank; ``*NONE*`` for a word without a translation.
STARLANG = _dialect(
    _read_layers, (), traces=r"\*[\w?]+\*(?:[-=]\d+)*", certain=_is_starlang, labels="ptb"
)
