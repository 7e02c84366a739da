-- The schema gpudb: what the engine knows of itself.
-- CREATE TABLE declares a relation whose rows gpudb.catalog.system or the running server makes;
-- CREATE VIEW is bound like any other view.

CREATE TABLE gpudb.segments (
    relid oid NOT NULL,
    segment_id int8 NOT NULL,
    first_row int8 NOT NULL,
    row_count int8 NOT NULL,
    deleted_rows int8 NOT NULL,
    bytes int8 NOT NULL,
    level int4 NOT NULL,
    path text,
    is_image bool NOT NULL
);

CREATE TABLE gpudb.segment_columns (
    relid oid NOT NULL,
    segment_id int8 NOT NULL,
    attnum int2 NOT NULL,
    encoding text NOT NULL,
    bytes int8 NOT NULL,
    null_count int8 NOT NULL,
    distinct_count int8,
    low text,
    high text,
    has_zones bool NOT NULL
);

CREATE TABLE gpudb.models (
    oid oid NOT NULL,
    schema_oid oid NOT NULL,
    name name NOT NULL,
    owner oid NOT NULL,
    architecture text NOT NULL,
    state text NOT NULL,
    path text,
    options text[]
);

CREATE TABLE gpudb.queries (
    query_id int8,
    pid int4,
    user_name name,
    database_name name,
    state text,
    started timestamptz,
    elapsed_seconds float8,
    rows_read int8,
    bytes_read int8,
    memory_bytes int8,
    spill_bytes int8,
    device text,
    query text
);

CREATE TABLE gpudb.devices (
    device text,
    name text,
    memory_bytes int8,
    used_bytes int8
);

CREATE TABLE gpudb.cache (
    name text,
    entries int8,
    bytes int8,
    capacity_bytes int8,
    hits int8,
    misses int8
);

CREATE VIEW gpudb.tables AS
SELECT n.nspname AS schema_name, c.relname AS table_name,
       count(s.segment_id) AS segments,
       coalesce(sum(s.row_count - s.deleted_rows), 0)::int8 AS row_count,
       coalesce(sum(s.deleted_rows), 0)::int8 AS deleted_rows,
       coalesce(sum(s.bytes), 0)::int8 AS bytes
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN gpudb.segments s ON s.relid = c.oid
WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'gpudb')
GROUP BY n.nspname, c.relname;

CREATE VIEW gpudb.columns AS
SELECT n.nspname AS schema_name, c.relname AS table_name, a.attname AS column_name,
       s.encoding, count(*) AS segments, sum(s.bytes)::int8 AS bytes,
       sum(s.null_count)::int8 AS null_count
FROM gpudb.segment_columns s
JOIN pg_catalog.pg_class c ON c.oid = s.relid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = s.relid AND a.attnum = s.attnum
GROUP BY n.nspname, c.relname, a.attname, s.encoding;
