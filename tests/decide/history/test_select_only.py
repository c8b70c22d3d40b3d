"""Which statements are run: judged as DuckDB parses them."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

from podfit.decide.history.select_only import refused

VIEWS = ("usage", "sizes")
Parse = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def parsed() -> Iterator[Parse]:
    """As DuckDB parses it."""
    opened = duckdb.connect(":memory:")
    try:
        yield lambda sql: _tree(opened, sql)
    finally:
        opened.close()


def _tree(opened: duckdb.DuckDBPyConnection, sql: str) -> dict[str, Any]:
    found = opened.execute("select json_serialize_sql(?::varchar)", [sql]).fetchone()
    assert found is not None
    tree: dict[str, Any] = json.loads(found[0])
    return tree


@pytest.mark.parametrize(
    "sql",
    [
        "select pod, max(cpu) from usage group by pod order by 2 desc limit 3",
        "from usage select count(*)",
        "with big as (select * from usage where cpu > 5) select * from big join sizes using (pod)",
        "select * from (values (1), (2)) as t(x)",
        "select * from range(5), unnest([1, 2]), generate_series(1, 3)",
        "describe usage",
        "summarize select cpu from usage",
        "select quantile_cont(cpu, 0.9) over (partition by pod) from USAGE",
        "select * from usage a where exists (select 1 from sizes b where a.pod = b.pod)",
    ],
)
def test_what_computes_over_the_views_is_run(sql: str, parsed: Parse) -> None:
    assert refused(parsed(sql), VIEWS) == ""


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("copy usage to '/tmp/x'", "only one SELECT"),
        ("attach '/tmp/x'", "only one SELECT"),
        ("install httpfs", "only one SELECT"),
        ("load httpfs", "only one SELECT"),
        ("set threads = 9", "only one SELECT"),
        ("pragma database_list", "only one SELECT"),
        ("create table t as select 1", "only one SELECT"),
        ("drop view usage", "only one SELECT"),
        ("call pragma_version()", "only one SELECT"),
        ("export database '/tmp/x'", "only one SELECT"),
        ("select 1; select 2", "only one SELECT"),
        ("show tables", "only one SELECT"),
        ("", "only one SELECT"),
        ("select", "without selection list"),
        ("select * from '/etc/passwd'", "no table /etc/passwd"),
        ("select * from 'x.parquet'", "no table x.parquet"),
        ("select * from usage union all select * from read_text('/etc/passwd')", "read_text"),
        ("select (select content from read_text('/etc/passwd'))", "read_text"),
        ("select * from usage where pod in (select a from READ_CSV('/etc/passwd'))", "read_csv"),
        ("with t as (from read_parquet('x')) select 1", "read_parquet"),
        ("select * from query('select 1')", "query"),
        ("select * from query_table('usage')", "query_table"),
        ("select * from glob('*')", "glob"),
        ("select * from duckdb_settings()", "duckdb_settings"),
        ("select * from parquet_metadata('x')", "parquet_metadata"),
        ("select * from json_execute_serialized_sql('{}')", "json_execute_serialized_sql"),
        ("select * from information_schema.tables", "no table information_schema.tables"),
        ("select * from main.usage", "no table main.usage"),
        ("select * from pg_class", "no table pg_class"),
        ("select getenv('HOME')", "getenv"),
        ("select current_setting('allowed_paths')", "current_setting"),
        ("select list_transform([1], lambda x: getenv('HOME'))", "getenv"),
        ('with "/etc/passwd" as (select 1) select * from "/etc/passwd"', "no table /etc/passwd"),
        ("describe select * from read_text('/etc/passwd')", "read_text"),
    ],
)
def test_everything_else_is_refused(sql: str, why: str, parsed: Parse) -> None:
    assert why in refused(parsed(sql), VIEWS)


def test_a_name_of_another_scope_names_no_file(parsed: Parse) -> None:
    """Outside of where it is known a WITH's name could be a file's, so no name that has a dot is taken for one."""
    sql = 'select * from (with "a.csv" as (select 1) from "a.csv"), "a.csv"'
    assert "no table a.csv" in refused(parsed(sql), VIEWS)


def test_deep_nesting_is_walked_without_recursion() -> None:
    deep: dict[str, Any] = {"type": "TABLE_FUNCTION", "function": {"function_name": "read_text"}}
    for _ in range(100_000):
        deep = {"inner": deep}
    assert "read_text" in refused({"statements": [deep]}, VIEWS)
