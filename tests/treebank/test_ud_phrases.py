"""What a dependency tree says of a constituency tree: rules by hand, and laws of any tree."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attree.treebank.cleaning import CleaningCounts, prepare
from attree.treebank.conllu import read
from attree.treebank.convert import convert
from attree.treebank.formats import read_files, resolve
from attree.treebank.sentence import Sentence, SplitSettings
from attree.treebank.ud_phrases import Tree, Words, shortened
from attree.trees.constraints import NO_PHRASE, Constraints

PARTIAL = SplitSettings(format="conllu", dependencies="half", labels="universal")


def conllu(text: str) -> str:
    """Return CoNLL-U of words written form/TAG/head/relation[/features]."""
    lines = []
    for number, word in enumerate(text.split(), start=1):
        form, tag, head, relation, *features = word.split("/")
        about = features[0] if features else "_"
        lines.append(f"{number}\t{form}\t_\t{tag}\t_\t{about}\t{head}\t{relation}\t_\t_")
    return "\n".join(lines) + "\n\n"


def phrases_of(text: str, how: SplitSettings = PARTIAL) -> dict[str, str]:
    (one,) = read(conllu(text), "f", how)
    assert one.partial
    return {" ".join(one.words[i:j]): label for i, j, label in one.spans}


def examples(text: str) -> dict[str, dict[str, str]]:
    """Read examples: words as of `conllu`, then indented ``LABEL words / …``, or ``-`` for none."""
    found: dict[str, dict[str, str]] = {}
    words = ""
    for line in text.strip().splitlines():
        if line.startswith("    "):
            labelled = [one.partition(" ") for one in line.strip().split(" / ") if one != "-"]
            found[words], words = {phrase: label for label, _, phrase in labelled}, ""
        elif not line.startswith("#"):
            words = f"{words} {line}".strip()
    return found


RULES = examples(
    """
# a nominal, the clause; a subject alone and a VP with its subject outside are no subtrees
the/DET/2/det cat/NOUN/3/nsubj saw/VERB/0/root me/PRON/3/obj ./PUNCT/3/punct
    NP the cat / S the cat saw me .
# an adposition makes a PP, a possessor is none, a numeral and a name have no node
in/ADP/3/case New/PROPN/3/compound York/PROPN/4/obl sat/VERB/0/root
    PP in New York / S in New York sat
the/DET/2/det man/NOUN/4/nmod:poss 's/PART/2/case two/NUM/0/root
    NP the man 's / NP the man 's two
about/ADV/2/advmod ten/NUM/3/nummod men/NOUN/4/nsubj sat/VERB/0/root
    NP about ten men / S about ten men sat
# coordination: the conjunction is no part of the conjunct at whose edge it stands
the/DET/2/det cat/NOUN/7/nsubj ,/PUNCT/6/punct and/CCONJ/6/cc a/DET/6/det dog/NOUN/2/conj
sat/VERB/0/root
    NP the cat , and a dog / NP a dog / S the cat , and a dog sat
# a conjunct without subject is a VP here and an S there
he/PRON/2/nsubj came/VERB/0/root and/CCONJ/4/cc sat/VERB/2/conj down/ADV/4/advmod
    S he came and sat down / ? sat down
# clauses
I/PRON/2/nsubj know/VERB/0/root that/SCONJ/5/mark he/PRON/5/nsubj came/VERB/2/ccomp
    S I know that he came / S that he came
men/NOUN/0/root who/PRON/3/nsubj sit/VERB/1/acl:relcl
    NP men who sit / S who sit
I/PRON/2/nsubj want/VERB/0/root to/PART/4/mark sit/VERB/2/xcomp/VerbForm=Inf
    S I want to sit / VP to sit
il/PRON/2/nsubj vient/VERB/0/root pour/ADP/4/mark manger/VERB/2/advcl/VerbForm=Inf
    S il vient pour manger / PP pour manger
il/PRON/2/nsubj part/VERB/0/root si/SCONJ/4/mark pleut/VERB/2/advcl/VerbForm=Fin
    S il part si pleut / S si pleut
it/PRON/5/nsubj is/AUX/5/cop a/DET/5/det very/ADV/5/advmod thing/NOUN/0/root
    S it is a very thing
# modifiers
a/DET/4/det very/ADV/3/advmod old/ADJ/4/amod man/NOUN/0/root
    NP a very old man / AJP very old / ! a very old
sat/VERB/0/root very/ADV/3/advmod often/ADV/1/advmod
    S sat very often / AVP very often
the/DET/2/det poor/ADJ/3/nsubj sat/VERB/0/root
    NP the poor / S the poor sat
# of a subtree with a gap nothing is known; the whole sentence stays a phrase
a/DET/2/det hearing/NOUN/3/nsubj is/VERB/0/root on/ADP/5/case it/PRON/2/nmod
    S a hearing is on it / PP on it
ouch/INTJ/0/root that/PRON/1/discourse
    ? ouch that
"""
)


#: With phrases inside subtrees, those that are more.
INNER = examples(
    """
# without the adposition, before it or behind
he/PRON/2/nsubj sat/VERB/0/root in/ADP/5/case the/DET/5/det house/NOUN/2/obl
    NP the house
das/DET/2/det Haus/NOUN/4/obl entlang/ADP/2/case ging/VERB/0/root
    NP das Haus
because/ADP/4/case of/ADP/1/fixed the/DET/4/det rain/NOUN/5/obl sat/VERB/0/root
    NP the rain
# a predicate with its own dependents; none where it is coordinated, or has a gap
it/PRON/6/nsubj is/AUX/6/cop not/PART/6/advmod a/DET/6/det good/ADJ/6/amod book/NOUN/0/root
now/ADV/6/advmod
    NP a good book
it/PRON/4/nsubj is/AUX/4/cop a/DET/4/det book/NOUN/0/root and/CCONJ/6/cc song/NOUN/4/conj
    -
it/PRON/4/nsubj is/AUX/4/cop in/ADP/4/case Rome/PROPN/0/root
    PP in Rome
it/PRON/5/nsubj is/AUX/5/cop in/ADP/5/case the/DET/5/det house/NOUN/0/root
    PP in the house / NP the house
a/DET/4/det is/AUX/4/cop it/PRON/4/nsubj book/NOUN/0/root
    -
"""
)


@pytest.mark.parametrize("text", INNER)
def test_phrases_inside_subtrees(text: str) -> None:
    every = phrases_of(text, replace(PARTIAL, dependencies="inner"))
    outer = phrases_of(text)
    assert {words: every[words] for words in every.keys() - outer.keys()} == INNER[text]
    assert outer.items() <= every.items()


#: Marks that make a pair stay together; others at an edge go.
PAIRS = {
    "« the cat » ,": "the cat",
    ", the « cat » .": "the « cat »",
    "the « cat » ,": "the « cat »",
    "( the cat ) .": "the cat",
    "the cat ( old ) ,": "the cat ( old )",
    "the -- old -- cat --": "the -- old -- cat",
    'the " old cat " .': 'the " old cat "',
    '" the cat " ,': "the cat",
    '" the " old cat': '" the " old cat',
}


@pytest.mark.parametrize("text", PAIRS)
def test_marks_at_the_edge(text: str) -> None:
    forms = text.split()
    head = forms.index("cat") + 1
    words = [
        f"{form}/PUNCT/{head}/punct" if not form.isalpha() else f"{form}/DET/{head}/det"
        for form in forms
    ]
    words[head - 1] = f"cat/NOUN/{len(forms) + 1}/nsubj"
    found = phrases_of(" ".join([*words, "sat/VERB/0/root"]))
    assert set(found) == {PAIRS[text], f"{text} sat"}


@pytest.mark.parametrize("text", RULES)
def test_rules(text: str) -> None:
    assert phrases_of(text) == RULES[text]


def test_labels_can_be_those_of_the_treebank_or_left_open(tmp_path: Path) -> None:
    text = "the/DET/2/det cat/NOUN/3/nsubj sat/VERB/0/root"
    own = SplitSettings(format="conllu", dependencies="half")
    assert phrases_of(text, own) == {"the cat": "nsubj", "the cat sat": "root"}
    file = tmp_path / "x.conllu"
    file.write_text(conllu(text), encoding="utf-8")
    (one,) = read_files(
        [file], SplitSettings(format="conllu", dependencies="half", labels="unknown")
    )
    assert one.spans == ((0, 3, "?"), (0, 2, "?"))
    (whole,) = read_files([file], SplitSettings(format="conllu", labels="universal"))
    assert (whole.spans, whole.partial) == (((0, 3, "S"), (0, 2, "NP")), False)


def drawn_tree(seed: int, n: int) -> tuple[list[int], list[str]]:
    """Draw heads and relations; about half of the trees cross."""
    draw = random.Random(seed)
    order = draw.sample(range(n), n)
    heads = [-1] * n
    for place, word in enumerate(order[1:], start=1):
        heads[word] = draw.choice(order[:place])
    names = ["punct", "cc", "fixed", "nsubj", "conj", "obl", "det", "case", "cop", "aux"]
    return heads, ["root" if head < 0 else draw.choice(names) for head in heads]


@settings(max_examples=100)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 9), inner=st.booleans())
def test_phrases_of_any_tree_are_subtrees_and_do_not_cross(seed: int, n: int, inner: bool) -> None:
    heads, relations = drawn_tree(seed, n)
    forms = random.Random(seed).choices(["w", '"', "(", ")"], k=n)
    words = Words(forms, ["NOUN"] * n, heads, relations, ["_"] * n)
    below = [{word} for word in range(n)]
    for _ in range(n):  # by brute force
        for word, head in enumerate(heads):
            if head >= 0:
                below[head] |= below[word]
    found = Tree(words, ("inner",) * inner).phrases()
    for one in found:
        inside = set(range(one.start, one.end))
        assert one.head in inside or not inner
        assert inside <= below[one.head]
        if not inner:
            missing = below[one.head] - inside
            assert {relations[word] for word in missing} <= {"punct", "cc", "fixed"}
    spans = [(one.start, one.end) for one in found]
    assert len(set(spans)) == len(spans)
    assert not any(a < c < b < d for (a, b), (c, d) in itertools.permutations(spans, 2))
    assert n == 1 or spans[0] == (0, n)


@pytest.mark.parametrize("language", ["German-GSD", "Hebrew-IAHLTwiki", "Chinese-GSD", "Thai-PUD"])
def test_what_is_converted_is_read_back(data: Path, tmp_path: Path, language: str) -> None:
    file, made = tmp_path / "x.conllu", tmp_path / "x.half"
    text = (data / f"ud/UD_{language}/dev.conllu").read_text(encoding="utf-8")
    file.write_text("\n\n".join(text.split("\n\n")[:150]) + "\n\n", encoding="utf-8")
    how = SplitSettings(format="conllu", encoding="utf-8", labels="universal")
    done = convert([([file], how)], made, "half")
    direct = [one for one in read_files([file], PARTIAL) if isinstance(one, Sentence) and one.spans]
    back = list(read_files([made], resolve(SplitSettings(), [made])))
    assert len(back) == len(direct) == done.written
    assert len(direct) >= 150 - len(done.rejected) - 1
    left_out = 0
    for one, other in zip(back, direct, strict=True):
        # brackets cannot cross: some spans that are no phrases are left out
        written = [span for span in other.spans if span[2] != NO_PHRASE or span in one.spans]
        left_out += len(other.spans) - len(written)
        assert (one.tags, list(one.spans), one.partial) == (other.tags, written, True)
        assert len(one.words) == len(other.words)
        Constraints.of_tree(len(one.words), one.spans, partial=True)
    assert done.crossed == left_out > 0


def none_of(text: str, how: SplitSettings = PARTIAL) -> set[str]:
    """Return what a tree says is no phrase."""
    return {words for words, label in phrases_of(text, how).items() if label == NO_PHRASE}


#: Words → the groups of them that are no phrases.
NONE = examples(
    """
# dependents of a clause without its head, before it and behind
brother/NOUN/4/nsubj yesterday/ADV/4/advmod apple/NOUN/4/obj ate/VERB/0/root
    ! brother yesterday / ! yesterday apple / ! brother yesterday apple
gave/VERB/0/root him/PRON/1/iobj a/DET/4/det book/NOUN/1/obj
    ! him a book
# dependents of a noun; adpositions in a row may be one compound
of/ADP/4/case the/DET/4/det big/ADJ/4/amod house/NOUN/0/root by/ADP/6/case Rome/PROPN/4/nmod
    ! of the / ! the big / ! of the big
out/ADP/3/case of/ADP/3/case town/NOUN/0/root
    -
"""
)
#: The same in a language without verb phrases, what is more.
FLAT = examples(
    """
he/PRON/2/nsubj saw/VERB/0/root Ann/PROPN/2/obj today/ADV/2/advmod ./PUNCT/2/punct
    ! he saw / ! he saw Ann / ! saw Ann / ! saw Ann today
# not its margins, and not what may be a phrase without an auxiliary
that/SCONJ/3/mark he/PRON/3/nsubj saw/VERB/4/ccomp know/VERB/0/root
    -
he/PRON/3/nsubj has/AUX/3/aux seen/VERB/0/root Ann/PROPN/3/obj
    ! he has / ! he has seen / ! has seen / ! has seen Ann
Ann/PROPN/2/obj seen/VERB/0/root has/AUX/2/aux he/PRON/2/nsubj
    ! Ann seen has / ! seen has / ! seen has he / ! has he
# not where a dependent may belong to the first conjunct alone, nor beside a complement
he/PRON/2/nsubj came/VERB/0/root here/ADV/2/advmod saw/VERB/2/conj
    -
he/PRON/2/nsubj wants/VERB/0/root see/VERB/2/xcomp it/PRON/2/obj
    ! he wants
"""
)


@pytest.mark.parametrize("text", NONE)
def test_dependents_of_a_word_are_no_phrase_without_it(text: str) -> None:
    assert none_of(text) == NONE[text].keys()


@pytest.mark.parametrize("text", FLAT)
def test_a_verb_and_some_of_its_dependents_are_no_phrase(text: str) -> None:
    flat = none_of(text, replace(PARTIAL, dependencies="inner_flat"))
    assert flat - none_of(text, replace(PARTIAL, dependencies="inner")) == FLAT[text].keys()


GROUP = replace(PARTIAL, dependencies="inner_flat_group")
CLITICS = replace(PARTIAL, dependencies="inner_flat_group_clitics")
GROUPS = {
    # text: the group of a verb, the same with clitics
    "il/PRON/5/nsubj/Emph=No ne/ADV/5/advmod/Polarity=Neg l'/PRON/5/obj/Emph=No a/AUX/5/aux "
    "vu/VERB/0/root hier/ADV/5/advmod": ({"a vu"}, {"il ne l' a vu"}),
    "elle/PRON/4/nsubj/Emph=No a/AUX/4/aux été/AUX/4/cop grande/ADJ/0/root": (
        {"a été"},
        {"elle a été"},
    ),
    # a noun is no clitic, what follows the verb is negation or a pronoun
    "Anne/PROPN/3/nsubj se/PRON/3/expl/Reflex=Yes lave/VERB/0/root pas/ADV/3/advmod/Polarity=Neg": (
        set(),
        {"se lave"},
    ),
    "a/AUX/3/aux -t-il/PRON/3/nsubj/Emph=No vu/VERB/0/root Anne/PROPN/3/obj": (
        {"a -t-il vu"},
        {"a -t-il vu"},
    ),
    # more than single words stand between the verb and its auxiliary
    "has/AUX/4/aux the/DET/3/det cat/NOUN/4/nsubj slept/VERB/0/root here/ADV/4/advmod": (
        set(),
        set(),
    ),
}


@pytest.mark.parametrize("text", GROUPS)
def test_a_verb_and_its_auxiliaries_are_a_phrase_in_romance_languages(text: str) -> None:
    without = phrases_of(text, replace(PARTIAL, dependencies="inner_flat"))
    for how, groups in zip((GROUP, CLITICS), GROUPS[text], strict=True):
        found = {words: x for words, x in phrases_of(text, how).items() if x != NO_PHRASE}
        phrases = {words: x for words, x in without.items() if x != NO_PHRASE}
        assert found == phrases | dict.fromkeys(groups, "VP")


@settings(max_examples=100)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 9))
def test_no_phrases_of_any_tree_hold_some_dependents_of_one_word(seed: int, n: int) -> None:
    heads, relations = drawn_tree(seed, n)
    tags = random.Random(seed).choices(["VERB", "NOUN", "ADJ"], k=n)
    tree = Tree(Words(["w"] * n, tags, heads, relations, ["_"] * n), ("flat",))
    for start, end in tree.no_phrases():
        above = {heads[word] for word in range(start, end)} - set(range(start, end))
        tops = [word for word in range(start, end) if heads[word] in above]
        assert len(above) == 1
        if len(tops) == 1:  # a verb with all auxiliaries, without some of the words below it
            (verb,) = tops
            assert tags[verb] == "VERB"
            assert end - start < tree.sizes[verb]
            below = (word for word, head in enumerate(heads) if head == verb)
            assert all(start <= word < end for word in below if relations[word] == "aux")


@pytest.mark.parametrize(
    "text",
    [
        "makes/VERB/0/root him/PRON/1/obj happy/ADJ/1/xcomp",
        "a/NOUN/0/root b/NOUN/1/conj c/NOUN/1/conj d/NOUN/1/nmod",
        "he/PRON/3/nsubj is/AUX/3/cop here/ADV/0/root",
    ],
)
def test_what_treebanks_group_in_several_ways_is_left_open(text: str) -> None:
    assert not none_of(text)


def test_final_punctuation_is_inside_or_outside_where_that_is_asked_for() -> None:
    text = conllu("he/PRON/2/nsubj came/VERB/0/root home/ADV/2/advmod ./PUNCT/2/punct")
    for asked, spans in (
        ("as_is", {(0, 4, "S")}),
        ("inside", {(0, 4, "S"), (0, 3, NO_PHRASE)}),
        ("outside", {(0, 3, "S")}),
    ):
        how = replace(PARTIAL, final_punctuation=asked)
        (one,) = prepare(read(text, "x", how), how, CleaningCounts())
        assert set(one.spans) == spans
    whole = Sentence(
        ("a", "b", "."), ("X",) * 3, ((0, 3, "TOP"), (0, 2, "S"), (0, 1, "NP")), "x", 1
    )
    (one,) = prepare([whole], SplitSettings(final_punctuation="inside"), CleaningCounts())
    assert one.spans == ((0, 3, "TOP"), (0, 3, "S"), (0, 1, "NP"))
    (one,) = prepare([whole], SplitSettings(final_punctuation="outside"), CleaningCounts())
    assert one.spans == ((0, 2, "TOP"), (0, 2, "S"), (0, 1, "NP"))


@pytest.mark.parametrize(
    ("spans", "outside"),
    [
        # a phrase that ends with a closing mark keeps it
        (((0, 5, "S"), (2, 4, "AVP")), ((0, 4, "S"), (2, 4, "AVP"))),
        (((0, 5, "S"), (2, 5, "AVP")), ((0, 5, "S"), (2, 5, "AVP"))),
        # no span is a phrase and none
        (((0, 5, "?"), (0, 3, NO_PHRASE)), ((0, 3, "?"),)),
    ],
)
def test_phrases_do_not_cross_or_contradict_when_final_punctuation_goes_out(
    spans: tuple[Any, ...], outside: tuple[Any, ...]
) -> None:
    tree = Sentence(("a", "(", "b", ")", "."), ("X",) * 5, spans, "x", 1, partial=True)
    how = SplitSettings(final_punctuation="outside")
    (one,) = prepare([tree], how, CleaningCounts())
    assert isinstance(one, Sentence)
    assert one.spans == outside


SHORT = SplitSettings(format="conllu", dependencies="inner", labels="universal", short=True)


LONG = (
    "yesterday/ADV/6/advcl ,/PUNCT/1/punct the/DET/4/det cat/NOUN/6/nsubj will/AUX/6/aux "
    "see/VERB/0/root mice/NOUN/6/obj and/CCONJ/9/cc sleep/VERB/6/conj ./PUNCT/6/punct"
)


def test_a_long_sentence_comes_again_as_its_main_clause():
    """What is left out are whole subtrees; the rest is a tree of the same heads."""
    whole, short = read(conllu(LONG), "f", SHORT)
    assert len(whole.words) == 10
    assert short.words == ("The", "cat", "will", "see", "mice", ".")
    assert short.heads == (1, 3, 3, -1, 3, 3)
    assert (0, 2, "NP") in short.spans
    for left in ("see/VERB/0/root ./PUNCT/1/punct", "a/DET/2/det cat/NOUN/0/root ./PUNCT/2/punct"):
        assert len(list(read(conllu(left), "f", SHORT))) == 1


@pytest.mark.parametrize(("most", "both"), [(40, 2), (8, 1)])
def test_a_main_clause_is_in_the_part_of_its_sentence(most: int, both: int) -> None:
    """Also where some sentences have none, or only the whole ones are too long."""
    text = (3 * conllu(LONG) + conllu("go/VERB/0/root home/ADV/1/advmod")) * 3

    def lines(part: str) -> list[int]:
        how = replace(SHORT, punctuation="keep", max_words=most, part=part)
        done = prepare(read(text, "f", how), how, CleaningCounts())
        return [item.line for item in done if isinstance(item, Sentence)]

    train, test = lines("2-5/5"), lines("1/5")
    assert not {*train} & {*test}
    assert sorted(train + test) == lines("1/1")
    assert len({*lines("1/1")}) == 12 and len({*test}) == 3  # the first, sixth and eleventh
    assert len(test) == 3 * both


@given(st.integers(1, 12).flatmap(lambda n: st.lists(st.integers(0, n), min_size=n, max_size=n)))
def test_a_shortened_sentence_is_a_tree(heads: list[int]):
    """Of any tree: words in their order, each with its head, or none."""
    heads = [head % (place + 1) - 1 for place, head in enumerate(heads)]
    relations = [("nsubj", "obj", "conj", "amod")[head % 4] for head in heads]
    count = len(heads)
    words = Words([f"w{n}" for n in range(count)], ["VERB"] * count, heads, relations, [""] * count)
    short = shortened(words)
    assert short is None or heads.count(-1) == 1
    if short is None:
        return
    places = [int(form.lower()[1:]) for form in short.forms]
    assert places == sorted(places)
    for place, head in zip(places, short.heads, strict=True):
        assert heads[place] == (places[head] if head >= 0 else -1)
