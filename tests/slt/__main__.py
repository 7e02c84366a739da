"""python -m tests.slt FILE[:LINE] ... [--dsn DSN] [--config TOML] [--complete]"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tests.slt import runner
from tests.slt.engines import Config, read_config


def targets(paths: tuple[str, ...]) -> list[tuple[Path, int]]:
    """Files and lines of FILE, FILE:LINE and folders."""
    found = []
    for text in paths:
        name, _, line = text.rpartition(":") if not Path(text).exists() else (text, "", "0")
        path = Path(name)
        files = sorted(path.rglob("*.slt")) if path.is_dir() else [path]
        found += [(file, int(line)) for file in files]
    return found


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option("--dsn", default="", help="A server; without one a new database in this process.")
@click.option("--config", "config_file", type=click.Path(path_type=Path, exists=True))
@click.option("--complete", is_flag=True, help="Write the engine's answers into the files.")
@click.option("--quiet", is_flag=True, help="Only the counts.")
def main(
    paths: tuple[str, ...], dsn: str, config_file: Path | None, complete: bool, quiet: bool
) -> None:
    """Run sqllogictest files."""
    config = read_config(config_file) if config_file else Config()
    passed = failed = skipped = 0
    for path, line in targets(paths):
        report = runner.run_file(path, dsn=dsn, config=config, line=line, is_completing=complete)
        passed += report.passed
        failed += len(report.failures)
        skipped += report.skipped
        if report.failures:
            print(f"{path}: {len(report.failures)} fail" if quiet else report.text())
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
