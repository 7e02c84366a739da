"""A small catalog to bind against, the same that the recorded answers were taken with."""

from __future__ import annotations

from gpudb import sqltype as t
from gpudb.catalog import search_path
from gpudb.catalog.bootstrap import initial_changes
from gpudb.catalog.catalog import CatalogSnapshot
from gpudb.catalog.changes import Change, Create
from gpudb.catalog.object_names import ObjectNames
from gpudb.catalog.objects import ColumnDef, Constraint, Relation, Schema, SequenceOptions
from gpudb.catalog.types.base import TypeContext
from gpudb.optimizer import parser
from gpudb.optimizer.binder import BindContext, BoundQuery, bind_query
from gpudb.optimizer.binder.sql_functions import BODIES

SCHEMA = 16400
TABLES = {"t": 16410, "u": 16420, "u2": 16430}
Columns = tuple[tuple[str, int, int, bool], ...]
_COLUMNS: dict[str, Columns] = {
    "t": (
        ("a", t.INT4, -1, True),
        ("b", t.TEXT, -1, False),
        ("c", t.NUMERIC, t.numeric_typmod(12, 2), False),
        ("d", t.INT4_ARRAY, -1, False),
        ("f", t.FLOAT8, -1, False),
    ),
    "u": (
        ("a", t.INT4, -1, False),
        ("e", t.TEXT, -1, False),
        ("k", t.DATE, -1, False),
    ),
    "u2": (
        ("v", t.VARCHAR, 9, False),
        ("p", t.BPCHAR, 7, False),
        ("h", t.INT2, -1, False),
    ),
}


def _table(name: str, oid: int) -> Relation:
    columns = tuple(
        ColumnDef(number, column, type_oid, typmod, not_null)
        for number, (column, type_oid, typmod, not_null) in enumerate(_COLUMNS[name], 1)
    )
    return Relation(oid, SCHEMA, name, "r", columns, row_type=oid + 1, array_type=oid + 2)


def sample_snapshot() -> CatalogSnapshot:
    """t(a int primary key, b text, c numeric(12,2), d int[], f float8), u(a, e, k date),
    u2(v varchar(5), p char(3), h int2), view w over t, sequence s, in schema binder_test."""
    changes: list[Change] = [*initial_changes(), Create(Schema(SCHEMA, 5, "binder_test", 10))]
    changes += [Create(_table(name, oid)) for name, oid in TABLES.items()]
    changes.append(Create(Constraint(16440, SCHEMA, "t_pkey", "p", 16410, columns=(1,))))
    changes.append(
        Create(Relation(16450, SCHEMA, "s", "S", (), sequence=SequenceOptions()))
    )
    view_columns = (ColumnDef(1, "x", t.INT4), ColumnDef(2, "n", t.INT8))
    definition = "SELECT a AS x, count(*) AS n FROM binder_test.t GROUP BY a"
    changes.append(
        Create(Relation(16460, SCHEMA, "w", "v", view_columns, definition=definition))
    )
    return CatalogSnapshot.empty().apply(tuple(changes))


SNAPSHOT = sample_snapshot()
PATH = search_path.resolve(SNAPSHOT, ["binder_test"], user="postgres")


def sample_context(parameter_types: tuple[int, ...] = ()) -> BindContext:
    """A context in which every function counts as implemented, SQL ones as expanded."""
    return BindContext(
        PATH,
        parameter_types=parameter_types,
        type_context=TypeContext(lookup=ObjectNames(SNAPSHOT, PATH).lookup),
        is_implemented=lambda key: key not in BODIES,
    )


def bound(text: str, parameter_types: tuple[int, ...] = ()) -> BoundQuery:
    """The bound form of a query over the sample."""
    return bind_query(parser.parse_query(text), SNAPSHOT, sample_context(parameter_types))
