"""The article's heat map: F1 of every attention head, layers down, heads across."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa

from attree.files import whole_file


def heat_map(ranking: pa.Table, title: str, output: Path) -> None:
    """Draw ``ranking`` (columns layer, head, corpus_f1, selected) to ``output``.

    Lighter is higher, as in the article; the selected heads are framed, and each cell carries its
    F1 so that the picture can be read without the table.
    """
    layers = np.asarray(ranking["layer"])
    heads = np.asarray(ranking["head"])
    f1 = np.full((layers.max() + 1, heads.max() + 1), np.nan)
    f1[layers, heads] = np.asarray(ranking["corpus_f1"])
    chosen = np.zeros(f1.shape, dtype=bool)
    chosen[layers, heads] = np.asarray(ranking["selected"])
    n_layers, n_heads = f1.shape
    figure, axes = plt.subplots(
        figsize=(1.6 + 0.58 * n_heads, 1.5 + 0.42 * n_layers), layout="constrained"
    )
    picture = axes.imshow(f1, cmap="viridis", aspect="auto")
    low, high = np.nanmin(f1), np.nanmax(f1)
    for layer, head in np.ndindex(f1.shape):
        dark = f1[layer, head] < low + 0.6 * (high - low)
        axes.text(
            head, layer, f"{f1[layer, head]:.0f}", ha="center", va="center", fontsize=8,
            color="white" if dark else "black",
        )  # fmt: skip
        if chosen[layer, head]:
            frame = plt.Rectangle(
                (head - 0.47, layer - 0.45), 0.94, 0.9, fill=False, edgecolor="red", linewidth=1.8
            )
            axes.add_patch(frame)
    axes.set_xticks(range(n_heads))
    axes.set_yticks(range(n_layers))
    axes.set_xlabel("head")
    axes.set_ylabel("layer")
    axes.set_title(f"{title}\n{int(chosen.sum())} selected heads framed", fontsize=10)
    figure.colorbar(picture, ax=axes, label="corpus F1")
    with whole_file(output) as part:
        figure.savefig(part, format=output.suffix.lstrip(".") or "png", dpi=150)
    plt.close(figure)
