"""The request of a run, which the workflow writes when it starts and the report reads."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attree.base.files import write_json
from attree.base.provenance import digest
from attree.base.reading import read_described
from attree.plan.paths import TableRow

if TYPE_CHECKING:
    from attree.plan.plan import Plan
    from attree.treebank.language import Catalogue


def looks() -> str:
    """Hash the page's template, scripts and styles: inputs that the code hash does not cover."""
    here = Path(__file__).parent
    files = sorted(file for kind in ("css", "j2", "js") for file in here.glob(f"*.{kind}"))
    return digest([file.read_text(encoding="utf-8") for file in files])


@dataclass(frozen=True, slots=True)
class AskedTable:
    """A table of the configuration.

    Attributes:
        title: heading of the table.
        published: name of its table in the file of published figures, if any.
        rows: rows of the table, in JSON ``[encoder, parser, language, split]``.
    """

    title: str
    published: str | None
    rows: list[TableRow]


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """The request of a run; empty for results that no workflow made.

    Attributes:
        configuration: the configuration with its defaults.
        tables: name → table.
        languages: languages that were found and can be read.
        problems: language → why it cannot be read.
        warnings: one line for each file or setting that was ignored.
        tunings: encoders and parsers with the trees that heads are ranked on.
    """

    configuration: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, AskedTable] = field(default_factory=dict)
    languages: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    tunings: list[TableRow] = field(default_factory=list)

    @property
    def rows(self) -> list[TableRow]:
        """Every row of the tables, once."""
        return list(dict.fromkeys(row for table in self.tables.values() for row in table.rows))

    def has(self, language: str) -> bool:
        """Tell whether a language is asked for; without tables every language is."""
        return language in self.languages or not self.tables

    def ranks(self, trees: TableRow) -> bool:
        """Tell whether heads are ranked on these trees; on any if a run tells of none."""
        return trees in self.tunings or not self.tunings

    @classmethod
    def of(cls, plan: Plan, languages: Catalogue) -> ReportedRun:
        """Make the request of a plan and the languages found."""
        tables = {
            name: AskedTable(table.title, table.published, list(plan.tables[name]))
            for name, table in plan.config.tables.items()
        }
        problems = {name: str(error) for name, error in languages.problems.items()}
        others = [line for line in languages.warnings if line not in problems.values()]
        tunings = [TableRow(*of, on.language, on.split) for of, on in plan.tunings.items()]
        return cls(plan.config.given(), tables, list(languages), problems, others, tunings)

    @classmethod
    def read(cls, path: Path | None) -> ReportedRun:
        """Read the file of :meth:`write`; return an empty request if ``path`` is None.

        Raises:
            AttreeError: the file is missing, or has another form.
        """
        fix = "run the workflow again, or leave --run out"
        return cls() if path is None else read_described(path, cls, what="run", fix=fix)

    def write(self, path: str | Path) -> None:
        """Write the request as JSON."""
        write_json(path, asdict(self))
