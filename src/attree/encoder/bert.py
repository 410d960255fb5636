"""Encoders in the shape of BERT, computed by torch alone: ``transformers`` takes longer to import.

BERT (Devlin et al. 2019) and the families that differ from it only in where positions begin:
RoBERTa, XLM-RoBERTa, CamemBERT. Parts have the names that they have in ``transformers``, since
checkpoints and low-rank weights name them so.
"""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import torch
from msgspec import Meta
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from attree.encoder import attention
from attree.encoder.checkpoint import read_config, weight_files
from attree.encoder.packed import PackedLinear, lengthened, rounded

#: family → prefix of the names of its weights in a checkpoint with a head
_FAMILIES = {"bert": "bert", **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), "roberta")}
#: Weights that the encoder does not need: outside of these parts, and tables of numbers in them.
_PARTS = ("embeddings.", "encoder.")
_NUMBERS = ("embeddings.position_ids", "embeddings.token_type_ids")
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


class _Config(msgspec.Struct):
    """The sizes in ``config.json``; they have no defaults here, since families differ in theirs."""

    model_type: str
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: Annotated[int, Meta(ge=1)]
    layer_norm_eps: float
    hidden_act: str
    pad_token_id: int | None = None


class Output(NamedTuple):
    """Hidden states (batch, pieces, hidden) of the last layer."""

    last_hidden_state: Tensor


class Layer(nn.Module):
    """Self-attention, then two linear parts with GELU between them; each is added and normalised.

    Args:
        config: sizes.
    """

    def __init__(self, config: _Config) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.n_heads = config.num_attention_heads

        def after(size: int) -> nn.ModuleDict:
            norm = nn.LayerNorm(width, eps=config.layer_norm_eps)
            return nn.ModuleDict({"dense": nn.Linear(size, width), "LayerNorm": norm})

        query_key_value = {x: nn.Linear(width, width) for x in ("query", "key", "value")}
        parts = {"self": nn.ModuleDict(query_key_value), "output": after(width)}
        self.attention = nn.ModuleDict(parts)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, inner)})
        self.output = after(inner)

    def forward(self, states: Tensor, shape: torch.Size, mask: Tensor | None) -> Tensor:
        """Return the states of the next layer.

        Args:
            states: (rows, hidden), of all pieces; rows after these count for nothing.
            shape: (batch, pieces).
            mask: (batch, 1, 1, pieces) bool, False for padding; None without padding.
        """
        count = shape.numel()
        split = (*shape, self.n_heads, -1)
        parts: Any = self.attention["self"]
        query, key, value = (
            part(states)[:count].view(split).transpose(1, 2) for part in parts.values()
        )
        if (mixed := attention.capture(query, key, value, mask)) is None:
            if query.requires_grad and query.device.type == "cpu":
                # backwards in bfloat16 takes torch eight times as long there
                query, key, value = query.float(), key.float(), value.float()
            mixed = _mixed(query, key, value, mask)
        mixed = mixed.transpose(1, 2).reshape(count, -1).to(states.dtype)
        states = _added(self.attention["output"], lengthened(mixed, len(states)), states)
        inner = self.intermediate["dense"](states)
        inner = functional.gelu(inner) if inner.requires_grad else torch.ops.aten.gelu_(inner)
        return _added(self.output, inner, states)


def _mixed(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
    """Return ``softmax(q kᵀ / √size) v``, each of them (batch, heads, pieces, size).

    On a CPU, torch takes exponentials of 16 keys at once, and of the rest one at a time. So masked
    keys are added to a long rest: with 15 keys more than 16 or 32, that takes half of the time.
    float32 is left as it is: there it gains a twentieth, and rounds sums otherwise.
    """
    more = -key.shape[2] % 16
    if key.device.type == "cpu" and key.dtype != torch.float32 and 0 < more < 12:
        kept = key.new_ones((1, 1, 1, key.shape[2]), dtype=torch.bool) if mask is None else mask
        mask = functional.pad(kept, (0, more))
        key, value = (functional.pad(part, (0, 0, 0, more)) for part in (key, value))
    return functional.scaled_dot_product_attention(query, key, value, mask)


def _added(part: Any, x: Tensor, states: Tensor) -> Tensor:
    """Return ``norm(W x + b + states)``."""
    dense = part["dense"]
    packed = isinstance(dense, PackedLinear)
    return part["LayerNorm"](dense.plus(x, states) if packed else dense(x) + states)


class Bert(nn.Module):
    """An encoder in the shape of BERT.

    Args:
        config: sizes and family.
    """

    #: that attention is captured without further ado (:func:`attention.has_interface`)
    _supports_attention_backend = True

    def __init__(self, config: _Config) -> None:
        super().__init__()
        self._padding = None if config.model_type == "bert" else config.pad_token_id

        def table(size: int) -> nn.Embedding:
            # drawing first weights, which nothing reads, would import half of torch's compiler
            return nn.Embedding.from_pretrained(torch.empty(size, config.hidden_size))

        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": table(config.vocab_size),
                "position_embeddings": table(config.max_position_embeddings),
                "token_type_embeddings": table(config.type_vocab_size),
                "LayerNorm": nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps),
            }
        )
        layers = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))
        self.encoder = nn.ModuleDict({"layer": layers})

    def get_input_embeddings(self) -> nn.Module:
        """Return the embeddings of word pieces."""
        return self.embeddings["word_embeddings"]

    def set_input_embeddings(self, table: nn.Module) -> None:
        """Replace the embeddings of word pieces."""
        self.embeddings["word_embeddings"] = table

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Output:
        """Run all layers.

        Args:
            input_ids: int64 (batch, pieces).
            attention_mask: int64 (batch, pieces), 1 for pieces, 0 for padding.
        """
        place = torch.arange(input_ids.shape[1], device=input_ids.device)
        if self._padding is not None:
            piece = (input_ids != self._padding).long()
            place = piece.cumsum(1) * piece + self._padding
        tables: Any = self.embeddings
        layers: Any = self.encoder["layer"]
        states = tables["word_embeddings"](input_ids) + tables["token_type_embeddings"].weight[0]
        states = tables["LayerNorm"](states + tables["position_embeddings"](place))
        kept = attention_mask.bool()
        mask = None if kept.all() else kept[:, None, None]
        shape, count = input_ids.shape, input_ids.numel()
        rows = rounded(count) if input_ids.device.type == "cpu" else count
        states = lengthened(states.flatten(0, 1), rows)
        for layer in layers:
            states = layer(states, shape, mask)
        return Output(states[:count].unflatten(0, shape))


def read_bert(folder: Path) -> Bert | str:
    """Read a checkpoint if it has the shape of BERT in every part; its weights stay in the file.

    Returns:
        the encoder, or why it is another or damaged; ``transformers`` then reads it, and reports
        what is wrong with it.

    Raises:
        AttreeError: the configuration is damaged, or there are no weights.
    """
    values, files = read_config(folder), weight_files(folder)
    if (family := values["model_type"]) not in _FAMILIES:
        return f"its family is {family}"
    try:
        config = msgspec.convert(values, _Config)
        weights = load_file(files[0]) if len(files) == 1 else {}
    except (msgspec.ValidationError, SafetensorError, OSError) as error:
        return str(error)
    if config.hidden_act != "gelu" or (family != "bert" and config.pad_token_id is None):
        return "its function or its padding is another"
    bare = {name.removeprefix(f"{_FAMILIES[family]}."): x for name, x in weights.items()}
    needed = {x: y for x, y in bare.items() if x.startswith(_PARTS) and x not in _NUMBERS}
    with torch.device("meta"):
        model = Bert(config)
    shapes = {name: tensor.shape for name, tensor in model.state_dict().items()}
    if {name: tensor.shape for name, tensor in needed.items()} != shapes or any(
        tensor.dtype not in _FLOATS for tensor in needed.values()
    ):
        return "its weights have other names, shapes or types, or lie in several files"
    model.load_state_dict(needed, assign=True)
    return model
