"""pytest items: one a file below tests/sql."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slt import runner
from tests.slt.engines import Config, read_config


class Mismatch(Exception):
    """A file whose records are not answered as expected."""


class SltFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield SltItem.from_parent(self, name=self.path.stem)


class SltItem(pytest.Item):
    def runtest(self) -> None:
        chosen = self.config.getoption("--gpudb-config")
        config = read_config(Path(chosen)) if chosen else Config()
        dsn = self.config.getoption("--slt-dsn")
        report = runner.run_file(self.path, dsn=dsn, config=config)
        if report.failures:
            total = report.passed + len(report.failures)
            raise Mismatch(f"{report.text()}\n\n{len(report.failures)} of {total} records fail")

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, Mismatch):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"slt: {self.path.parent.name}/{self.name}"
