"""What a checkpoint may not do: decide on attention, hold NaN, name files, hang, take memory."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from attree.base.errors import AttreeError
from attree.encoder import attention
from attree.encoder.checkpoint import INDEX
from attree.encoder.load import Encoder, choose_device, load_encoder
from attree.encoder.source import EncoderSource, ResolvedEncoder, resolve
from tests.attacks.harness import edited
from tests.attacks.rows_encoders import DESCRIPTION, RANGES
from tests.encoder.checkpoints import at, edit, save
from tests.refusals import refused

WORDS = [["the", "old", "man"], ["a", "cat", "chased", "the", "mice"], ["walked", "home"]]
EVERY = [(layer, head) for layer in range(3) for head in range(4)]


def attention_of(folder: Path) -> torch.Tensor:
    encoder = load_encoder(resolve(at(folder)), device="cpu")
    return encoder.run(encoder.tokenise(WORDS), heads=EVERY).attention


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
@pytest.mark.parametrize("value", ["sdpa", "eager", "flash_attention_2"])
def test_attention_is_ours_whatever_the_configuration_says(
    key: str, value: str, bert: Path, checkpoint: Path
) -> None:
    edit(checkpoint, **{key: value})
    torch.testing.assert_close(attention_of(checkpoint), attention_of(bert), rtol=0, atol=0)


@pytest.mark.parametrize("key", ["attn_implementation", "_attn_implementation"])
@pytest.mark.parametrize("value", ["someone/kernel", "someone/kernel@main:f", "paged|sdpa", ""])
def test_attention_from_elsewhere_is_refused(key: str, value: str, checkpoint: Path) -> None:
    edit(checkpoint, **{key: value})
    with refused("unknown-attention", key, file="config.json"):
        resolve(at(checkpoint))


def test_options_of_the_output_change_nothing(bert: Path, checkpoint: Path) -> None:
    edit(checkpoint, return_dict=False, output_attentions=True, output_hidden_states=True)
    encoder = load_encoder(resolve(at(checkpoint)), device="cpu")
    output = encoder.run(encoder.tokenise(WORDS), heads=EVERY, states=[3])
    torch.testing.assert_close(output.attention, attention_of(bert), rtol=0, atol=0)


@pytest.mark.parametrize("missing", [{"heads": [(1, 0)]}, {"states": [3]}, {"states": [0]}])
def test_a_model_that_passes_ours_by_is_refused_and_unwritten_memory_never_read(
    missing: dict[str, Any], bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(resolve(at(bert)), device="cpu")

    class Nothing(torch.nn.Module):
        def forward(self, **_: Any) -> Any:
            raise attention._Enough

    monkeypatch.setattr(encoder, "model", Nothing())
    with refused("incomplete-output"):
        encoder.run(encoder.tokenise(WORDS), **missing)


def spoil(folder: Path, value: float, name: str = "encoder.layer.1.attention.self.query") -> None:
    file = folder / "model.safetensors"
    weights = {key: tensor.clone() for key, tensor in load_file(file).items()}
    weights[f"{name}.weight"][3, 5] = value
    save_file(weights, file, metadata={"format": "pt"})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_refused_once(value: float, checkpoint: Path) -> None:
    spoil(checkpoint, value)
    with refused("not-finite", "encoder.layer.1", file="checkpoint"):
        load_encoder(resolve(at(checkpoint)), device="cpu")


def test_huge_finite_weights_load(checkpoint: Path) -> None:
    spoil(checkpoint, 3e38)
    load_encoder(resolve(at(checkpoint)), device="cpu")


@pytest.mark.parametrize("wanted", [{"heads": EVERY}, {"heads": [(2, 1)]}, {"states": [2, 3]}])
def test_a_batch_says_which_sentences_are_finite(wanted: dict[str, Any], bert: Path) -> None:
    encoder = load_encoder(resolve(at(bert)), device="cpu")
    pieces = encoder.tokenise(WORDS)
    assert encoder.run(pieces, **wanted).finite.tolist() == [True, True, True]
    (cat,) = set(pieces[1].ids[pieces[1].word_of == 1]) - {int(i) for i in pieces[0].ids}
    broken = encoder.model.get_input_embeddings().weight.data  # type: ignore[operator,union-attr]
    broken[int(cat)] = float("nan")
    assert encoder.run(pieces, **wanted).finite.tolist() == [True, False, True]


def link(target: str) -> Callable[[Path], None]:
    def make(file: Path) -> None:
        file.symlink_to(target)

    return make


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.mkdir, "not-regular folder"),
        (link("nowhere"), "missing-file link"),
        (os.mkfifo, "not-regular pipe"),
        (link("/dev/zero"), "not-regular pipe"),
        (link("model.safetensors"), "unreadable"),
    ],
)
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_what_is_no_regular_file(
    name: str, make: Callable[[Path], None], message: str, checkpoint: Path
) -> None:
    if name == "tokenizer.json" and message == "unreadable":
        pytest.skip("a loop of its own name only")
    (checkpoint / name).unlink()
    make(checkpoint / name)
    with refused(*message.split(), file=name):
        resolve(at(checkpoint))


def shard(folder: Path, **named: str) -> None:
    """Split the weights into two files and an index; ``named`` overrides where weights lie."""
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(weights)
    halves = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
    for file, some in halves.items():
        part = {name: weights[name].contiguous() for name in some}
        save_file(part, folder / file, metadata={"format": "pt"})
    where = {name: file for file, some in halves.items() for name in some}
    index = {"metadata": {"total_size": 1}, "weight_map": where | named}
    (folder / INDEX).write_text(json.dumps(index))


def test_weights_in_shards_are_those_of_one_file(bert: Path, checkpoint: Path) -> None:
    shard(checkpoint)
    torch.testing.assert_close(attention_of(checkpoint), attention_of(bert), rtol=0, atol=0)


def test_every_file_that_is_read_is_in_the_fingerprint(checkpoint: Path) -> None:
    shard(checkpoint)
    found = resolve(at(checkpoint))
    assert {"model-1.safetensors", "model-2.safetensors", INDEX} <= set(found.stamps)
    with (checkpoint / "model-2.safetensors").open("ab") as handle:
        handle.write(b" ")
    with refused("encoder-changed", file="checkpoint"):
        load_encoder(found, device="cpu")


def test_nothing_outside_the_fingerprint_is_read(bert: Path, checkpoint: Path) -> None:
    before = resolve(at(checkpoint))
    for name in ("adapter_config.json", "generation_config.json", "chat_template.jinja",
                 "preprocessor_config.json", "spiece.model", "modeling_x.py"):  # fmt: skip
        (checkpoint / name).write_text("{")
    assert resolve(at(checkpoint)) == before
    torch.testing.assert_close(attention_of(checkpoint), attention_of(bert), rtol=0, atol=0)


_ELSEWHERE = ["evil.bin", "../evil.safetensors", "/etc/evil.safetensors", "a/b.safetensors"]


@pytest.mark.parametrize(
    ("name", "code", "file"),
    [
        *((name, "bad-index", INDEX) for name in (*_ELSEWHERE, "x.pt", "")),
        ("model-3.safetensors", "missing-file", "model-3.safetensors"),
    ],
)
def test_an_index_names_safetensors_of_its_folder_only(
    name: str, code: str, file: str, checkpoint: Path
) -> None:
    (checkpoint / "evil.bin").write_bytes(b"cos\nsystem\n")
    shard(checkpoint, **{"embeddings.word_embeddings.weight": name})
    with refused(code, file=file):
        resolve(at(checkpoint))


@pytest.mark.parametrize("name", RANGES)
def test_a_configuration_has_types_and_ranges(name: str, checkpoint: Path) -> None:
    changes, message = RANGES[name]
    edited("config.json", **changes)(checkpoint / "config.json", checkpoint)
    with refused(*message.split(), file="config.json") as caught:
        resolve(at(checkpoint))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", INDEX])
@pytest.mark.parametrize(
    "text",
    ['"lots"', "[]", "null", "1e999", "[" * 200_000, '{"a":' * 200_000, "", "\0"],
    ids=lambda text: text[:5],
)
def test_descriptions_that_are_none(name: str, text: str, checkpoint: Path) -> None:
    if name == INDEX:
        shard(checkpoint)
    (checkpoint / name).write_text(text)
    with pytest.raises(AttreeError) as caught:
        resolve(at(checkpoint))
    assert caught.value.file == checkpoint / name
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


@pytest.mark.parametrize("text", ["{}", "[]", "{", '{"version":"1.0","model":{"type":"Evil"}}'])
def test_a_tokeniser_that_is_none(text: str, checkpoint: Path) -> None:
    (checkpoint / "tokenizer.json").write_text(text)
    with refused("unloadable", file="checkpoint") as caught:
        load_encoder(resolve(at(checkpoint)), device="cpu")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", DESCRIPTION)
def test_a_description_that_does_not_fit(name: str, checkpoint: Path, tmp_path: Path) -> None:
    changes, message = DESCRIPTION[name]
    resolve(at(checkpoint)).write(tmp_path / "x.json")
    edited("x.json", **changes)(tmp_path / "x.json", tmp_path)
    with refused(*message.split()):
        load_encoder(ResolvedEncoder.read(tmp_path / "x.json"), device="cpu")


def test_a_package_s_parents_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "canary").mkdir()
    (tmp_path / "canary/__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("canary.model", "", ".", "__main__", "a b"):
        with refused("not-installed"):
            resolve(EncoderSource("x", "package", name))
    assert "canary" not in sys.modules


_NO_DEVICES = ["evil", "cuda:", "cuda:1x", "meta", "cpu\n", "", "cuda:9999"]


@pytest.mark.parametrize(
    ("name", "code"),
    [*((name, "unknown-device") for name in _NO_DEVICES), ("cuda:99", "no-device")],
)
def test_devices_by_name(name: str, code: str) -> None:
    with refused(code):
        choose_device(name)
    assert choose_device("cpu") == torch.device("cpu")


def test_positions_begin_after_the_padding(tmp_path: Path) -> None:
    edit(Path(save("roberta", tmp_path).id), pad_token_id=10)
    found = resolve(at(tmp_path))
    assert found.max_pieces == 64 - 11
    encoder: Encoder = load_encoder(found, device="cpu")
    longest = [["a"] * 51]
    assert not encoder.tokenise(longest)[0].too_long
    assert encoder.run(encoder.tokenise(longest), heads=[(0, 0)]).finite.tolist() == [True]
