"""torch's optimisers without ``torch._dynamo``, which takes as long to import as torch itself.

It is imported by wrappers of some methods, which matter only to ``torch.compile``; here these
methods are taken without them.
"""

from __future__ import annotations

import inspect

import torch
from torch.optim import Optimizer


class AdamW(torch.optim.AdamW):
    """AdamW (Loshchilov and Hutter 2019), as in torch."""

    add_param_group = inspect.unwrap(Optimizer.add_param_group)
    zero_grad = inspect.unwrap(Optimizer.zero_grad)
    step = torch.no_grad()(inspect.unwrap(torch.optim.AdamW.step))


class LBFGS(torch.optim.LBFGS):
    """L-BFGS, as in torch."""

    add_param_group = inspect.unwrap(Optimizer.add_param_group)
