"""Language-model heads, sequences, masks and checkpoints, against what they are defined to be."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoModel

from attree.encoder.masked_lm import Masking, last_checkpoint, load_for_masking, only, sequences
from tests.encoder import checkpoints
from tests.encoder.checkpoints import headed, headless
from tests.refusals import refused

FAMILIES = sorted(checkpoints.FAMILIES | checkpoints.UNKNOWN)
TOKENISER = checkpoints.FAMILIES["bert"][1]()
CLS, SEP = TOKENISER.cls_token_id, TOKENISER.sep_token_id


def plain(line: str) -> list[int]:
    return list(TOKENISER(line, add_special_tokens=False)["input_ids"])


def is_tied(model: torch.nn.Module) -> bool:
    return model.get_output_embeddings().weight is model.get_input_embeddings().weight


@pytest.mark.parametrize("family", FAMILIES)
def test_a_head_that_is_there_is_kept(family: str, tmp_path: Path) -> None:
    headed(family, tmp_path)
    one, new = load_for_masking(tmp_path, seed=0)
    other, _ = load_for_masking(tmp_path, seed=1)
    assert not new
    assert is_tied(one)
    for (name, a), (_, b) in zip(one.named_parameters(), other.named_parameters(), strict=True):
        assert torch.equal(a, b), name


@pytest.mark.parametrize("family", FAMILIES)
def test_a_new_head_is_tied_and_drawn_by_the_seed(family: str, tmp_path: Path) -> None:
    headless(family, tmp_path)
    models = []
    for seed in (0, 0, 1):
        model, new = load_for_masking(tmp_path, seed=seed)
        assert new
        assert is_tied(model)
        models.append(torch.cat([p.flatten() for p in model.parameters()]))
    assert torch.equal(models[0], models[1])
    assert not torch.equal(models[0], models[2])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_of_masked_pieces_is_the_model_s_own(family: str, tmp_path: Path) -> None:
    headed(family, tmp_path)
    model, _ = load_for_masking(tmp_path, seed=0)
    model.eval()
    ids = torch.randint(10, 200, (3, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[0, 5:] = 0
    labels = torch.where((ids % 3 == 0) & (mask == 1), ids, -100)
    there = labels >= 0
    with torch.no_grad():
        whole = model(input_ids=ids, attention_mask=mask, labels=labels)
        with only(model, there):
            found = model(input_ids=ids, attention_mask=mask, labels=labels[there])
    assert found.logits.shape == (int(there.sum()), checkpoints.VOCABULARY)
    assert found.loss.item() == pytest.approx(whole.loss.item(), rel=1e-5)
    assert torch.allclose(found.logits, whole.logits[there], atol=1e-4)
    with torch.no_grad():
        assert model(input_ids=ids).logits.shape == whole.logits.shape


def test_an_untied_checkpoint_without_head_gets_a_tied_one(tmp_path: Path) -> None:
    headless("bert", tmp_path)
    checkpoints.edit(tmp_path, tie_word_embeddings=False)
    model, new = load_for_masking(tmp_path, seed=0)
    assert new and is_tied(model)


def test_families_without_masked_lm_are_refused(tmp_path: Path) -> None:
    checkpoints.save("gpt2", tmp_path)
    with refused("no-masked-lm", "gpt2"):
        load_for_masking(tmp_path, seed=0)


def test_checkpoints_cut_short(tmp_path: Path) -> None:
    headless("bert", tmp_path)
    weights = tmp_path / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with refused("unloadable"):
        load_for_masking(tmp_path, seed=0)


def test_a_checkpoint_that_lacks_a_layer(tmp_path: Path) -> None:
    headless("bert", tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    state = {k: v for k, v in model.state_dict().items() if "encoder.layer.2" not in k}
    model.save_pretrained(tmp_path, state_dict=state)
    with refused("lacking-weights"):
        load_for_masking(tmp_path, seed=0)


def test_a_line_is_a_sequence_and_a_long_one_several() -> None:
    long, short = " ".join(checkpoints.TEXT[:2]), "the old man"
    found = [one["input_ids"].tolist() for one in sequences([short, long], TOKENISER, length=12)]
    assert found[0] == [CLS, *plain(short), SEP]
    assert all(len(one) == 12 for one in found[1:-1])
    assert all(3 <= len(one) <= 12 and (one[0], one[-1]) == (CLS, SEP) for one in found)
    assert [piece for one in found for piece in one[1:-1]] == plain(short) + plain(long)


def test_text_that_spells_a_special_piece_is_text() -> None:
    (only,) = sequences(["the [MASK] walked"], TOKENISER, length=30)
    assert TOKENISER.mask_token_id not in only["input_ids"]
    assert only["input_ids"].tolist().count(SEP) == 1


def test_lines_with_nothing_to_mask_are_left_out() -> None:
    assert len(sequences(["", "漢字", " "], TOKENISER, length=30)) == 0


def test_a_tokeniser_without_mask_is_refused() -> None:
    tokeniser = checkpoints.FAMILIES["bert"][1]()
    tokeniser.mask_token = None
    with refused("no-mask-piece", "mask_token"):
        sequences(["one"], tokeniser, length=30)


def test_masking_is_bert_s() -> None:
    lines = [line for line in checkpoints.TEXT for _ in range(400)]
    batch = sequences(lines, TOKENISER, length=64)
    torch.manual_seed(0)
    masked = Masking(TOKENISER)(batch)
    ids = TOKENISER.pad(batch, return_tensors="pt")["input_ids"]
    special = torch.isin(ids, torch.tensor(TOKENISER.all_special_ids))
    chosen = masked["labels"] != -100
    assert not (chosen & special).any()
    assert torch.equal(masked["labels"][chosen], ids[chosen])
    inputs = masked["input_ids"]
    assert torch.equal(inputs[~chosen], ids[~chosen])
    share = chosen.sum() / (~special).sum()
    assert share.item() == pytest.approx(0.15, abs=0.01)
    for alike, share in ((TOKENISER.mask_token_id, 0.8), (ids, 0.1)):
        assert (inputs == alike)[chosen].float().mean() == pytest.approx(share, abs=0.02)


def test_a_piece_of_every_batch_is_masked() -> None:
    (short,) = sequences(["man"], TOKENISER, length=8)
    masking = Masking(TOKENISER)
    for seed in range(30):
        torch.manual_seed(seed)
        assert (masking([short])["labels"] != -100).any()


def test_a_checkpoint_without_its_state_is_removed(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path / "new") is None
    for step, state in ((5, "{}"), (10, "{}"), (15, '{"cut'), (20, None)):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if state is not None:
            (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(state)
    assert last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-10")
    left = sorted(path.name for path in tmp_path.glob("checkpoint*"))
    assert left == ["checkpoint-10", "checkpoint-5"]
