"""A grammar's folder, before the grammar is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attree.base.process import use_threads

if TYPE_CHECKING:
    from attree.rivals.grammar.parser import GrammarModel


@dataclass(frozen=True, slots=True)
class GrammarFolder:
    """The folder of a grammar that ``attree grammar train`` wrote; it has no encoder.

    Attributes:
        folder: its path.
    """

    folder: str

    def load(self, *, threads: int | None) -> GrammarModel:
        """Load the weights; a grammar runs on the CPU, whatever the device."""
        from attree.rivals.grammar.parser import GrammarModel

        use_threads(threads)
        return GrammarModel.load(self.folder)
