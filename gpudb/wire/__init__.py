"""The PostgreSQL wire protocol, version 3.0, over any engine that implements backend.Backend.

``server`` (asyncio, TLS, the only module with sockets) feeds bytes to ``protocol``, a sans-IO state
machine that yields the dataclasses of ``messages`` and refuses an illegal order. ``dispatch``
turns each message into calls of a ``backend.Session`` and their outcomes into bytes; ``rows`` and
``copy`` encode whole columns of host batches; ``auth`` is SCRAM-SHA-256.

Invariants: messages are answered strictly in the order of their arrival; no more than a bounded
number of bytes waits for a slow client; bytes from the network raise protocol errors only and
never end the server. What SQL means is out: the session decides.
"""
