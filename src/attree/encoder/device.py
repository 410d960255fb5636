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
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name is None:
        return torch.device("cuda" if count else "cpu")
    if not re.fullmatch(r"cpu|cuda(:\d{1,3})?", name):
        fix = "choose cpu, cuda, or cuda:0, cuda:1, …"
        raise AttreeError("unknown-device", f"unknown device {name!r}", fix=fix)
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= count:
        has = f"{count} CUDA devices, numbered from 0" if count else "no CUDA device"
        problem = f"--device {name}: this machine has {has}"
        raise AttreeError("no-device", problem, fix="leave --device out")
    return device


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
    dtype = dtype_on(torch.device("cpu") if elsewhere else choose_device(device))
    if elsewhere:
        say(f"attree: workers compute in {dtype}, as auto means on this machine's processor")
    return replace(encoder, dtype=dtype)


def dtype_on(device: torch.device) -> str:
    """Return the dtype that ``auto`` stands for on a device.

    It is bfloat16 where the device has instructions for its products, and does not emulate them.
    Capabilities are asked for and no product is timed: a run that is resumed, or continues at
    another worker, must take the same type again.
    """
    if device.type == "cuda":
        able = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has = torch.cpu.get_capabilities()
        able = device.type == "cpu" and (has.get("amx_bf16") or has.get("avx512_bf16"))
    return "bfloat16" if able else "float32"
