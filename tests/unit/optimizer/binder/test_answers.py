"""Result columns and errors against PostgreSQL 15's own, recorded in answers.jsonl.

Each line holds a query over the sample catalog with the fields (name, type, typmod, table,
attnum) and parameter types that PostgreSQL describes, or its error with detail, hint, position.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from binder_sample import bound

from gpudb import errors

_LINES = (Path(__file__).parent / "answers.jsonl").read_text().splitlines()
ANSWERS = [json.loads(line) for line in _LINES]


@pytest.mark.parametrize("answer", ANSWERS, ids=[a["query"][:60] for a in ANSWERS])
def test_answer(answer: dict[str, Any]) -> None:
    if "error" not in answer:
        found = bound(answer["query"])
        fields = [
            [f.name, f.type_oid, f.typmod, f.table_oid, f.attnum] for f in found.fields
        ]
        assert fields == answer["fields"]
        assert list(found.parameter_types) == answer.get("parameters", [])
        return
    with pytest.raises(errors.SqlError) as caught:
        bound(answer["query"])
    error = caught.value
    assert (error.sqlstate, error.message) == (answer["error"], answer["message"])
    assert error.detail == answer.get("detail", "")
    assert error.hint == answer.get("hint", "")
    assert error.position == answer.get("position", 0)
