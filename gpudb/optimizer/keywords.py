"""PostgreSQL 15's key words with their categories.

The category decides where a word may stand without quotes: an unreserved word anywhere, a
column-name word not as a function or type, a type-or-function word not as a column or table, a
reserved word only as a label after AS. Source: PostgreSQL's pg_get_keywords().
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyWord:
    """``category`` is U, C, T or R as pg_get_keywords() shows it; ``bare_label`` without AS."""

    word: str
    category: str
    bare_label: bool


_UNRESERVED = """
abort absolute access action add admin after aggregate also alter always asensitive assertion
assignment at atomic attach attribute backward before begin breadth by cache call called cascade
cascaded catalog chain characteristics checkpoint class close cluster columns comment comments
commit committed compression configuration conflict connection constraints content continue
conversion copy cost csv cube current cursor cycle data database day deallocate declare defaults
deferred definer delete delimiter delimiters depends depth detach dictionary disable discard
document domain double drop each enable encoding encrypted enum escape event exclude excluding
exclusive execute explain expression extension external family filter finalize first following
force forward function functions generated global granted groups handler header hold hour identity
if immediate immutable implicit import include including increment index indexes inherit inherits
inline input insensitive insert instead invoker isolation key label language large last leakproof
level listen load local location lock locked logged mapping match matched materialized maxvalue
merge method minute minvalue mode month move name names new next nfc nfd nfkc nfkd no normalized
nothing notify nowait nulls object of off oids old operator option options ordinality others over
overriding owned owner parallel parameter parser partial partition passing password plans policy
preceding prepare prepared preserve prior privileges procedural procedure procedures program
publication quote range read reassign recheck recursive ref referencing refresh reindex relative
release rename repeatable replace replica reset restart restrict return returns revoke role
rollback rollup routine routines rows rule savepoint schema schemas scroll search second security
sequence sequences serializable server session set sets share show simple skip snapshot sql stable
standalone start statement statistics stdin stdout storage stored strict strip subscription
support sysid system tables tablespace temp template temporary text ties transaction transform
trigger truncate trusted type types uescape unbounded uncommitted unencrypted unknown unlisten
unlogged until update vacuum valid validate validator value varying version view views volatile
whitespace within without work wrapper write xml year yes zone
"""

_COLUMN_NAME = """
between bigint bit boolean char character coalesce dec decimal exists extract float greatest
grouping inout int integer interval least national nchar none normalize nullif numeric out overlay
position precision real row setof smallint substring time timestamp treat trim values varchar
xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot
xmlserialize xmltable
"""

_TYPE_OR_FUNCTION = """
authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull
join left like natural notnull outer overlaps right similar tablesample verbose
"""

_RESERVED = """
all analyse analyze and any array as asc asymmetric both case cast check collate column constraint
create current_catalog current_date current_role current_time current_timestamp current_user
default deferrable desc distinct do else end except false fetch for foreign from grant group
having in initially intersect into lateral leading limit localtime localtimestamp not null offset
on only or order placing primary references returning select session_user some symmetric table
then to trailing true union unique user using variadic when where window with
"""

_NEEDS_AS = """
array as char character create day except fetch filter for from grant group having hour intersect
into isnull limit minute month notnull offset on order over overlaps precision returning second to
union varying where window with within without year
"""


def _key_words() -> dict[str, KeyWord]:
    needs_as = frozenset(_NEEDS_AS.split())
    words = (
        ("U", _UNRESERVED),
        ("C", _COLUMN_NAME),
        ("T", _TYPE_OR_FUNCTION),
        ("R", _RESERVED),
    )
    found = {
        word: KeyWord(word, category, word not in needs_as)
        for category, text in words
        for word in text.split()
    }
    return dict(sorted(found.items()))


KEY_WORDS = _key_words()
CATEGORY_NAMES = {
    "U": "unreserved",
    "C": "unreserved (cannot be function or type name)",
    "T": "reserved (can be function or type name)",
    "R": "reserved",
}

NEEDS_AS = frozenset(_NEEDS_AS.split())
"""Words that label a column only after AS."""
NOT_COLUMN = frozenset((_TYPE_OR_FUNCTION + _RESERVED).split())
"""Words that cannot name a column, table or other object (PostgreSQL's ColId)."""
NOT_FUNCTION = frozenset((_COLUMN_NAME + _RESERVED).split())
"""Words that cannot name a function or type without quotes (PostgreSQL's type_function_name)."""
RESERVED = frozenset(_RESERVED.split())


def needs_quotes(name: str) -> bool:
    """Whether quote_ident() quotes ``name``: no lower-case word, or a key word not unreserved."""
    if not name or not (name[0] == "_" or "a" <= name[0] <= "z"):
        return True
    if not all(c == "_" or "a" <= c <= "z" or "0" <= c <= "9" for c in name):
        return True
    word = KEY_WORDS.get(name)
    return word is not None and word.category != "U"


def quote_identifier(name: str) -> str:
    """The name as SQL source, in double quotes where it needs them."""
    if not needs_quotes(name):
        return name
    return '"' + name.replace('"', '""') + '"'
