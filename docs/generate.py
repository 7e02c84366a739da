"""Writes docs/reference from the registries: functions, types, settings, commands, statements."""

from __future__ import annotations

from pathlib import Path

from gpudb import commands, settings
from gpudb.catalog import builtin, functions
from gpudb.exec import builder
from gpudb.exec import functions as bodies

REFERENCE = Path(__file__).parent / "reference"


def functions_page() -> str:
    """Every function of pg_proc that has an implementation, by name."""
    bodies.load()
    builder.load_operators()
    rows: dict[str, set[str]] = {}
    table = builtin.table("pg_proc").to_pydict()
    names = {oid: entry.name for oid, entry in builtin.types().items()}
    for name, source, oids, result in zip(
        table["proname"], table["prosrc"], table["proargtypes"], table["prorettype"], strict=True
    ):
        shown = [names.get(int(oid), str(oid)) for oid in oids]
        keys = (source, f"{name}({','.join(shown)})")
        if any(functions.is_implemented(key) for key in keys):
            rows.setdefault(name, set()).add(f"({', '.join(shown)}) → {names.get(result, result)}")
    lines = ["# Functions", "", f"{sum(map(len, rows.values()))} signatures, generated.", ""]
    for name in sorted(rows):
        lines.append(f"- `{name}` " + " · ".join(f"`{item}`" for item in sorted(rows[name])))
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """gpudb's own settings; PostgreSQL's parameters are known and shown besides."""
    lines = ["# Settings", "", "PostgreSQL 15 parameters are known by name; these are own.", ""]
    lines += ["| name | default | unit | context | meaning |", "|---|---|---|---|---|"]
    for item in settings.OWN:
        lines.append(
            f"| `{item.name}` | {item.default or '(empty)'} | {item.unit} | {item.context} "
            f"| {item.description} |"
        )
    lines += ["", "The environment sets them at start: `GPUDB_` and the name in capitals."]
    return "\n".join(lines) + "\n"


def statements_page() -> str:
    """Utility statements with a handler."""
    commands.load()
    names = sorted(kind.__name__ for kind in commands.HANDLERS)
    lines = ["# Utility statements", "", "Statement classes with a handler in gpudb/commands:", ""]
    return "\n".join([*lines, *(f"- {name}" for name in names)]) + "\n"


def main() -> None:
    REFERENCE.mkdir(exist_ok=True)
    for name, text in (
        ("functions.md", functions_page()), ("settings.md", settings_page()),
        ("statements.md", statements_page()),
    ):
        (REFERENCE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
