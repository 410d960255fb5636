"""Read encoders of any family, and their tokenisers, with ``transformers``.

No code of a checkpoint is run, and nothing is printed. Importing this takes a second: it is
imported for what attree does not read by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from attree.base.errors import AttreeError
from attree.base.process import without_collecting
from attree.encoder import attention
from attree.encoder.checkpoint import only_checked
from attree.encoder.pieces import check_pieces

with without_collecting():
    from transformers import (
        AttentionInterface,
        AttentionMaskInterface,
        AutoModel,
        AutoTokenizer,
        PreTrainedTokenizerFast,
    )
    from transformers.integrations.sdpa_attention import sdpa_attention_forward
    from transformers.masking_utils import sdpa_mask
    from transformers.utils import logging

#: The name under which a model asks for our attention function.
_IMPLEMENTATION = "attree"


def read_checkpoint(kind: Any, folder: Path, **options: Any) -> tuple[Any, set[str]]:
    """Load a checkpoint without messages on stderr.

    Args:
        kind: an Auto class of ``transformers`` for the kind of model.
        folder: folder with config.json and safetensors; nothing is fetched, no code of it is run.
        options: further arguments of ``from_pretrained``.

    Returns:
        the model, and the names of weights missing from the checkpoint.

    Raises:
        AttreeError: the checkpoint is damaged.
    """
    with _quietly(folder, "checkpoint"), only_checked(folder) as view:
        model, report = kind.from_pretrained(
            view,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            **options,
        )
    return model, set(report["missing_keys"])


@contextlib.contextmanager
def _quietly(folder: Path, name: str) -> Iterator[None]:
    """Silence transformers; turn its errors about damaged files into an error of one line."""
    logging.disable_progress_bar()
    before = logging.get_verbosity()
    logging.set_verbosity_error()  # a missing pooler does not matter: nothing here uses one
    try:
        yield
    except (AttreeError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # the tokenizers library panics outside Exception
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if "mismatched" in reason:  # transformers' line names an option of its own
            reason = "its weights have other shapes than config.json describes"
        problem = f"the {name} cannot be loaded ({reason[:300]})"
        fix = "check that the download or copy is whole"
        raise AttreeError("unloadable", problem, file=folder, fix=fix) from error
    finally:
        logging.set_verbosity(before)


def check_lacking(names: Iterable[str], folder: Path) -> None:
    """Refuse a checkpoint that lacks weights of the model other than the unused pooler's."""
    if missing := sorted(name for name in names if "pooler" not in name):
        problem = f"the checkpoint lacks {len(missing)} of the model's weights ({missing[0]}, …)"
        fix = "check that config.json and model.safetensors belong together"
        raise AttreeError("lacking-weights", problem, file=folder, fix=fix)


def _attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Compute attention (batch, heads, pieces, size) for ``transformers``; keep wanted heads."""
    if (mixed := attention.capture(query, key, value, attention_mask, scaling)) is not None:
        return mixed.transpose(1, 2).contiguous(), None
    return sdpa_attention_forward(
        module, query, key, value, attention_mask, scaling=scaling, **options
    )


def read_any(folder: Path, dtype: torch.dtype) -> nn.Module:
    """Load the encoder of a checkpoint of any family, with our attention function if possible.

    Raises:
        AttreeError: the checkpoint is damaged, or lacks weights.
    """
    AttentionInterface.register(_IMPLEMENTATION, _attention)
    AttentionMaskInterface.register(_IMPLEMENTATION, sdpa_mask)
    how = {"dtype": dtype, "attn_implementation": _IMPLEMENTATION}
    model, lacking = read_checkpoint(AutoModel, folder, **how)
    check_lacking(lacking, folder)
    if not attention.has_interface(model):
        model.config._attn_implementation = "eager"
    return model


def read_tokeniser(folder: Path, model: nn.Module) -> PreTrainedTokenizerFast:
    """Load a fast tokeniser as :func:`attree.encoder.weights.read_splitter`, without messages."""
    with _quietly(folder, "tokeniser"), only_checked(folder) as view:
        tokeniser = AutoTokenizer.from_pretrained(
            view, use_fast=True, local_files_only=True, trust_remote_code=False
        )
        pieces = max(tokeniser.get_vocab().values(), default=0) + 1
    if not isinstance(tokeniser, PreTrainedTokenizerFast) or tokeniser.unk_token_id is None:
        lack = "no unknown piece" if tokeniser.is_fast else "no fast version"
        problem = f"this checkpoint's tokeniser has {lack}"
        fix = "write tokenizer.json with AutoTokenizer.from_pretrained(...).save_pretrained(...)"
        raise AttreeError("bad-tokeniser", problem, file=folder, fix=fix)
    tokeniser.name_or_path = str(folder)
    check_pieces(pieces, model, folder)
    return tokeniser
