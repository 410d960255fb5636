"""What an encoder is computed on, and in which type of numbers; imports only torch."""

from __future__ import annotations

import re
from dataclasses import replace

import torch

from attree.base.errors import AttreeError
from attree.base.text import say
from attree.encoder.source import ResolvedEncoder


def choose_device(name: str | None) -> torch.device:
    """Return the device to compute on.

    Args:
        name: ``cpu``, ``cuda``, ``cuda:1``…; ``None`` for a GPU where there is one.

    Raises:
        AttreeError: another name, or a GPU that this machine does not have.
    """
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name is None:
        return torch.device("cuda" if there else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d{1,3})?", name):
        raise AttreeError(
            "unknown-device",
            f"unknown device {name!r}",
            fix="choose cpu, cuda, or cuda:0, cuda:1, …",
        )
    chosen = torch.device(name)
    if chosen.type == "cuda" and (chosen.index or 0) >= there:
        has = "no CUDA device" if not there else f"{there} CUDA devices, numbered from 0"
        raise AttreeError(
            "no-device", f"--device {name}: this machine has {has}", fix="leave --device out"
        )
    return chosen


def settled(
    encoder: ResolvedEncoder, device: str | None, *, elsewhere: bool = False
) -> ResolvedEncoder:
    """Return an encoder whose ``auto`` dtype is the one that a device of this machine takes.

    What is computed is known by it: a result in bfloat16 never stands for one in float32, and every
    worker of a run, and whoever continues it, takes the same type.

    Args:
        encoder: a resolved description.
        device: as for :func:`choose_device`.
        elsewhere: the workers are on other machines: any CUDA device that is named takes bfloat16,
            and without a name this machine's processor decides.
    """
    if encoder.dtype != "auto":
        return encoder
    if elsewhere and device and device.startswith("cuda"):
        return replace(encoder, dtype="bfloat16")
    chosen = torch.device("cpu") if elsewhere else choose_device(device)
    encoder = replace(encoder, dtype=taken(encoder.dtype, chosen))
    if elsewhere:
        say(
            f"attree: workers compute in {encoder.dtype}, as auto means on this machine's processor"
        )
    return encoder


def taken(name: str, device: torch.device) -> str:
    """Return the dtype that ``auto`` stands for on a device; another name as it is."""
    if name != "auto":
        return name
    return "bfloat16" if _multiplies_bfloat16(device) else "float32"


def _multiplies_bfloat16(device: torch.device) -> bool:
    """Tell whether a device has instructions for products of bfloat16, and does not emulate them.

    Capabilities are asked for and no product is timed: a run that is resumed, or continues at
    another worker, must take the same type again.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu":
        return False
    able = torch.cpu.get_capabilities()
    return bool(able.get("amx_bf16") or able.get("avx512_bf16"))
