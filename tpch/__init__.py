"""TPC-H: generate its data, load it, check the answers of its 22 queries, compare speeds.

Not part of the server: it talks to one through psycopg, as any client does, and takes DuckDB's
answers on the same Parquet files and PostgreSQL 15's committed ones as the references.
"""
