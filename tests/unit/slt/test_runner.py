"""The sqllogictest runner on an engine of canned answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.slt import records, runner
from tests.slt.engines import Config, Outcome

ONE_ROW = Outcome([("1", None)], (23, 25), "SELECT 1")
TWO_ROWS = Outcome([("2", "b"), ("1", "a")], (23, 25), "SELECT 2")
FAILED = Outcome(sqlstate="22012", message="division by zero")


class Canned:
    name = "canned"

    def __init__(self, answers: dict[str, Outcome]) -> None:
        self.answers = answers
        self.seen: list[str] = []

    def run(self, sql: str) -> Outcome:
        self.seen.append(sql)
        return self.answers[sql]

    def close(self) -> None:
        pass


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a text on canned answers: the report, the engine, the file."""

    def run(text: str, answers: dict[str, Outcome], **options):
        path = tmp_path / "case.slt"
        path.write_text(text)
        engine = Canned(answers)
        monkeypatch.setattr(runner, "open_engine", lambda dsn, config: engine)
        return runner.run_file(path, **options), engine, path

    return run


def test_right_rows_pass(check) -> None:
    report, _, _ = check("query IT\na\n----\n1\tNULL\n", {"a": ONE_ROW})
    assert (report.passed, report.failures) == (1, [])


@pytest.mark.parametrize(
    "text",
    [
        "query IT\na\n----\n1\t(empty)\n",
        "query IT\na\n----\n1\tNULL\n1\tNULL\n",
        "query IT\na\n----\n",
        "query TT\na\n----\n1\tNULL\n",
        "query I\na\n----\n1\tNULL\n",
        "statement error\na\n",
        "statement count 2\na\n",
    ],
)
def test_wrong_expectations_fail(check, text: str) -> None:
    report, _, _ = check(text, {"a": ONE_ROW})
    assert [line for line, _ in report.failures] == [1]


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("statement error 22012\na\n", True),
        ("statement error by zero$\na\n", True),
        ("statement error 22012\na\n----\ndivision by zero\n", True),
        ("statement error 22012\na\n----\ndivision by null\n", False),
        ("statement error 22003\na\n", False),
        ("statement error overflow\na\n", False),
        ("statement ok\na\n", False),
        ("query I\na\n----\n1\n", False),
    ],
)
def test_errors(check, text: str, passes: bool) -> None:
    report, _, _ = check(text, {"a": FAILED})
    assert bool(report.failures) is not passes


def test_sort_modes_and_labels(check) -> None:
    text = (
        "query IT rowsort same\na\n----\n1\ta\n2\tb\n\n"
        "query IT valuesort\na\n----\n1\n2\na\nb\n\n"
        "query IT nosort same\na\n----\n2\tb\n1\ta\n"
    )
    report, _, _ = check(text, {"a": TWO_ROWS})
    assert report.passed == 2
    assert "label same" in report.failures[0][1]


def test_hash(check) -> None:
    lines = runner.result_lines(TWO_ROWS, "nosort", 1)
    assert lines[0].startswith("4 values hashing to ")
    report, _, _ = check(f"query IT\na\n----\n{lines[0]}\n", {"a": TWO_ROWS})
    assert report.passed == 1
    report, _, _ = check(f"query IT rowsort\na\n----\n{lines[0]}\n", {"a": TWO_ROWS})
    assert report.passed == 0


def test_conditions_and_halt(check) -> None:
    text = (
        "skipif canned\nstatement ok\nnever\n\nonlyif other\nstatement ok\nnever\n\n"
        "onlyif tiny\nstatement ok\na\n\nhalt\n\nstatement ok\nnever\n"
    )
    report, engine, _ = check(text, {"a": ONE_ROW}, config=Config("tiny"))
    assert (engine.seen, report.passed, report.skipped) == (["a"], 1, 2)


def test_one_line_runs_statements_before_it(check) -> None:
    text = "statement ok\na\n\nquery I\nb\n----\n9\n\nquery IT\nc\n----\n1\tNULL\n"
    report, engine, _ = check(text, {"a": ONE_ROW, "c": ONE_ROW}, line=10)
    assert (engine.seen, report.passed, report.failures) == (["a", "c"], 1, [])


def test_completion_keeps_all_else(check) -> None:
    text = (
        "# first\nstatement ok\nfails\n\nquery rowsort\na\n----\nold\nold\n\n"
        "# last\nstatement count 0\nc\n"
    )
    answers = {"fails": FAILED, "a": TWO_ROWS, "c": Outcome(tag="INSERT 0 3")}
    report, _, path = check(text, answers, is_completing=True)
    assert report.failures == []
    assert path.read_text() == (
        "# first\nstatement error 22012\nfails\n----\ndivision by zero\n\n"
        "query IT rowsort\na\n----\n1\ta\n2\tb\n\n# last\nstatement count 3\nc\n"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "NULL"), ("", "(empty)"), ("NULL", "\\NULL"), ("a\tb\\\n", "a\\tb\\\\\\n")],
)
def test_values_are_unambiguous(value: str | None, text: str) -> None:
    assert runner.value_text(value) == text


def test_a_bad_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.slt"
    path.write_text("statement ok\nx\n\nstatment ok\ny\n")
    with pytest.raises(records.SyntaxProblem, match=r"bad\.slt:4: unknown record 'statment'"):
        records.read(path)
