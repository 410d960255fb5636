"""Every family against `transformers`' own attention and states, in padded batches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import AutoModel, AutoTokenizer

from attree.encoder import attention
from attree.encoder.bert import Bert, _mixed
from attree.encoder.device import settle_dtype
from attree.encoder.load import Encoder, load_encoder
from attree.encoder.low_rank import adapt
from attree.encoder.packed import rounded
from attree.encoder.pieces import Pieces, pad
from attree.encoder.source import resolve
from attree.encoder.weights import layers_of, read_model
from tests.encoder.checkpoints import FAMILIES, QUANTISED, TEXT, UNKNOWN, at, edit, save
from tests.refusals import refused

SENTENCES = [line.split() for line in TEXT] + [["a"]]


@pytest.fixture(scope="module", params=sorted(FAMILIES | UNKNOWN))
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    save(request.param, folder)
    return folder


@pytest.fixture(scope="module")
def encoder(checkpoint: Path) -> Encoder:
    return load_encoder(resolve(at(checkpoint)), device="cpu")


@pytest.fixture(scope="module")
def reference(checkpoint: Path) -> torch.nn.Module:
    model = AutoModel.from_pretrained(checkpoint, attn_implementation="eager")
    return model.eval()


def naive_words(attention: np.ndarray, pieces: Pieces) -> np.ndarray:
    """To a word the sum over its pieces, from a word the mean, one cell at a time."""
    found = np.zeros((len(attention), pieces.n_words, pieces.n_words))
    for i in range(pieces.n_words):
        for j in range(pieces.n_words):
            rows, columns = np.where(pieces.word_of == i)[0], np.where(pieces.word_of == j)[0]
            for row in rows:
                for column in columns:
                    found[:, i, j] += attention[:, row, column] / len(rows)
    return found


def padded(encoder: Encoder, batch: list[Pieces]) -> dict[str, torch.Tensor]:
    longest = max(len(pieces.ids) for pieces in batch)
    ids = torch.full((len(batch), longest), encoder.pad_id)
    mask = torch.zeros_like(ids)
    for row, pieces in enumerate(batch):
        ids[row, : len(pieces.ids)] = torch.from_numpy(pieces.ids).long()
        mask[row, : len(pieces.ids)] = 1
    return {"input_ids": ids, "attention_mask": mask}


def test_pieces_are_those_of_the_fast_tokeniser(checkpoint: Path, encoder: Encoder) -> None:
    # Families that mark the space before a word need to be told that pre-split words have one.
    tokeniser = AutoTokenizer.from_pretrained(checkpoint, add_prefix_space=True)
    if "ByteLevel" in str(tokeniser.backend_tokenizer.pre_tokenizer):
        tokeniser.backend_tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=True)
    encoded = tokeniser(SENTENCES, is_split_into_words=True)
    for row, pieces in enumerate(encoder.tokenise(SENTENCES)):
        assert pieces.ids.tolist() == encoded["input_ids"][row]
        words = [-1 if word is None else word for word in encoded.word_ids(row)]
        assert pieces.word_of.tolist() == words
        assert not pieces.too_long


def test_attention_and_states_equal_those_of_transformers(
    encoder: Encoder, reference: torch.nn.Module
) -> None:
    batch = encoder.tokenise(SENTENCES)
    heads = [(layer, head) for layer in range(3) for head in range(4)]
    ours = encoder.run(batch, heads=heads, states=range(4))
    with torch.inference_mode():
        theirs = reference(
            **padded(encoder, batch), output_attentions=True, output_hidden_states=True
        )
    attentions = torch.cat(theirs.attentions, dim=1).numpy()
    for row, pieces in enumerate(batch):
        n, there = pieces.n_words, len(pieces.ids)
        expected = naive_words(attentions[row], pieces)
        np.testing.assert_allclose(ours.attention[row, :, :n, :n], expected, atol=2e-6)
        assert not ours.attention[row, :, n:].any() and not ours.attention[row, :, :, n:].any()
        for layer in range(4):
            expected_state = theirs.hidden_states[layer][row, :there]
            torch.testing.assert_close(
                ours.states[layer][row, :there], expected_state, atol=2e-5, rtol=1e-4
            )
    # of a random encoder a single head may be nearly uniform
    heads_of_first = ours.attention[0, :, :4, :4].reshape(len(heads), -1)
    spread = heads_of_first.amax(dim=1) - heads_of_first.amin(dim=1)
    assert float(spread.max()) > 0.05, "the check would pass on uniform attention"


@pytest.mark.parametrize("family", sorted(QUANTISED))
def test_an_encoder_without_layers_and_tables_of_torch_is_read(family: str, tmp_path: Path) -> None:
    save(family, tmp_path)
    encoder = load_encoder(resolve(at(tmp_path)), device="cpu")
    reference = AutoModel.from_pretrained(tmp_path, attn_implementation="eager").eval()
    batch = encoder.tokenise(SENTENCES)
    with torch.inference_mode():
        theirs = reference(**padded(encoder, batch), output_attentions=True)
    ours = encoder.run(batch, heads=[(1, 2)]).attention
    for row, pieces in enumerate(batch):
        expected = naive_words(theirs.attentions[1][row, 2:3].numpy(), pieces)
        n = pieces.n_words
        np.testing.assert_allclose(ours[row, :, :n, :n], expected, atol=2e-6)


def test_some_heads_in_any_order_equal_all_heads(encoder: Encoder) -> None:
    batch = encoder.tokenise(SENTENCES)
    every = [(layer, head) for layer in range(3) for head in range(4)]
    complete = encoder.run(batch, heads=every, states=[3])
    chosen = [(2, 1), (0, 3), (2, 0), (0, 3)]
    some = encoder.run(batch, heads=chosen, states=[1])
    for place, head in enumerate(chosen):
        expected = complete.attention[:, every.index(head)]
        torch.testing.assert_close(some.attention[:, place], expected, atol=2e-6, rtol=1e-5)
    assert list(some.states) == [1]


def test_batched_equals_one_by_one(encoder: Encoder) -> None:
    batch = encoder.tokenise(SENTENCES)
    heads = [(1, 2), (2, 3)]
    together = encoder.run(batch, heads=heads).attention
    for row, pieces in enumerate(batch):
        alone = encoder.run([pieces], heads=heads).attention[0]
        n = pieces.n_words
        torch.testing.assert_close(together[row, :, :n, :n], alone, atol=2e-6, rtol=1e-5)


def test_the_pass_ends_at_the_highest_layer_wanted(encoder: Encoder) -> None:
    ran: list[int] = []
    handles = [
        layer.register_forward_hook(lambda *_, number=number: ran.append(number))
        for number, layer in enumerate(encoder.layers)
    ]
    batch = encoder.tokenise(SENTENCES[:2])
    try:
        for wanted, ended in (
            ({"heads": [(1, 0)]}, [0]),
            ({"heads": [(0, 0), (0, 1), (0, 2), (0, 3)]}, []),
            ({"states": [0]}, []),
            ({"states": [1]}, [0]),
            ({"states": [2], "heads": [(0, 0)]}, [0, 1]),
            ({"states": [1], "heads": [(2, 0)]}, [0, 1]),
            ({"states": [3]}, [0, 1, 2]),
        ):
            ran.clear()
            encoder.run(batch, **wanted)
            assert ran == ended, wanted
    finally:
        for handle in handles:
            handle.remove()


# Positions stand between the others' projections and their scores.
@pytest.mark.parametrize(
    "family", sorted((FAMILIES | UNKNOWN).keys() - {"modernbert", "mpnet", "deberta-v2"})
)
def test_query_and_key_make_the_scores(family: str, tmp_path: Path) -> None:
    encoder = load_encoder(resolve(save(family, tmp_path)), device="cpu")
    batch = encoder.tokenise([SENTENCES[0]])
    output = encoder.run(batch, heads=[(1, 2)], states=[1])
    W_q, b_q, W_k, b_k = encoder.query_key(1)
    assert W_q.shape == (32, 32) and b_k.shape == (32,)
    rows = slice(2 * 8, 3 * 8)
    states = output.states[1][0]
    query, key = states @ W_q[rows].T + b_q[rows], states @ W_k[rows].T + b_k[rows]
    attention = torch.softmax(query @ key.T / 8**0.5, dim=-1)[None].numpy()
    expected = naive_words(attention, batch[0])
    np.testing.assert_allclose(output.attention[0], expected, atol=2e-6)


def test_query_and_key_of_the_fused_projection(tmp_path: Path) -> None:
    encoder = load_encoder(resolve(save("modernbert", tmp_path)), device="cpu")
    fused = encoder.layers[2].attn.Wqkv.weight
    W_q, b_q, W_k, _ = encoder.query_key(3)
    assert torch.equal(W_q, fused[:32]) and torch.equal(W_k, fused[32:64]) and not b_q.any()


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch without oneDNN")
def test_linear_parts_are_packed_and_keep_their_weights(
    encoder: Encoder, reference: torch.nn.Module
) -> None:
    kept = {
        name: part for name, part in reference.named_modules() if isinstance(part, torch.nn.Linear)
    }
    packed = [name for name in kept if any(part.isdigit() for part in name.split("."))]
    assert packed
    for name in packed:
        part = encoder.model.get_submodule(name)
        assert type(part) is not torch.nn.Linear
        assert torch.equal(part.weight, kept[name].weight)


def test_a_model_that_takes_padding_for_words_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MPNet adds a mask of truth values to its scores, where our function's kind is asked for."""
    source = save("mpnet", tmp_path)
    load_encoder(resolve(source), device="cpu")
    first = iter([True])  # when it is loaded; then its attention is taken from its dropout
    monkeypatch.setattr("attree.encoder.attention.has_interface", lambda _: next(first, False))
    with refused("unknown-family") as caught:
        load_encoder(resolve(source), device="cpu")
    assert "\n" not in str(caught.value)


def test_a_model_that_does_not_show_its_attention_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = save("mpnet", tmp_path)
    monkeypatch.setattr("attree.encoder.attention._Dropout.__torch_function__", _call)
    with refused("incomplete-output"):
        load_encoder(resolve(source), device="cpu")


def _call(_: Any, function: Any, types: Any, inputs: Any = (), named: Any = None) -> Any:
    return function(*inputs, **(named or {}))


@pytest.mark.parametrize(
    ("family", "says"),
    [("gpt2", "unknown-family gpt2"), ("t5", "no-attention"), ("albert", "unknown-family 3")],
)
def test_models_that_are_no_such_encoders_are_refused(
    family: str, says: str, tmp_path: Path
) -> None:
    with refused(*says.split()) as caught:
        load_encoder(resolve(save(family, tmp_path)), device="cpu")
    assert "\n" not in str(caught.value)


def test_bfloat16_is_near_and_word_level_attention_stays_float32(checkpoint: Path) -> None:
    exact, coarse = (
        load_encoder(resolve(at(checkpoint, dtype)), device="cpu")
        for dtype in ("float32", "bfloat16")
    )
    batch = exact.tokenise(SENTENCES)
    outputs = [one.run(batch, heads=[(0, 1), (0, 2)], states=[1]) for one in (exact, coarse)]
    assert outputs[1].attention.dtype == torch.float32
    assert outputs[1].states[1].dtype == torch.bfloat16
    difference = (outputs[0].attention - outputs[1].attention).abs()
    assert 0 < float(difference.max()) < 0.2 and float(difference.mean()) < 0.01


def test_encoders_in_the_shape_of_bert_are_our_own(checkpoint: Path, encoder: Encoder) -> None:
    ours = {"bert", "roberta", "xlm-roberta", "camembert"}
    assert isinstance(encoder.model, Bert) == (encoder.family in ours), checkpoint


def test_bfloat16_is_as_near_to_float32_as_that_of_transformers(checkpoint: Path) -> None:
    exact, ours = (
        load_encoder(resolve(at(checkpoint, dtype)), device="cpu")
        for dtype in ("float32", "bfloat16")
    )
    theirs = AutoModel.from_pretrained(checkpoint, dtype=torch.bfloat16).eval()
    batch = exact.tokenise(SENTENCES)
    right, found = (one.run(batch, states=range(4)).states for one in (exact, ours))
    with torch.inference_mode():
        states = theirs(**padded(exact, batch), output_hidden_states=True).hidden_states
    there = padded(exact, batch)["attention_mask"].bool()
    for layer in range(4):
        sides = found[layer], states[layer]
        apart = [float((side - right[layer])[there].norm()) for side in sides]
        assert apart[0] < 1.3 * apart[1]


@pytest.mark.parametrize("padding", [False, True])
def test_keys_added_to_whole_vectors_count_for_nothing(padding: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    for length in range(1, 50):
        parts = torch.randn(3, 2, 4, length, 8, generator=generator).bfloat16()
        kept = torch.ones(2, 1, 1, length, dtype=torch.bool)
        kept[1, ..., length // 2 + 1 :] = False
        mask = kept if padding else None
        query, key, value = parts.double()
        scores = query @ key.transpose(2, 3) / 8**0.5
        scores = scores.masked_fill(~kept, -torch.inf) if padding else scores
        apart = (_mixed(*parts, mask).double() - scores.softmax(-1) @ value).norm()
        usual = torch.nn.functional.scaled_dot_product_attention(*parts, mask)
        assert apart <= 1.3 * (usual.double() - scores.softmax(-1) @ value).norm()
        torch.testing.assert_close(
            _mixed(*parts.float(), mask),
            torch.nn.functional.scaled_dot_product_attention(*parts.float(), mask),
            atol=0,
            rtol=0,
        )


def test_a_torch_without_packed_products_computes_the_same(
    checkpoint: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as without:
        without.setattr("attree.encoder.packed._onednn", lambda name: None)
        plain = load_encoder(resolve(at(checkpoint)), device="cpu")
    assert any(type(part) is torch.nn.Linear for part in plain.layers.modules())
    batch = encoder.tokenise(SENTENCES)
    wanted: Any = {"heads": [(2, 1)], "states": [0, 3]}
    packed, other = encoder.run(batch, **wanted), plain.run(batch, **wanted)
    torch.testing.assert_close(packed.attention, other.attention, atol=2e-6, rtol=1e-5)
    for row, pieces in enumerate(batch):
        for layer in (0, 3):
            pair = [one.states[layer][row, : len(pieces.ids)] for one in (packed, other)]
            torch.testing.assert_close(*pair, atol=2e-5, rtol=1e-4)


def test_rows_of_products_are_rounded_up_to_a_few_numbers() -> None:
    sizes = [rounded(rows) for rows in range(1, 1025)]
    assert all(rows <= size <= rows + max(7, rows / 8) for rows, size in enumerate(sizes, 1))
    assert sizes == sorted(sizes) and sizes[-1] == 1024 and len(set(sizes)) <= 45


@pytest.mark.parametrize("family", ["bert", "xlm-roberta"])
def test_rounded_rows_change_neither_states_nor_gradients(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = save(family, tmp_path)
    encoder = load_encoder(resolve(source), device="cpu")
    batch = pad(encoder.tokenise(SENTENCES), encoder.pad_id)
    found = []
    for rule in (rounded, lambda rows: rows, lambda rows: rows + 5):
        monkeypatch.setattr("attree.encoder.bert.rounded", rule)
        model = read_model(tmp_path, torch.float32, torch.device("cpu"))
        attention.watch(layers := layers_of(model, 3, tmp_path))
        parts = adapt(layers, 3, 2, seed=0)
        states = attention.forward(model, batch, 3, 4, heads={}, states=[3])[3]
        (states * batch.mask[..., None]).square().sum().backward()
        found.append([states.detach(), *(part.b.grad for part in parts.values())])
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            torch.testing.assert_close(one, same, atol=1e-3, rtol=1e-3)
    assert all(bool(one.abs().max() > 0) for one in found[0])


@pytest.mark.parametrize("changes", [{"hidden_act": "relu"}, {"layer_norm_eps": None}])
def test_what_our_own_forward_does_not_know_goes_through_transformers(
    changes: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    save("bert", tmp_path)
    edit(tmp_path, **changes)
    monkeypatch.setenv("ATTREE_DEBUG", "1")
    encoder = load_encoder(resolve(at(tmp_path)), device="cpu")
    assert "transformers runs the encoder" in capsys.readouterr().err
    assert not isinstance(encoder.model, Bert)
    reference = AutoModel.from_pretrained(tmp_path).eval()
    batch = encoder.tokenise(SENTENCES[:1])
    with torch.inference_mode():
        expected = reference(**padded(encoder, batch)).last_hidden_state
    found = encoder.run(batch, states=[3]).states[3]
    torch.testing.assert_close(found, expected, atol=2e-5, rtol=1e-4)


def test_gradients_of_our_own_forward_are_those_of_transformers(tmp_path: Path) -> None:
    encoder = load_encoder(resolve(save("xlm-roberta", tmp_path)), device="cpu")
    batch = padded(encoder, encoder.tokenise(SENTENCES))
    name, grads = "encoder.layer.1.attention.self.key.weight", []
    for model in (read_model(tmp_path, torch.float32, torch.device("cpu")), None):
        chosen = AutoModel.from_pretrained(tmp_path).eval() if model is None else model
        weight = chosen.get_parameter(name).requires_grad_(True)
        states = chosen(**batch).last_hidden_state * batch["attention_mask"][..., None]
        grads.append(torch.autograd.grad(states.cos().sum(), weight)[0])
    torch.testing.assert_close(*grads, atol=1e-3, rtol=1e-3)


def test_neither_an_encoder_of_our_own_nor_its_tokeniser_imports_transformers(
    tmp_path: Path,
) -> None:
    save("xlm-roberta", tmp_path)
    program = (
        "import sys; from attree.encoder.load import load_encoder; "
        "from attree.encoder.source import find_encoder; "
        "load_encoder(find_encoder(sys.argv[1]), device='cpu').tokenise([['a']]); "
        "print('transformers' in sys.modules)"
    )
    done = [sys.executable, "-c", program, str(tmp_path)]
    assert subprocess.run(done, capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_long_table_of_embeddings_is_rounded_row_by_row(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = at(checkpoint, "bfloat16")
    outputs = []
    for length in (100_000, 100):
        monkeypatch.setattr("attree.encoder.weights._LONG_TABLE", length)
        encoder = load_encoder(resolve(source), device="cpu")
        outputs.append(encoder.run(encoder.tokenise(SENTENCES), heads=[(0, 1)], states=[0, 3]))
    whole, rows = outputs
    assert torch.equal(whole.attention, rows.attention)
    assert all(torch.equal(whole.states[at], rows.states[at]) for at in (0, 3))


def test_auto_is_settled_once_for_every_worker(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = resolve(at(checkpoint, "auto"))
    for able, here in ((True, "bfloat16"), (False, "float32")):
        monkeypatch.setattr("torch.cpu.get_capabilities", lambda able=able: {"amx_bf16": able})
        assert settle_dtype(encoder, "cpu").dtype == here
        assert settle_dtype(encoder, None, elsewhere=True).dtype == here
        # a machine without a GPU may start workers that have some
        assert settle_dtype(encoder, "cuda", elsewhere=True).dtype == "bfloat16"
    plain = resolve(at(checkpoint))
    assert settle_dtype(plain, "cuda", elsewhere=True).dtype == plain.dtype == "float32"
