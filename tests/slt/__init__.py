"""The sqllogictest runner: records, engines, comparison, rewriting, pytest items.

A file is a list of records, separated by blank lines; ``#`` starts a comment line.

    statement ok | statement count N
    statement error [SQLSTATE | regular expression]      then optionally ---- and the exact message
    query TYPES [nosort | rowsort | valuesort] [LABEL]   then ---- and one line a row
    hash-threshold N · halt · skipif NAME · onlyif NAME  (postgresql, gpudb or a configuration)

TYPES has a letter a column: I integers, R numeric and floats, B boolean, D dates and times, T
everything else, ? anything. Values stand in PostgreSQL's text form, separated by tabs; NULL is
NULL, an empty text (empty); backslash, tab, newline and carriage return inside a value are
written with a backslash, and a text that reads NULL or (empty) gets one before it. Queries with
the same label must have the same result. ``--complete`` writes types, rows and errors anew.
"""
