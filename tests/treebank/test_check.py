"""A reading that looks wrong stops, or is warned of, with the setting that mends it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attree.base.schemas import read_table
from attree.treebank.cleaning import CleaningCounts, choose, prepare
from attree.treebank.language import discover
from attree.treebank.sentence import Rejected, Sentence, SplitSettings
from tests.treebank.test_command import TREE

FRENCH = "(SENT (NP (DET le) (NC chien)) (VN (V aboie)) (PONCT .))\n"
ICELANDIC = """( (IP-MAT (NP-SBJ (PRO-N Það-það)) (BEDI var-vera) (NP-PRD *pro*)
   (CP (WNP-1 0) (C 0) (NP *T*-1)) (. .-.))
  (ID 1150.FIRSTGRAMMAR.SCI-LIN,.1))

"""


def sentence(tags: str) -> Sentence:
    return Sentence(tuple("w" for _ in tags.split()), tuple(tags.split()), (), "f", 1)


class TestPolicy:
    def test_only_the_penn_treebank_s_tags_choose_its_policy(self) -> None:
        assert choose([sentence("DT NN VBZ . `` -LRB-")] * 3)[0] == "ptb"
        policy, reason = choose([sentence("DET NC V PONCT NN")])
        assert (policy, reason) == ("keep", "20% of the tags are the Penn Treebank's")
        assert choose([])[0] == "keep"

    def test_nearly_all_tags(self) -> None:
        assert choose([sentence("NN " * 19 + "X")])[0] == "ptb"
        assert choose([sentence("NN " * 18 + "X")])[0] == "keep"

    def test_the_choice_reaches_every_sentence_and_the_counts(self) -> None:
        counts = CleaningCounts()
        many = [sentence("NC V PONCT"), Rejected("f", 2, "bad", "failed"), sentence("NN .")]
        done = list(prepare(many, SplitSettings(punctuation="auto"), counts))
        assert done == many
        assert (counts.punctuation, counts.words_removed) == ("keep", 0)
        assert "of the tags" in counts.reason

    def test_french_brackets_in_a_penn_file_keep_their_words(self, attree, tmp_path: Path) -> None:
        (tmp_path / "test.mrg").write_text(FRENCH * 30)
        done = attree("test.mrg", "--output", "o.parquet")
        assert done.status == 0
        table, metadata = read_table(tmp_path / "o.parquet")
        assert table["words"].to_pylist()[0] == ["le", "chien", "aboie", "."]
        assert metadata["punctuation"] == "keep"
        assert metadata["punctuation_reason"] == "0% of the tags are the Penn Treebank's"
        assert "punctuation keep was chosen: 0% of" in attree("test.mrg", "--check").out


class TestLoss:
    @pytest.mark.parametrize(
        ("bad", "accept", "status"),
        [(10, None, 0), (11, None, 1), (11, "0.11", 0), (50, "0.4", 1), (60, "1", 0)],
    )
    def test_sentences(
        self, attree, tmp_path: Path, bad: int, accept: str | None, status: int
    ) -> None:
        text = TREE.encode() * (100 - bad) + b"(S (NN caf\xe9))\n" * bad
        (tmp_path / "a.ptb").write_bytes(text)
        more = ["--accept-loss", accept] if accept else []
        done = attree("a.ptb", "--output", "o.parquet", *more)
        assert (done.status != 0) == status, done.status
        assert (tmp_path / "o.parquet").exists() == (not status)
        if status:
            said = str(done.status)
            assert f"a.ptb: {bad} of 100 sentences were lost (line {101 - bad}: byte 0xE9" in said
            assert (
                f"set encoding: latin-1 in language.yaml, or accept_loss: {bad / 100:g} if" in said
            )
            assert "\n" not in said
        else:
            _, metadata = read_table(tmp_path / "o.parquet")
            assert metadata["note"] == f"{100 - bad} of 100 sentences read"
            assert f"warning: {100 - bad} of 100 sentences read" in done.err

    def test_trees_that_are_not_projective_are_noted_with_the_setting_that_keeps_them(
        self, attree, tmp_path: Path
    ) -> None:
        def sentence(*heads: int) -> str:
            words = (f"{n}\ta\t_\tX\t_\t_\t{head}\tdep\t_\t_\n" for n, head in enumerate(heads, 1))
            return "".join(words) + "\n"

        flat, crossing, long = sentence(0, 1), sentence(3, 4, 0, 3), sentence(0, 1, 1, 1)
        (tmp_path / "a.conllu").write_text(flat * 40 + crossing * 10 + long * 50)
        done = attree("a.conllu", "--output", "o.parquet", "--max-words", "3")
        assert done.status == 0
        assert (
            "warning: 90 of 100 sentences read; mostly: not projective (nonprojective: lift)"
            in done.err
        )
        _, metadata = read_table(tmp_path / "o.parquet")
        assert metadata["note"] == "90 of 100 sentences read"
        assert metadata["counts"]["left_out"] == 10
        done = attree("a.conllu", "--output", "o.parquet", "--nonprojective", "lift")
        assert "sentences read" not in done.err

    def test_the_reason_is_told_where_every_tree_is_left_out(self, attree, tmp_path: Path) -> None:
        heads = [0, *(7919 * n % (n - 1) + 1 for n in range(2, 2001))]
        lines = (f"{n}\ta\t_\tX\t_\t_\t{head}\tdep\t_\t_" for n, head in enumerate(heads, 1))
        (tmp_path / "a.conllu").write_text("\n".join(lines) + "\n\n")
        done = attree("a.conllu", "--output", "o.parquet", "--nonprojective", "lift")
        assert "(line 1: not projective: more than" in str(done.status)

    def test_a_loss_under_one_percent_is_not_noted(self, attree, tmp_path: Path) -> None:
        (tmp_path / "a.ptb").write_text(TREE * 200 + "(S (A a)\n")
        assert attree("a.ptb", "--output", "o.parquet").status == 0
        assert read_table(tmp_path / "o.parquet")[1]["note"] == ""

    def test_words(self, attree, tmp_path: Path) -> None:
        (tmp_path / "a.mrg").write_text("(S (NN a) (NN b) (NC c))\n" * 10)
        done = attree("a.mrg", "--output", "o.parquet", "--punctuation", "ptb")
        assert "33% of the words were removed by punctuation policy ptb" in str(done.status)
        assert "set punctuation: keep in language.yaml, or accept_loss: 0.34" in str(done.status)
        done = attree(
            "a.mrg", "--output", "o.parquet", "--punctuation", "ptb", "--accept-loss", "0.34"
        )
        assert done.status == 0

    def test_filters_are_no_loss(self, attree, tmp_path: Path) -> None:
        (tmp_path / "a.mrg").write_text(TREE * 100)
        assert attree("a.mrg", "--output", "o.parquet", "--first", "3").status == 0
        _, metadata = read_table(tmp_path / "o.parquet")
        assert metadata["words_removed"] == 0.25

    def test_a_share_that_is_none(self, attree, tmp_path: Path) -> None:
        (tmp_path / "a.mrg").write_text(TREE)
        done = attree("a.mrg", "--check", "--accept-loss", "2")
        assert "--accept-loss. Must be <= 1" in str(done.status)
        done = attree("a.mrg", "--check", "--accept-loss", "x")
        assert "Invalid value for --accept-loss" in str(done.status)


class TestWarnings:
    @pytest.mark.parametrize(
        ("text", "options", "warning"),
        [
            ("(S (C 0) (NP *T*-1) (V go))\n" * 9, [], r"look like traces: 0, \*T\*-1 \(traces: "),
            (
                "(S (NN a) (NP *2s*-1-2))\n" + "(S (NN 0) (NN *))\n" * 999,
                [],
                r"like traces: .*\*2s",
            ),
            ("(S (CODE x) (NN a))\n" * 9, [], r"CODE in many.*drop_labels: \[META, lemma, "),
            ("(S (NN a) (ID f,.1))\n" * 9, ["--format", "ptb"], "ID in every tree"),
            ("(S (PRO Það-það) (BEDI var-vera))\n" * 9, [], r"word-lemma: .*\(format: icepahc\)"),
            (
                "(S (NN caf\u00c3\u00a9))\n" * 9,
                [],
                r"wrongly decoded: .*\(encoding: the file's own\)",
            ),
            ("(S (NN a) (. .))\n(S (. .))\n" * 9, ["--punctuation", "ptb"], "9 of 18 sentences"),
            ("(S (NN a) (NC b) (NC c))\n" * 9, ["--punctuation", "ptb"], "punctuation: keep"),
        ],
    )
    def test_what_looks_wrong_is_a_line(
        self, attree, tmp_path: Path, text: str, options: list[str], warning: str
    ) -> None:
        (tmp_path / "a.ptb").write_text(text, encoding="utf-8")
        done = attree("a.ptb", "--check", *options)
        found = [line for line in done.err.splitlines() if line.startswith("warning: ")]
        assert any(re.search(warning, line) for line in found), done.err
        assert "warning" in done.out

    def test_nothing_is_wrong_with_a_good_treebank(self, attree, tmp_path: Path) -> None:
        (tmp_path / "a.mrg").write_text(TREE * 3)
        assert "warning" not in attree("a.mrg", "--check").err

    def test_settings_that_are_not_the_usual_ones_are_told(self, attree, tmp_path: Path) -> None:
        (tmp_path / "a.mrg").write_text(TREE * 3)
        usual, chosen = (
            " ".join(attree("a.mrg", "--check", *more).out.partition("files")[0].split())
            for more in ([], ["--functions", "keep", "--final-punctuation", "inside"])
        )
        punctuation = "punctuation ptb"
        more = f"{punctuation}, final_punctuation inside, functions keep"
        assert punctuation in usual and chosen == usual.replace(punctuation, more, 1)

    def test_thirty_labels_and_failures_first(self, attree, tmp_path: Path) -> None:
        trees = "".join(f"(S (L{i} (A{i} a) (B b)))\n" for i in range(40))
        (tmp_path / "a.ptb").write_text(trees + "(S (A a)\n" * 3)
        out = attree("a.ptb", "--check").out
        assert out.index("failed") < out.index("labels")
        assert "… 11 more" in " ".join(out.split())
        assert out.count(" L") <= 30


class TestDiscovery:
    def test_each_gap_is_a_line(self, tmp_path: Path) -> None:
        folder = tmp_path / "klingon"
        folder.mkdir()
        for name in ("test.mrg", "valid.mrg", "other.ptb"):
            (folder / name).write_text(TREE)
        (tmp_path / "loose.mrg").write_text(TREE)
        first, second = discover([tmp_path]).warnings
        assert first.startswith(f"{tmp_path}: loose.mrg is in no language's folder")
        assert "klingon: other.ptb, valid.mrg are in no split" in second
        (folder / "language.yaml").write_text("splits: {dev: gone.mrg, test: {files: test.mrg}}")
        _, absent, unused = discover([tmp_path]).warnings
        assert absent == "language klingon, split dev: no file matches gone.mrg"
        assert "valid.mrg is in no split" in unused
        (folder / "language.yaml").write_text(
            "splits: {test: {files: '*.mrg', exclude: valid.mrg}}"
        )
        assert len(discover([tmp_path]).warnings) == 1
