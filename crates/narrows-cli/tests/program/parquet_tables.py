"""parquet_tables.py equal|sums|rows FILE.parquet [FILE.csv]: reads Parquet with Polars and with DuckDB; exits with 77 without them.

equal: every row and column has the values of the CSV file. sums: what each link delivered, was offered and dropped adds up to the
same as in the CSV file, whose intervals may differ. rows: prints the number of rows.
"""
import sys

try:
    import duckdb
    import polars
except ImportError as missing:
    print(missing)
    sys.exit(77)

what, parquet, *csv = sys.argv[1:]
table = polars.read_parquet(parquet)
about = {key.decode(): value.decode() for key, value in duckdb.sql(
    f"SELECT key, value FROM parquet_kv_metadata('{parquet}')").fetchall()}
assert about["narrows.columns"] == "1" and about["narrows.table"] in ("packets", "series"), about


# A list of links, as CSV has it.
LINKS = "array_to_string([concat_ws(':', link.link, link.entered_ns, link.queueing_ns, link.left_ns) for link in links], ';')"


def plain(table):
    """Text columns as strings, empty where there is none; all numbers as one type; links as in CSV."""
    if isinstance(table.schema.get("links"), polars.List):
        fields = [polars.element().struct.field(name).cast(polars.String)
                  for name in ("link", "entered_ns", "queueing_ns", "left_ns")]
        texts = polars.col("links").list.eval(polars.concat_str(fields, separator=":"))
        table = table.with_columns(texts.list.join(";"))
    numbers = polars.selectors.numeric()
    return table.with_columns(numbers.cast(polars.Int64), (~numbers).cast(polars.String).fill_null(""))


if what == "equal":
    expected = polars.read_csv(csv[0], schema_overrides={name: kind for name, kind in plain(table).schema.items()})
    assert plain(table).equals(plain(expected))
    types = {name: "BIGINT" if kind == polars.Int64 else "VARCHAR" for name, kind in plain(table).schema.items()}
    cast = ", ".join(f"coalesce({name}::VARCHAR, '') AS {name}" if kind == "VARCHAR" else f"{name}::BIGINT AS {name}"
                     for name, kind in ((f'"{name}"', kind) for name, kind in types.items()))
    theirs = f"SELECT {cast} FROM read_csv('{csv[0]}', types={types}, header=true)"
    has_links = "links" in table.columns
    ours = f"SELECT {cast} FROM (SELECT * REPLACE ({LINKS} AS links) FROM '{parquet}')" if has_links else \
        f"SELECT {cast} FROM '{parquet}'"
    for one, other in ((ours, theirs), (theirs, ours)):
        assert duckdb.sql(f"{one} EXCEPT ALL {other}").fetchall() == [], (one, other)
elif what == "sums":
    wanted = ["delivered_packets", "offered_packets", "dropped_packets"]
    sums = [plain(one).filter(polars.col("kind") == "link").group_by("name").agg(polars.col(wanted).sum()).sort("name")
            for one in (table, polars.read_csv(csv[0]))]
    assert sums[0].equals(sums[1]), sums
    select = ", ".join(f"sum({name})::BIGINT" for name in wanted)
    found = duckdb.sql(f"SELECT name, {select} FROM '{parquet}' WHERE kind = 'link' GROUP BY name ORDER BY name").fetchall()
    assert found == sums[0].rows(), found
rows = duckdb.sql(f"SELECT count(*) FROM '{parquet}'").fetchall()[0][0]
assert rows == len(table)
print(rows)
