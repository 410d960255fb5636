"""Choose the device and dtype that an encoder is computed with; imports only torch."""

import re
from dataclasses import replace

from attree.base.errors import AttreeError
from attree.base.process import without_collecting
from attree.base.terminal import say
from attree.encoder.source import ResolvedEncoder

with without_collecting():
    import torch


def choose_device(name: str | None) -> torch.device:
    """Return the device to compute on.

    Args:
        name: ``cpu``, ``cuda``, ``cuda:1``…; None for a GPU if there is one.

    Raises:
        AttreeError: the name is unknown, or this machine does not have the GPU.
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


def settle_dtype(
    encoder: ResolvedEncoder, device: str | None, *, elsewhere: bool = False
) -> ResolvedEncoder:
    """Return an encoder with the dtype ``auto`` replaced by that of a device of this machine.

    The dtype identifies results: bfloat16 is never mistaken for float32, and all workers of a run,
    and later runs that continue it, use the same dtype.

    Args:
        encoder: a resolved description.
        device: as for :func:`choose_device`.
        elsewhere: whether workers run on other machines; then a named CUDA device gets bfloat16,
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

    It is bfloat16 if the device has instructions for its products and does not emulate them. This
    depends on capabilities and not on timings, so that a resumed run, or another worker, gets the
    same dtype.
    """
    if device.type == "cuda":
        able = torch.cuda.is_bf16_supported(including_emulation=False)
    else:
        has = torch.cpu.get_capabilities()
        able = device.type == "cpu" and (has.get("amx_bf16") or has.get("avx512_bf16"))
    return "bfloat16" if able else "float32"
