"""Storage: immutable segments of narrow column buffers, and how queries read and write them.

A table is a set of segments (the catalog lists them with statistics and zone maps) minus delete
vectors. ``encoding`` turns a column of up to segment_rows rows into plain narrow buffers and
back; ``format`` lays buffers out in a file at 4 KiB boundaries with checksums; ``segment`` writes
and loads whole segments; ``file`` and ``io_scheduler`` read with O_DIRECT; ``cache`` keeps loaded
columns; ``table`` is what the executor sees: TableReader and TableWriter.

Invariants: a file is written once, fsynced and renamed before the catalog names it; buffers are
verified against their checksum when they are loaded; what the catalog does not name is garbage of
an older epoch and swept at start.
"""
