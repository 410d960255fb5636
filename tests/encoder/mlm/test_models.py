"""Language-model heads: found, new, tied, and the loss through them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModel, GPT2Config, GPT2Model

from attree.encoder.mlm.models import (
    freeze_encoder,
    is_tied,
    load_for_masking,
    masked_loss,
)
from attree.errors import AttreeError
from tests.encoder import checkpoints
from tests.encoder.mlm.conftest import headed, headless

FAMILIES = sorted(checkpoints.FAMILIES)


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
        decoder = model.get_output_embeddings().weight
        assert decoder.data_ptr() == model.get_input_embeddings().weight.data_ptr()
        models.append(torch.cat([p.flatten() for p in model.parameters()]))
    assert torch.equal(models[0], models[1])
    assert not torch.equal(models[0], models[2])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_is_the_model_s_own(family: str, tmp_path: Path) -> None:
    headed(family, tmp_path)
    model, _ = load_for_masking(tmp_path, seed=0)
    model.eval()
    ids = torch.randint(10, 200, (3, 9), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[0, 5:] = 0
    labels = torch.where((ids % 3 == 0) & (mask == 1), ids, -100)
    batch = {"input_ids": ids, "attention_mask": mask, "labels": labels}
    with torch.no_grad():
        expected = model(**batch).loss
        assert masked_loss(model, batch).item() == pytest.approx(expected.item(), rel=1e-5)
        total = masked_loss(model, batch, mean=False).item()
    assert total == pytest.approx(expected.item() * int((labels >= 0).sum()), rel=1e-5)


def test_an_untied_checkpoint_without_head_gets_a_tied_one(tmp_path: Path) -> None:
    headless("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": False}))
    model, new = load_for_masking(tmp_path, seed=0)
    assert new
    assert is_tied(model)


def test_freezing_leaves_the_head(tmp_path: Path) -> None:
    headless("bert", tmp_path)
    model, _ = load_for_masking(tmp_path, seed=0)
    freeze_encoder(model, True)
    trained = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert trained
    assert all(name.startswith("cls.") and "decoder.weight" not in name for name in trained)
    freeze_encoder(model, False)
    assert all(weight.requires_grad for weight in model.parameters())


def test_families_without_masked_lm_are_refused(tmp_path: Path) -> None:
    GPT2Model(GPT2Config(n_layer=1, n_head=2, n_embd=8, vocab_size=30)).save_pretrained(tmp_path)
    with pytest.raises(AttreeError, match="'gpt2' cannot be tuned"):
        load_for_masking(tmp_path, seed=0)


def test_checkpoints_cut_short(tmp_path: Path) -> None:
    headless("bert", tmp_path)
    weights = tmp_path / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AttreeError, match="cannot be loaded"):
        load_for_masking(tmp_path, seed=0)


def test_a_checkpoint_that_lacks_a_layer(tmp_path: Path) -> None:
    headless("bert", tmp_path)
    model = AutoModel.from_pretrained(tmp_path)
    state = {k: v for k, v in model.state_dict().items() if "encoder.layer.2" not in k}
    model.save_pretrained(tmp_path, state_dict=state)
    with pytest.raises(AttreeError, match=r"lacks \d+ of the encoder's weights"):
        load_for_masking(tmp_path, seed=0)
