"""Utility statements: dataclasses (`nodes`) and the recursive-descent parser that makes them."""
