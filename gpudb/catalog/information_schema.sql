-- The information schema over pg_catalog, with PostgreSQL 15's columns and rows.
-- The binder casts each column to the type (a domain) that the built-in catalog lists for it.
-- Views that are missing here have no rows: foreign tables, triggers, transforms, routine usage.

CREATE VIEW information_schema.information_schema_catalog_name AS
SELECT current_database() AS catalog_name;

CREATE VIEW information_schema.enabled_roles AS
SELECT a.rolname AS role_name
FROM pg_catalog.pg_authid a
WHERE pg_has_role(a.oid, 'USAGE');

CREATE VIEW information_schema.applicable_roles AS
SELECT m.rolname AS grantee, r.rolname AS role_name,
       CASE WHEN x.admin_option THEN 'YES' ELSE 'NO' END AS is_grantable
FROM (SELECT member, roleid, admin_option FROM pg_catalog.pg_auth_members
      UNION
      SELECT datdba, 6171, false FROM pg_catalog.pg_database
      WHERE datname = current_database()) x
JOIN pg_catalog.pg_authid m ON m.oid = x.member
JOIN pg_catalog.pg_authid r ON r.oid = x.roleid
WHERE pg_has_role(m.oid, 'USAGE');

CREATE VIEW information_schema.administrable_role_authorizations AS
SELECT grantee, role_name, is_grantable
FROM information_schema.applicable_roles
WHERE is_grantable = 'YES';

CREATE VIEW information_schema.schemata AS
SELECT current_database() AS catalog_name, n.nspname AS schema_name,
       r.rolname AS schema_owner, NULL::name AS default_character_set_catalog,
       NULL::name AS default_character_set_schema, NULL::name AS default_character_set_name,
       NULL::text AS sql_path
FROM pg_catalog.pg_namespace n
JOIN pg_catalog.pg_authid r ON r.oid = n.nspowner
WHERE pg_has_role(n.nspowner, 'USAGE') OR has_schema_privilege(n.oid, 'CREATE, USAGE');

CREATE VIEW information_schema.tables AS
SELECT current_database() AS table_catalog, n.nspname AS table_schema,
       c.relname AS table_name,
       CASE WHEN n.oid = pg_my_temp_schema() THEN 'LOCAL TEMPORARY'
            WHEN c.relkind IN ('r', 'p') THEN 'BASE TABLE'
            WHEN c.relkind = 'v' THEN 'VIEW'
            WHEN c.relkind = 'f' THEN 'FOREIGN' END AS table_type,
       NULL::name AS self_referencing_column_name, NULL::text AS reference_generation,
       CASE WHEN t.typname IS NOT NULL THEN current_database() END AS user_defined_type_catalog,
       nt.nspname AS user_defined_type_schema, t.typname AS user_defined_type_name,
       CASE WHEN c.relkind IN ('r', 'p') THEN 'YES' ELSE 'NO' END AS is_insertable_into,
       CASE WHEN t.typname IS NOT NULL THEN 'YES' ELSE 'NO' END AS is_typed,
       NULL::text AS commit_action
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN (pg_catalog.pg_type t JOIN pg_catalog.pg_namespace nt ON nt.oid = t.typnamespace)
       ON t.oid = c.reloftype
WHERE c.relkind IN ('r', 'v', 'f', 'p') AND NOT pg_is_other_temp_schema(n.oid)
  AND (pg_has_role(c.relowner, 'USAGE')
       OR has_table_privilege(
              c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
       OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.views AS
SELECT current_database() AS table_catalog, n.nspname AS table_schema,
       c.relname AS table_name,
       CASE WHEN pg_has_role(c.relowner, 'USAGE') THEN pg_get_viewdef(c.oid)
            END AS view_definition,
       'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into,
       'NO' AS is_trigger_updatable, 'NO' AS is_trigger_deletable,
       'NO' AS is_trigger_insertable_into
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'v' AND NOT pg_is_other_temp_schema(n.oid)
  AND (pg_has_role(c.relowner, 'USAGE')
       OR has_table_privilege(
              c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
       OR has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.columns AS
SELECT current_database() AS table_catalog, nc.nspname AS table_schema,
       c.relname AS table_name, a.attname AS column_name, a.attnum AS ordinal_position,
       CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid)
            END AS column_default,
       CASE WHEN a.attnotnull OR (a.own_kind = 'd' AND EXISTS (
                     SELECT 1 FROM pg_catalog.pg_type dt
                     WHERE dt.oid = a.atttypid AND dt.typnotnull))
            THEN 'NO' ELSE 'YES' END AS is_nullable,
       CASE WHEN bt.typelem <> 0 AND bt.typlen = -1 THEN 'ARRAY'
            WHEN nbt.nspname = 'pg_catalog' THEN format_type(bt.oid, NULL)
            ELSE 'USER-DEFINED' END AS data_type,
       CASE WHEN a.mod = -1 THEN NULL
            WHEN a.base IN (1042, 1043) THEN a.mod - 4
            WHEN a.base IN (1560, 1562) THEN a.mod END AS character_maximum_length,
       CASE WHEN a.base IN (25, 1042, 1043)
            THEN CASE WHEN a.mod = -1 THEN 1073741824 ELSE (a.mod - 4) * 4 END
            END AS character_octet_length,
       CASE a.base WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24
            WHEN 701 THEN 53
            WHEN 1700 THEN CASE WHEN a.mod <> -1 THEN ((a.mod - 4) >> 16) & 65535 END
            END AS numeric_precision,
       CASE WHEN a.base IN (20, 21, 23, 700, 701) THEN 2 WHEN a.base = 1700 THEN 10
            END AS numeric_precision_radix,
       CASE WHEN a.base IN (20, 21, 23) THEN 0
            WHEN a.base = 1700 AND a.mod <> -1 THEN (a.mod - 4) & 65535 END AS numeric_scale,
       CASE WHEN a.base = 1082 THEN 0
            WHEN a.base IN (1083, 1114, 1184, 1266) THEN CASE WHEN a.mod < 0 THEN 6 ELSE a.mod END
            WHEN a.base = 1186 THEN CASE WHEN a.mod < 0 OR a.mod & 65535 = 65535 THEN 6
                                         ELSE a.mod & 65535 END END AS datetime_precision,
       CASE WHEN a.base = 1186
            THEN upper(substring(format_type(a.base, a.mod) FROM 'interval[()0-9]* (.*)'))
            END AS interval_type,
       NULL::int4 AS interval_precision,
       NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
       NULL::name AS character_set_name,
       CASE WHEN nco.nspname IS NOT NULL THEN current_database() END AS collation_catalog,
       nco.nspname AS collation_schema, co.collname AS collation_name,
       CASE WHEN a.own_kind = 'd' THEN current_database() END AS domain_catalog,
       CASE WHEN a.own_kind = 'd' THEN nt.nspname END AS domain_schema,
       CASE WHEN a.own_kind = 'd' THEN a.own_name END AS domain_name,
       current_database() AS udt_catalog, nbt.nspname AS udt_schema, bt.typname AS udt_name,
       NULL::name AS scope_catalog, NULL::name AS scope_schema, NULL::name AS scope_name,
       NULL::int4 AS maximum_cardinality,
       a.attnum::text AS dtd_identifier, 'NO' AS is_self_referencing,
       CASE WHEN a.attidentity IN ('a', 'd') THEN 'YES' ELSE 'NO' END AS is_identity,
       CASE a.attidentity WHEN 'a' THEN 'ALWAYS' WHEN 'd' THEN 'BY DEFAULT'
            END AS identity_generation,
       s.seqstart::text AS identity_start, s.seqincrement::text AS identity_increment,
       s.seqmax::text AS identity_maximum, s.seqmin::text AS identity_minimum,
       CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END AS identity_cycle,
       CASE WHEN a.attgenerated <> '' THEN 'ALWAYS' ELSE 'NEVER' END AS is_generated,
       CASE WHEN a.attgenerated <> '' THEN pg_get_expr(d.adbin, d.adrelid)
            END AS generation_expression,
       CASE WHEN c.relkind IN ('r', 'p') THEN 'YES' ELSE 'NO' END AS is_updatable
FROM (SELECT a.*, t.typname AS own_name, t.typtype AS own_kind,
             t.typnamespace AS own_namespace,
             CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END AS base,
             CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END AS mod,
             t.typcollation AS own_collation
      FROM pg_catalog.pg_attribute a
      JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
      WHERE a.attnum > 0 AND NOT a.attisdropped) a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace nc ON nc.oid = c.relnamespace
JOIN pg_catalog.pg_namespace nt ON nt.oid = a.own_namespace
JOIN pg_catalog.pg_type bt ON bt.oid = a.base
JOIN pg_catalog.pg_namespace nbt ON nbt.oid = bt.typnamespace
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN (pg_catalog.pg_collation co
           JOIN pg_catalog.pg_namespace nco ON nco.oid = co.collnamespace)
       ON co.oid = a.attcollation AND (nco.nspname, co.collname) <> ('pg_catalog', 'default')
LEFT JOIN (pg_catalog.pg_depend dep JOIN pg_catalog.pg_sequence s ON s.seqrelid = dep.objid)
       ON dep.classid = 1259 AND dep.deptype = 'i' AND dep.refclassid = 1259
      AND dep.refobjid = a.attrelid AND dep.refobjsubid = a.attnum
WHERE c.relkind IN ('r', 'v', 'f', 'p') AND NOT pg_is_other_temp_schema(nc.oid)
  AND (pg_has_role(c.relowner, 'USAGE')
       OR has_column_privilege(c.oid, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.attributes AS
SELECT current_database() AS udt_catalog, nc.nspname AS udt_schema,
       c.relname AS udt_name, a.attname AS attribute_name, a.attnum AS ordinal_position,
       pg_get_expr(d.adbin, d.adrelid) AS attribute_default,
       CASE WHEN a.attnotnull THEN 'NO' ELSE 'YES' END AS is_nullable,
       CASE WHEN bt.typelem <> 0 AND bt.typlen = -1 THEN 'ARRAY'
            WHEN nbt.nspname = 'pg_catalog' THEN format_type(bt.oid, NULL)
            ELSE 'USER-DEFINED' END AS data_type,
       CASE WHEN a.mod = -1 THEN NULL
            WHEN a.base IN (1042, 1043) THEN a.mod - 4
            WHEN a.base IN (1560, 1562) THEN a.mod END AS character_maximum_length,
       CASE WHEN a.base IN (25, 1042, 1043)
            THEN CASE WHEN a.mod = -1 THEN 1073741824 ELSE (a.mod - 4) * 4 END
            END AS character_octet_length,
       NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
       NULL::name AS character_set_name,
       CASE WHEN nco.nspname IS NOT NULL THEN current_database() END AS collation_catalog,
       nco.nspname AS collation_schema, co.collname AS collation_name,
       CASE a.base WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24
            WHEN 701 THEN 53
            WHEN 1700 THEN CASE WHEN a.mod <> -1 THEN ((a.mod - 4) >> 16) & 65535 END
            END AS numeric_precision,
       CASE WHEN a.base IN (20, 21, 23, 700, 701) THEN 2 WHEN a.base = 1700 THEN 10
            END AS numeric_precision_radix,
       CASE WHEN a.base IN (20, 21, 23) THEN 0
            WHEN a.base = 1700 AND a.mod <> -1 THEN (a.mod - 4) & 65535 END AS numeric_scale,
       CASE WHEN a.base = 1082 THEN 0
            WHEN a.base IN (1083, 1114, 1184, 1266) THEN CASE WHEN a.mod < 0 THEN 6 ELSE a.mod END
            WHEN a.base = 1186 THEN CASE WHEN a.mod < 0 OR a.mod & 65535 = 65535 THEN 6
                                         ELSE a.mod & 65535 END END AS datetime_precision,
       CASE WHEN a.base = 1186
            THEN upper(substring(format_type(a.base, a.mod) FROM 'interval[()0-9]* (.*)'))
            END AS interval_type,
       NULL::int4 AS interval_precision,
       current_database() AS attribute_udt_catalog, nbt.nspname AS attribute_udt_schema,
       bt.typname AS attribute_udt_name,
       NULL::name AS scope_catalog, NULL::name AS scope_schema, NULL::name AS scope_name,
       NULL::int4 AS maximum_cardinality,
       a.attnum::text AS dtd_identifier, 'NO' AS is_derived_reference_attribute
FROM (SELECT a.*, t.typname AS own_name, t.typtype AS own_kind,
             t.typnamespace AS own_namespace,
             CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END AS base,
             CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END AS mod,
             t.typcollation AS own_collation
      FROM pg_catalog.pg_attribute a
      JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
      WHERE a.attnum > 0 AND NOT a.attisdropped) a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid AND c.relkind = 'c'
JOIN pg_catalog.pg_namespace nc ON nc.oid = c.relnamespace
JOIN pg_catalog.pg_type bt ON bt.oid = a.base
JOIN pg_catalog.pg_namespace nbt ON nbt.oid = bt.typnamespace
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
LEFT JOIN (pg_catalog.pg_collation co
           JOIN pg_catalog.pg_namespace nco ON nco.oid = co.collnamespace)
       ON co.oid = a.attcollation AND (nco.nspname, co.collname) <> ('pg_catalog', 'default')
WHERE pg_has_role(c.relowner, 'USAGE')
   OR has_type_privilege(c.reltype, 'USAGE');

CREATE VIEW information_schema.domains AS
SELECT current_database() AS domain_catalog, nt.nspname AS domain_schema,
       t.typname AS domain_name,
       CASE WHEN bt.typelem <> 0 AND bt.typlen = -1 THEN 'ARRAY'
            WHEN nbt.nspname = 'pg_catalog' THEN format_type(bt.oid, NULL)
            ELSE 'USER-DEFINED' END AS data_type,
       CASE WHEN t.typtypmod = -1 THEN NULL
            WHEN t.typbasetype IN (1042, 1043) THEN t.typtypmod - 4
            WHEN t.typbasetype IN (1560, 1562) THEN t.typtypmod END AS character_maximum_length,
       CASE WHEN t.typbasetype IN (25, 1042, 1043)
            THEN CASE WHEN t.typtypmod = -1 THEN 1073741824 ELSE (t.typtypmod - 4) * 4 END
            END AS character_octet_length,
       NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
       NULL::name AS character_set_name,
       CASE WHEN nco.nspname IS NOT NULL THEN current_database() END AS collation_catalog,
       nco.nspname AS collation_schema, co.collname AS collation_name,
       CASE t.typbasetype WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24
            WHEN 701 THEN 53
            WHEN 1700 THEN CASE WHEN t.typtypmod <> -1 THEN ((t.typtypmod - 4) >> 16) & 65535 END
            END AS numeric_precision,
       CASE WHEN t.typbasetype IN (20, 21, 23, 700, 701) THEN 2 WHEN t.typbasetype = 1700 THEN 10
            END AS numeric_precision_radix,
       CASE WHEN t.typbasetype IN (20, 21, 23) THEN 0
            WHEN t.typbasetype = 1700 AND t.typtypmod <> -1 THEN (t.typtypmod - 4) & 65535 END AS numeric_scale,
       CASE WHEN t.typbasetype = 1082 THEN 0
            WHEN t.typbasetype IN (1083, 1114, 1184, 1266) THEN CASE WHEN t.typtypmod < 0 THEN 6 ELSE t.typtypmod END
            WHEN t.typbasetype = 1186 THEN CASE WHEN t.typtypmod < 0 OR t.typtypmod & 65535 = 65535 THEN 6
                                         ELSE t.typtypmod & 65535 END END AS datetime_precision,
       CASE WHEN t.typbasetype = 1186
            THEN upper(substring(format_type(t.typbasetype, t.typtypmod) FROM 'interval[()0-9]* (.*)'))
            END AS interval_type,
       NULL::int4 AS interval_precision,
       t.typdefault AS domain_default, current_database() AS udt_catalog,
       nbt.nspname AS udt_schema, bt.typname AS udt_name,
       NULL::name AS scope_catalog, NULL::name AS scope_schema, NULL::name AS scope_name,
       NULL::int4 AS maximum_cardinality,
       '1'::text AS dtd_identifier
FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_namespace nt ON nt.oid = t.typnamespace
JOIN pg_catalog.pg_type bt ON bt.oid = t.typbasetype
JOIN pg_catalog.pg_namespace nbt ON nbt.oid = bt.typnamespace
LEFT JOIN (pg_catalog.pg_collation co
           JOIN pg_catalog.pg_namespace nco ON nco.oid = co.collnamespace)
       ON co.oid = t.typcollation AND (nco.nspname, co.collname) <> ('pg_catalog', 'default')
WHERE t.typtype = 'd' AND (pg_has_role(t.typowner, 'USAGE')
                           OR has_type_privilege(t.oid, 'USAGE'));

CREATE VIEW information_schema.domain_constraints AS
SELECT current_database() AS constraint_catalog, nk.nspname AS constraint_schema,
       k.conname AS constraint_name, current_database() AS domain_catalog,
       nt.nspname AS domain_schema, t.typname AS domain_name,
       CASE WHEN k.condeferrable THEN 'YES' ELSE 'NO' END AS is_deferrable,
       CASE WHEN k.condeferred THEN 'YES' ELSE 'NO' END AS initially_deferred
FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_namespace nk ON nk.oid = k.connamespace
JOIN pg_catalog.pg_type t ON t.oid = k.contypid
JOIN pg_catalog.pg_namespace nt ON nt.oid = t.typnamespace
WHERE pg_has_role(t.typowner, 'USAGE') OR has_type_privilege(t.oid, 'USAGE');

CREATE VIEW information_schema.domain_udt_usage AS
SELECT current_database() AS udt_catalog, nbt.nspname AS udt_schema,
       bt.typname AS udt_name, current_database() AS domain_catalog,
       nt.nspname AS domain_schema, t.typname AS domain_name
FROM pg_catalog.pg_type t
JOIN pg_catalog.pg_namespace nt ON nt.oid = t.typnamespace
JOIN pg_catalog.pg_type bt ON bt.oid = t.typbasetype
JOIN pg_catalog.pg_namespace nbt ON nbt.oid = bt.typnamespace
WHERE t.typtype = 'd' AND pg_has_role(bt.typowner, 'USAGE');

CREATE VIEW information_schema.column_domain_usage AS
SELECT current_database() AS domain_catalog, nt.nspname AS domain_schema,
       t.typname AS domain_name, current_database() AS table_catalog,
       nc.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace nc ON nc.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
JOIN pg_catalog.pg_namespace nt ON nt.oid = t.typnamespace
WHERE t.typtype = 'd' AND c.relkind IN ('r', 'v', 'f', 'p') AND a.attnum > 0
  AND NOT a.attisdropped AND pg_has_role(t.typowner, 'USAGE');

CREATE VIEW information_schema.column_udt_usage AS
SELECT current_database() AS udt_catalog, nbt.nspname AS udt_schema,
       bt.typname AS udt_name, current_database() AS table_catalog,
       nc.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace nc ON nc.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
JOIN pg_catalog.pg_type bt
  ON bt.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
JOIN pg_catalog.pg_namespace nbt ON nbt.oid = bt.typnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'f', 'p')
  AND pg_has_role(bt.typowner, 'USAGE');

CREATE VIEW information_schema.column_column_usage AS
SELECT DISTINCT current_database() AS table_catalog, n.nspname AS table_schema,
       c.relname AS table_name, source.attname AS column_name,
       generated.attname AS dependent_column
FROM pg_catalog.pg_depend d
JOIN pg_catalog.pg_attrdef ad ON ad.oid = d.objid
JOIN pg_catalog.pg_class c ON c.oid = ad.adrelid AND c.oid = d.refobjid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute generated
  ON generated.attrelid = ad.adrelid AND generated.attnum = ad.adnum
JOIN pg_catalog.pg_attribute source
  ON source.attrelid = d.refobjid AND source.attnum = d.refobjsubid
WHERE d.classid = 2604 AND d.refclassid = 1259 AND generated.attgenerated = 's'
  AND source.attnum <> generated.attnum AND pg_has_role(c.relowner, 'USAGE');

CREATE VIEW information_schema.character_sets AS
SELECT NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
       pg_encoding_to_char(d.encoding) AS character_set_name,
       CASE WHEN d.encoding = 6 THEN 'UCS'::name ELSE pg_encoding_to_char(d.encoding)
            END AS character_repertoire,
       pg_encoding_to_char(d.encoding) AS form_of_use,
       current_database() AS default_collate_catalog, n.nspname AS default_collate_schema,
       c.collname AS default_collate_name
FROM pg_catalog.pg_database d
LEFT JOIN (pg_catalog.pg_collation c JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace)
       ON c.collcollate = d.datcollate AND c.collctype = d.datctype
WHERE d.datname = current_database()
ORDER BY char_length(c.collname) DESC, c.collname
LIMIT 1;

CREATE VIEW information_schema.collations AS
SELECT current_database() AS collation_catalog, n.nspname AS collation_schema,
       c.collname AS collation_name, 'NO PAD' AS pad_attribute
FROM pg_catalog.pg_collation c
JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace
WHERE c.collencoding IN (-1, 6);

CREATE VIEW information_schema.collation_character_set_applicability AS
SELECT current_database() AS collation_catalog, n.nspname AS collation_schema,
       c.collname AS collation_name, NULL::name AS character_set_catalog,
       NULL::name AS character_set_schema, 'UTF8'::name AS character_set_name
FROM pg_catalog.pg_collation c
JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace
WHERE c.collencoding IN (-1, 6);

CREATE VIEW information_schema.sequences AS
SELECT current_database() AS sequence_catalog, n.nspname AS sequence_schema,
       c.relname AS sequence_name, format_type(s.seqtypid, NULL) AS data_type,
       CASE s.seqtypid WHEN 21 THEN 16 WHEN 23 THEN 32 ELSE 64 END AS numeric_precision,
       2 AS numeric_precision_radix, 0 AS numeric_scale, s.seqstart::text AS start_value,
       s.seqmin::text AS minimum_value, s.seqmax::text AS maximum_value,
       s.seqincrement::text AS increment,
       CASE WHEN s.seqcycle THEN 'YES' ELSE 'NO' END AS cycle_option
FROM pg_catalog.pg_sequence s
JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid AND c.relkind = 'S'
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE NOT pg_is_other_temp_schema(n.oid)
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d
                  WHERE d.classid = 1259 AND d.objid = c.oid AND d.deptype = 'i')
  AND (pg_has_role(c.relowner, 'USAGE')
       OR has_sequence_privilege(c.oid, 'SELECT, UPDATE, USAGE'));

CREATE VIEW information_schema.table_constraints AS
SELECT current_database() AS constraint_catalog, nk.nspname AS constraint_schema,
       k.conname AS constraint_name, current_database() AS table_catalog,
       nc.nspname AS table_schema, c.relname AS table_name,
       CASE k.contype WHEN 'c' THEN 'CHECK' WHEN 'f' THEN 'FOREIGN KEY'
            WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' END AS constraint_type,
       CASE WHEN k.condeferrable THEN 'YES' ELSE 'NO' END AS is_deferrable,
       CASE WHEN k.condeferred THEN 'YES' ELSE 'NO' END AS initially_deferred,
       'YES' AS enforced,
       CASE WHEN k.contype = 'u'
            THEN CASE WHEN (SELECT i.indnullsnotdistinct FROM pg_catalog.pg_index i
                            WHERE i.indexrelid = k.conindid) THEN 'NO' ELSE 'YES' END
            END AS nulls_distinct
FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_namespace nk ON nk.oid = k.connamespace
JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
JOIN pg_catalog.pg_namespace nc ON nc.oid = c.relnamespace
WHERE k.contype IN ('c', 'f', 'p', 'u') AND c.relkind IN ('r', 'p')
  AND NOT pg_is_other_temp_schema(nc.oid)
  AND (pg_has_role(c.relowner, 'USAGE')
       OR has_table_privilege(
              c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
       OR has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES'))
UNION ALL
SELECT current_database(), nc.nspname,
       nc.oid::text || '_' || c.oid::text || '_' || a.attnum::text || '_not_null',
       current_database(), nc.nspname, c.relname, 'CHECK', 'NO', 'NO', 'YES', NULL
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace nc ON nc.oid = c.relnamespace
WHERE a.attnotnull AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p')
  AND NOT pg_is_other_temp_schema(nc.oid)
  AND (pg_has_role(c.relowner, 'USAGE')
       OR has_table_privilege(
              c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
       OR has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.check_constraints AS
SELECT current_database() AS constraint_catalog, nk.nspname AS constraint_schema,
       k.conname AS constraint_name,
       substring(pg_get_constraintdef(k.oid), 7) AS check_clause
FROM pg_catalog.pg_constraint k
LEFT JOIN pg_catalog.pg_namespace nk ON nk.oid = k.connamespace
LEFT JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
LEFT JOIN pg_catalog.pg_type t ON t.oid = k.contypid
WHERE k.contype = 'c' AND pg_has_role(coalesce(c.relowner, t.typowner), 'USAGE')
UNION
SELECT current_database(), n.nspname,
       n.oid::text || '_' || c.oid::text || '_' || a.attnum::text || '_not_null',
       a.attname || ' IS NOT NULL'
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attnotnull AND c.relkind IN ('r', 'p')
  AND pg_has_role(c.relowner, 'USAGE');

CREATE VIEW information_schema.referential_constraints AS
SELECT current_database() AS constraint_catalog, nk.nspname AS constraint_schema,
       k.conname AS constraint_name,
       CASE WHEN nu.nspname IS NOT NULL THEN current_database()
            END AS unique_constraint_catalog,
       nu.nspname AS unique_constraint_schema, u.conname AS unique_constraint_name,
       CASE k.confmatchtype WHEN 'f' THEN 'FULL' WHEN 'p' THEN 'PARTIAL' WHEN 's' THEN 'NONE'
            END AS match_option,
       CASE k.confupdtype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL'
            WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT' WHEN 'a' THEN 'NO ACTION'
            END AS update_rule,
       CASE k.confdeltype WHEN 'c' THEN 'CASCADE' WHEN 'n' THEN 'SET NULL'
            WHEN 'd' THEN 'SET DEFAULT' WHEN 'r' THEN 'RESTRICT' WHEN 'a' THEN 'NO ACTION'
            END AS delete_rule
FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_namespace nk ON nk.oid = k.connamespace
JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
LEFT JOIN pg_catalog.pg_constraint u
       ON u.conindid = k.conindid AND u.conrelid = k.confrelid AND u.contype IN ('p', 'u')
LEFT JOIN pg_catalog.pg_namespace nu ON nu.oid = u.connamespace
WHERE k.contype = 'f'
  AND (pg_has_role(c.relowner, 'USAGE')
       OR has_table_privilege(
              c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
       OR has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.key_column_usage AS
SELECT current_database() AS constraint_catalog, x.constraint_schema, x.constraint_name,
       current_database() AS table_catalog, x.table_schema, x.table_name,
       a.attname AS column_name, x.position AS ordinal_position,
       CASE WHEN x.contype = 'f'
            THEN array_position((SELECT u.conkey FROM pg_catalog.pg_constraint u
                                 WHERE u.conindid = x.conindid AND u.conrelid = x.confrelid
                                   AND u.contype IN ('p', 'u') LIMIT 1),
                                x.confkey[x.position])
            END AS position_in_unique_constraint
FROM (SELECT c.oid AS relation, c.relowner, nk.nspname AS constraint_schema,
             k.conname AS constraint_name, nc.nspname AS table_schema,
             c.relname AS table_name, k.contype, k.conindid, k.confrelid, k.conkey, k.confkey, g.position
      FROM pg_catalog.pg_constraint k
      JOIN pg_catalog.pg_namespace nk ON nk.oid = k.connamespace
      JOIN pg_catalog.pg_class c ON c.oid = k.conrelid
      JOIN pg_catalog.pg_namespace nc ON nc.oid = c.relnamespace
      CROSS JOIN LATERAL generate_subscripts(k.conkey, 1) AS g(position)
      WHERE k.contype IN ('p', 'u', 'f') AND c.relkind IN ('r', 'p')
        AND NOT pg_is_other_temp_schema(nc.oid)) x
JOIN pg_catalog.pg_attribute a ON a.attrelid = x.relation AND a.attnum = x.conkey[x.position]
WHERE NOT a.attisdropped
  AND (pg_has_role(x.relowner, 'USAGE')
       OR has_column_privilege(x.relation, a.attnum, 'SELECT, INSERT, UPDATE, REFERENCES'));

CREATE VIEW information_schema.constraint_column_usage AS
SELECT DISTINCT current_database() AS table_catalog, nc.nspname AS table_schema,
       c.relname AS table_name, a.attname AS column_name,
       current_database() AS constraint_catalog, nk.nspname AS constraint_schema,
       k.conname AS constraint_name
FROM (SELECT d.objid AS constraint_oid, d.refobjid AS relation, d.refobjsubid AS attnum
      FROM pg_catalog.pg_depend d
      JOIN pg_catalog.pg_constraint k ON k.oid = d.objid
      WHERE d.classid = 2606 AND d.refclassid = 1259 AND k.contype = 'c' AND d.refobjsubid > 0
      UNION ALL
      SELECT k.oid, CASE WHEN k.contype = 'f' THEN k.confrelid ELSE k.conrelid END,
             u.attnum
      FROM pg_catalog.pg_constraint k
      CROSS JOIN LATERAL unnest(CASE WHEN k.contype = 'f' THEN k.confkey
                                     ELSE k.conkey END) AS u(attnum)
      WHERE k.contype IN ('p', 'u', 'f')) x
JOIN pg_catalog.pg_constraint k ON k.oid = x.constraint_oid
JOIN pg_catalog.pg_namespace nk ON nk.oid = k.connamespace
JOIN pg_catalog.pg_class c ON c.oid = x.relation
JOIN pg_catalog.pg_namespace nc ON nc.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = x.relation AND a.attnum = x.attnum
WHERE c.relkind IN ('r', 'p') AND NOT a.attisdropped AND pg_has_role(c.relowner, 'USAGE');

CREATE VIEW information_schema.constraint_table_usage AS
SELECT current_database() AS table_catalog, nc.nspname AS table_schema,
       c.relname AS table_name, current_database() AS constraint_catalog,
       nk.nspname AS constraint_schema, k.conname AS constraint_name
FROM pg_catalog.pg_constraint k
JOIN pg_catalog.pg_namespace nk ON nk.oid = k.connamespace
JOIN pg_catalog.pg_class c
  ON c.oid = CASE WHEN k.contype = 'f' THEN k.confrelid ELSE k.conrelid END
JOIN pg_catalog.pg_namespace nc ON nc.oid = c.relnamespace
WHERE k.contype IN ('f', 'p', 'u') AND c.relkind IN ('r', 'p')
  AND pg_has_role(c.relowner, 'USAGE');

CREATE VIEW information_schema.table_privileges AS
SELECT gr.rolname AS grantor, ge.rolname AS grantee,
       current_database() AS table_catalog, n.nspname AS table_schema,
       c.relname AS table_name, x.privilege_type,
       CASE WHEN pg_has_role(ge.oid, c.relowner, 'USAGE') OR x.is_grantable THEN 'YES'
            ELSE 'NO' END AS is_grantable,
       CASE WHEN x.privilege_type = 'SELECT' THEN 'YES' ELSE 'NO' END AS with_hierarchy
FROM pg_catalog.pg_class c
CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) x
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_authid gr ON gr.oid = x.grantor
JOIN (SELECT oid, rolname FROM pg_catalog.pg_authid
      UNION ALL SELECT 0::oid, 'PUBLIC') ge ON ge.oid = x.grantee
WHERE c.relkind IN ('r', 'v', 'f', 'p')
  AND x.privilege_type IN ('INSERT', 'SELECT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES',
                           'TRIGGER')
  AND (pg_has_role(gr.oid, 'USAGE') OR pg_has_role(ge.oid, 'USAGE') OR ge.rolname = 'PUBLIC');

CREATE VIEW information_schema.role_table_grants AS
SELECT grantor, grantee, table_catalog, table_schema, table_name, privilege_type,
       is_grantable, with_hierarchy
FROM information_schema.table_privileges
WHERE grantor IN (SELECT role_name FROM information_schema.enabled_roles)
   OR grantee IN (SELECT role_name FROM information_schema.enabled_roles);

CREATE VIEW information_schema.column_privileges AS
SELECT gr.rolname AS grantor, ge.rolname AS grantee,
       current_database() AS table_catalog, n.nspname AS table_schema,
       x.relname AS table_name, x.attname AS column_name, x.privilege_type,
       CASE WHEN pg_has_role(ge.oid, x.relowner, 'USAGE') OR x.is_grantable THEN 'YES'
            ELSE 'NO' END AS is_grantable
FROM (SELECT c.relname, c.relnamespace, c.relowner, a.attname, g.grantor, g.grantee,
             g.privilege_type, g.is_grantable
      FROM pg_catalog.pg_class c
      CROSS JOIN LATERAL aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) g
      JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
      WHERE c.relkind IN ('r', 'v', 'f', 'p') AND a.attnum > 0 AND NOT a.attisdropped
      UNION
      SELECT c.relname, c.relnamespace, c.relowner, a.attname, g.grantor, g.grantee,
             g.privilege_type, g.is_grantable
      FROM pg_catalog.pg_attribute a
      JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
      CROSS JOIN LATERAL aclexplode(coalesce(a.attacl, acldefault('c', c.relowner))) g
      WHERE c.relkind IN ('r', 'v', 'f', 'p') AND a.attnum > 0 AND NOT a.attisdropped) x
JOIN pg_catalog.pg_namespace n ON n.oid = x.relnamespace
JOIN pg_catalog.pg_authid gr ON gr.oid = x.grantor
JOIN (SELECT oid, rolname FROM pg_catalog.pg_authid
      UNION ALL SELECT 0::oid, 'PUBLIC') ge ON ge.oid = x.grantee
WHERE x.privilege_type IN ('INSERT', 'SELECT', 'UPDATE', 'REFERENCES')
  AND (pg_has_role(gr.oid, 'USAGE') OR pg_has_role(ge.oid, 'USAGE') OR ge.rolname = 'PUBLIC');

CREATE VIEW information_schema.role_column_grants AS
SELECT grantor, grantee, table_catalog, table_schema, table_name, column_name,
       privilege_type, is_grantable
FROM information_schema.column_privileges
WHERE grantor IN (SELECT role_name FROM information_schema.enabled_roles)
   OR grantee IN (SELECT role_name FROM information_schema.enabled_roles);

CREATE VIEW information_schema.routine_privileges AS
SELECT gr.rolname AS grantor, ge.rolname AS grantee,
       current_database() AS specific_catalog, n.nspname AS specific_schema,
       (p.proname || '_' || p.oid::text) AS specific_name,
       current_database() AS routine_catalog, n.nspname AS routine_schema,
       p.proname AS routine_name, x.privilege_type,
       CASE WHEN pg_has_role(ge.oid, p.proowner, 'USAGE') OR x.is_grantable THEN 'YES'
            ELSE 'NO' END AS is_grantable
FROM pg_catalog.pg_proc p
CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) x
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_authid gr ON gr.oid = x.grantor
JOIN (SELECT oid, rolname FROM pg_catalog.pg_authid
      UNION ALL SELECT 0::oid, 'PUBLIC') ge ON ge.oid = x.grantee
WHERE x.privilege_type = 'EXECUTE' AND (pg_has_role(gr.oid, 'USAGE') OR pg_has_role(ge.oid, 'USAGE') OR ge.rolname = 'PUBLIC');

CREATE VIEW information_schema.role_routine_grants AS
SELECT grantor, grantee, specific_catalog, specific_schema, specific_name,
       routine_catalog, routine_schema, routine_name, privilege_type, is_grantable
FROM information_schema.routine_privileges
WHERE grantor IN (SELECT role_name FROM information_schema.enabled_roles)
   OR grantee IN (SELECT role_name FROM information_schema.enabled_roles);

CREATE VIEW information_schema.udt_privileges AS
SELECT gr.rolname AS grantor, ge.rolname AS grantee,
       current_database() AS udt_catalog, n.nspname AS udt_schema, t.typname AS udt_name,
       'TYPE USAGE' AS privilege_type,
       CASE WHEN pg_has_role(ge.oid, t.typowner, 'USAGE') OR x.is_grantable THEN 'YES'
            ELSE 'NO' END AS is_grantable
FROM pg_catalog.pg_type t
CROSS JOIN LATERAL aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) x
JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace
JOIN pg_catalog.pg_authid gr ON gr.oid = x.grantor
JOIN (SELECT oid, rolname FROM pg_catalog.pg_authid
      UNION ALL SELECT 0::oid, 'PUBLIC') ge ON ge.oid = x.grantee
WHERE t.typtype = 'c' AND x.privilege_type = 'USAGE' AND (pg_has_role(gr.oid, 'USAGE') OR pg_has_role(ge.oid, 'USAGE') OR ge.rolname = 'PUBLIC');

CREATE VIEW information_schema.role_udt_grants AS
SELECT grantor, grantee, udt_catalog, udt_schema, udt_name, privilege_type, is_grantable
FROM information_schema.udt_privileges
WHERE grantor IN (SELECT role_name FROM information_schema.enabled_roles)
   OR grantee IN (SELECT role_name FROM information_schema.enabled_roles);

CREATE VIEW information_schema.usage_privileges AS
SELECT r.rolname AS grantor, 'PUBLIC'::name AS grantee, current_database() AS object_catalog,
       n.nspname AS object_schema, c.collname AS object_name, 'COLLATION' AS object_type,
       'USAGE' AS privilege_type, 'NO' AS is_grantable
FROM pg_catalog.pg_collation c
JOIN pg_catalog.pg_namespace n ON n.oid = c.collnamespace
JOIN pg_catalog.pg_authid r ON r.oid = c.collowner
WHERE c.collencoding IN (-1, 6)
UNION ALL
SELECT gr.rolname, ge.rolname, current_database(), n.nspname, o.name, o.kind,
       x.privilege_type,
       CASE WHEN pg_has_role(ge.oid, o.owner, 'USAGE') OR x.is_grantable THEN 'YES'
            ELSE 'NO' END
FROM (SELECT t.typname AS name, t.typnamespace AS namespace, t.typowner AS owner,
             'DOMAIN' AS kind, coalesce(t.typacl, acldefault('T', t.typowner)) AS acl
      FROM pg_catalog.pg_type t WHERE t.typtype = 'd'
      UNION ALL
      SELECT c.relname, c.relnamespace, c.relowner, 'SEQUENCE',
             coalesce(c.relacl, acldefault('r', c.relowner))
      FROM pg_catalog.pg_class c WHERE c.relkind = 'S') o
CROSS JOIN LATERAL aclexplode(o.acl) x
JOIN pg_catalog.pg_namespace n ON n.oid = o.namespace
JOIN pg_catalog.pg_authid gr ON gr.oid = x.grantor
JOIN (SELECT oid, rolname FROM pg_catalog.pg_authid
      UNION ALL SELECT 0::oid, 'PUBLIC') ge ON ge.oid = x.grantee
WHERE x.privilege_type = 'USAGE' AND (pg_has_role(gr.oid, 'USAGE') OR pg_has_role(ge.oid, 'USAGE') OR ge.rolname = 'PUBLIC');

CREATE VIEW information_schema.role_usage_grants AS
SELECT grantor, grantee, object_catalog, object_schema, object_name, object_type,
       privilege_type, is_grantable
FROM information_schema.usage_privileges
WHERE grantor IN (SELECT role_name FROM information_schema.enabled_roles)
   OR grantee IN (SELECT role_name FROM information_schema.enabled_roles);

CREATE VIEW information_schema.user_defined_types AS
SELECT current_database() AS user_defined_type_catalog,
       n.nspname AS user_defined_type_schema, c.relname AS user_defined_type_name,
       'STRUCTURED' AS user_defined_type_category, 'YES' AS is_instantiable,
       NULL::text AS is_final, NULL::text AS ordering_form, NULL::text AS ordering_category,
       NULL::name AS ordering_routine_catalog, NULL::name AS ordering_routine_schema,
       NULL::name AS ordering_routine_name, NULL::text AS reference_type,
       NULL::text AS data_type,
       NULL::int4 AS character_maximum_length, NULL::int4 AS character_octet_length,
       NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
       NULL::name AS character_set_name,
       NULL::name AS collation_catalog, NULL::name AS collation_schema,
       NULL::name AS collation_name, NULL::int4 AS numeric_precision,
       NULL::int4 AS numeric_precision_radix, NULL::int4 AS numeric_scale,
       NULL::int4 AS datetime_precision, NULL::text AS interval_type,
       NULL::int4 AS interval_precision,
       NULL::name AS source_dtd_identifier, NULL::name AS ref_dtd_identifier
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = c.reltype
WHERE c.relkind = 'c' AND (pg_has_role(t.typowner, 'USAGE')
                           OR has_type_privilege(t.oid, 'USAGE'));

CREATE VIEW information_schema.view_table_usage AS
SELECT current_database() AS view_catalog, nv.nspname AS view_schema,
       v.relname AS view_name, current_database() AS table_catalog,
       nt.nspname AS table_schema, t.relname AS table_name
FROM (SELECT DISTINCT r.ev_class AS view_oid, d.refobjid AS table_oid
      FROM pg_catalog.pg_rewrite r
      JOIN pg_catalog.pg_depend d ON d.classid = 2618 AND d.objid = r.oid
      WHERE d.refclassid = 1259 AND d.deptype = 'n' AND d.refobjid <> r.ev_class) x
JOIN pg_catalog.pg_class v ON v.oid = x.view_oid AND v.relkind = 'v'
JOIN pg_catalog.pg_namespace nv ON nv.oid = v.relnamespace
JOIN pg_catalog.pg_class t ON t.oid = x.table_oid AND t.relkind IN ('r', 'v', 'f', 'p')
JOIN pg_catalog.pg_namespace nt ON nt.oid = t.relnamespace
WHERE pg_has_role(t.relowner, 'USAGE');

CREATE VIEW information_schema.view_column_usage AS
SELECT current_database() AS view_catalog, nv.nspname AS view_schema,
       v.relname AS view_name, current_database() AS table_catalog,
       nt.nspname AS table_schema, t.relname AS table_name, a.attname AS column_name
FROM (SELECT DISTINCT r.ev_class AS view_oid, d.refobjid AS table_oid, d.refobjsubid AS attnum
      FROM pg_catalog.pg_rewrite r
      JOIN pg_catalog.pg_depend d ON d.classid = 2618 AND d.objid = r.oid
      WHERE d.refclassid = 1259 AND d.deptype = 'n' AND d.refobjid <> r.ev_class) x
JOIN pg_catalog.pg_class v ON v.oid = x.view_oid AND v.relkind = 'v'
JOIN pg_catalog.pg_namespace nv ON nv.oid = v.relnamespace
JOIN pg_catalog.pg_class t ON t.oid = x.table_oid AND t.relkind IN ('r', 'v', 'f', 'p')
JOIN pg_catalog.pg_namespace nt ON nt.oid = t.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.attnum
WHERE pg_has_role(t.relowner, 'USAGE');

CREATE VIEW information_schema.view_routine_usage AS
SELECT current_database() AS table_catalog, nv.nspname AS table_schema,
       v.relname AS table_name, current_database() AS specific_catalog,
       np.nspname AS specific_schema, (p.proname || '_' || p.oid::text) AS specific_name
FROM (SELECT DISTINCT r.ev_class AS view_oid, d.refobjid AS table_oid
      FROM pg_catalog.pg_rewrite r
      JOIN pg_catalog.pg_depend d ON d.classid = 2618 AND d.objid = r.oid
      WHERE d.refclassid = 1255 AND d.deptype = 'n' AND d.refobjid <> r.ev_class) x
JOIN pg_catalog.pg_class v ON v.oid = x.view_oid AND v.relkind = 'v'
JOIN pg_catalog.pg_namespace nv ON nv.oid = v.relnamespace
JOIN pg_catalog.pg_proc p ON p.oid = x.table_oid
JOIN pg_catalog.pg_namespace np ON np.oid = p.pronamespace
WHERE pg_has_role(p.proowner, 'USAGE');

CREATE VIEW information_schema.routines AS
SELECT current_database() AS specific_catalog, n.nspname AS specific_schema,
       (p.proname || '_' || p.oid::text) AS specific_name,
       current_database() AS routine_catalog, n.nspname AS routine_schema,
       p.proname AS routine_name,
       CASE p.prokind WHEN 'f' THEN 'FUNCTION' WHEN 'p' THEN 'PROCEDURE' END AS routine_type,
       NULL::name AS module_catalog, NULL::name AS module_schema, NULL::name AS module_name,
       NULL::name AS udt_catalog, NULL::name AS udt_schema, NULL::name AS udt_name,
       CASE WHEN p.prokind = 'p' THEN NULL
            WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY'
            WHEN nt.nspname = 'pg_catalog' THEN format_type(t.oid, NULL)
            ELSE 'USER-DEFINED' END AS data_type,
       NULL::int4 AS character_maximum_length, NULL::int4 AS character_octet_length,
       NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
       NULL::name AS character_set_name,
       NULL::name AS collation_catalog, NULL::name AS collation_schema,
       NULL::name AS collation_name, NULL::int4 AS numeric_precision,
       NULL::int4 AS numeric_precision_radix, NULL::int4 AS numeric_scale,
       NULL::int4 AS datetime_precision, NULL::text AS interval_type,
       NULL::int4 AS interval_precision,
       CASE WHEN nt.nspname IS NOT NULL THEN current_database() END AS type_udt_catalog,
       nt.nspname AS type_udt_schema, t.typname AS type_udt_name,
       NULL::name AS scope_catalog, NULL::name AS scope_schema, NULL::name AS scope_name,
       NULL::int4 AS maximum_cardinality,
       CASE WHEN p.prokind <> 'p' THEN '0' END AS dtd_identifier,
       CASE WHEN l.lanname = 'sql' THEN 'SQL' ELSE 'EXTERNAL' END AS routine_body,
       CASE WHEN pg_has_role(p.proowner, 'USAGE') THEN p.prosrc END AS routine_definition,
       CASE WHEN l.lanname = 'c' THEN p.prosrc END AS external_name,
       upper(l.lanname) AS external_language, 'GENERAL' AS parameter_style,
       CASE WHEN p.provolatile = 'i' THEN 'YES' ELSE 'NO' END AS is_deterministic,
       'MODIFIES' AS sql_data_access,
       CASE WHEN p.prokind <> 'p' THEN CASE WHEN p.proisstrict THEN 'YES' ELSE 'NO' END
            END AS is_null_call,
       NULL::text AS sql_path, 'YES' AS schema_level_routine, 0 AS max_dynamic_result_sets,
       NULL::text AS is_user_defined_cast, NULL::text AS is_implicitly_invocable,
       CASE WHEN p.prosecdef THEN 'DEFINER' ELSE 'INVOKER' END AS security_type,
       NULL::name AS to_sql_specific_catalog, NULL::name AS to_sql_specific_schema,
       NULL::name AS to_sql_specific_name, 'NO' AS as_locator,
       NULL::timestamptz AS created, NULL::timestamptz AS last_altered,
       NULL::text AS new_savepoint_level, 'NO' AS is_udt_dependent,
       NULL::text AS result_cast_from_data_type, NULL::text AS result_cast_as_locator,
       NULL::int4 AS result_cast_char_max_length, NULL::int4 AS result_cast_char_octet_length,
       NULL::name AS result_cast_char_set_catalog, NULL::name AS result_cast_char_set_schema,
       NULL::name AS result_cast_char_set_name, NULL::name AS result_cast_collation_catalog,
       NULL::name AS result_cast_collation_schema, NULL::name AS result_cast_collation_name,
       NULL::int4 AS result_cast_numeric_precision,
       NULL::int4 AS result_cast_numeric_precision_radix,
       NULL::int4 AS result_cast_numeric_scale, NULL::int4 AS result_cast_datetime_precision,
       NULL::text AS result_cast_interval_type, NULL::int4 AS result_cast_interval_precision,
       NULL::name AS result_cast_type_udt_catalog, NULL::name AS result_cast_type_udt_schema,
       NULL::name AS result_cast_type_udt_name, NULL::name AS result_cast_scope_catalog,
       NULL::name AS result_cast_scope_schema, NULL::name AS result_cast_scope_name,
       NULL::int4 AS result_cast_maximum_cardinality,
       NULL::name AS result_cast_dtd_identifier
FROM pg_catalog.pg_proc p
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
JOIN pg_catalog.pg_language l ON l.oid = p.prolang
LEFT JOIN (pg_catalog.pg_type t JOIN pg_catalog.pg_namespace nt ON nt.oid = t.typnamespace)
       ON t.oid = p.prorettype AND p.prokind <> 'p'
WHERE pg_has_role(p.proowner, 'USAGE') OR has_function_privilege(p.oid, 'EXECUTE');

CREATE VIEW information_schema.parameters AS
SELECT current_database() AS specific_catalog, x.nspname AS specific_schema,
       (x.proname || '_' || x.oid::text) AS specific_name, x.position AS ordinal_position,
       CASE coalesce(x.proargmodes[x.position], 'i') WHEN 'i' THEN 'IN' WHEN 'o' THEN 'OUT'
            WHEN 'b' THEN 'INOUT' WHEN 'v' THEN 'IN' WHEN 't' THEN 'OUT' END AS parameter_mode,
       'NO' AS is_result, 'NO' AS as_locator,
       nullif(x.proargnames[x.position], '') AS parameter_name,
       CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY'
            WHEN nt.nspname = 'pg_catalog' THEN format_type(t.oid, NULL)
            ELSE 'USER-DEFINED' END AS data_type,
       NULL::int4 AS character_maximum_length, NULL::int4 AS character_octet_length,
       NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
       NULL::name AS character_set_name,
       NULL::name AS collation_catalog, NULL::name AS collation_schema,
       NULL::name AS collation_name, NULL::int4 AS numeric_precision,
       NULL::int4 AS numeric_precision_radix, NULL::int4 AS numeric_scale,
       NULL::int4 AS datetime_precision, NULL::text AS interval_type,
       NULL::int4 AS interval_precision,
       current_database() AS udt_catalog, nt.nspname AS udt_schema, t.typname AS udt_name,
       NULL::name AS scope_catalog, NULL::name AS scope_schema, NULL::name AS scope_name,
       NULL::int4 AS maximum_cardinality,
       x.position::text AS dtd_identifier,
       CASE WHEN pg_has_role(x.proowner, 'USAGE')
            THEN pg_get_function_arg_default(x.oid, x.position) END AS parameter_default
FROM (SELECT p.oid, p.proname, p.proowner, p.proargnames, p.proargmodes, n.nspname,
             p.proallargtypes AS types, p.proallargtypes IS NULL AS is_plain, p.proargtypes,
             g.position
      FROM pg_catalog.pg_proc p
      JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
      CROSS JOIN LATERAL generate_series(
          1, coalesce(cardinality(p.proallargtypes), p.pronargs)) AS g(position)
      WHERE pg_has_role(p.proowner, 'USAGE') OR has_function_privilege(p.oid, 'EXECUTE')) x
JOIN pg_catalog.pg_type t
  ON t.oid = CASE WHEN x.is_plain THEN x.proargtypes[x.position - 1] ELSE x.types[x.position] END
JOIN pg_catalog.pg_namespace nt ON nt.oid = t.typnamespace;

CREATE VIEW information_schema.data_type_privileges AS
SELECT current_database() AS object_catalog, x.object_schema, x.object_name, x.object_type,
       x.dtd_identifier
FROM (SELECT udt_schema AS object_schema, udt_name AS object_name,
             'USER-DEFINED TYPE' AS object_type, dtd_identifier
      FROM information_schema.attributes
      UNION ALL
      SELECT table_schema, table_name, 'TABLE', dtd_identifier
      FROM information_schema.columns
      UNION ALL
      SELECT domain_schema, domain_name, 'DOMAIN', dtd_identifier
      FROM information_schema.domains
      UNION ALL
      SELECT specific_schema, specific_name, 'ROUTINE', dtd_identifier
      FROM information_schema.parameters
      UNION ALL
      SELECT specific_schema, specific_name, 'ROUTINE', dtd_identifier
      FROM information_schema.routines) x;

CREATE VIEW information_schema.element_types AS
SELECT current_database() AS object_catalog, n.nspname AS object_schema,
       x.object_name, x.object_type,
       x.identifier AS collection_type_identifier,
       CASE WHEN nbt.nspname = 'pg_catalog' THEN format_type(bt.oid, NULL)
            ELSE 'USER-DEFINED' END AS data_type,
       NULL::int4 AS character_maximum_length, NULL::int4 AS character_octet_length,
       NULL::name AS character_set_catalog, NULL::name AS character_set_schema,
       NULL::name AS character_set_name,
       CASE WHEN nco.nspname IS NOT NULL THEN current_database() END AS collation_catalog,
       nco.nspname AS collation_schema, co.collname AS collation_name,
       NULL::int4 AS numeric_precision, NULL::int4 AS numeric_precision_radix,
       NULL::int4 AS numeric_scale, NULL::int4 AS datetime_precision,
       NULL::text AS interval_type, NULL::int4 AS interval_precision,
       NULL::text AS domain_default, current_database() AS udt_catalog,
       nbt.nspname AS udt_schema, bt.typname AS udt_name,
       NULL::name AS scope_catalog, NULL::name AS scope_schema, NULL::name AS scope_name,
       NULL::int4 AS maximum_cardinality,
       'a' || x.identifier AS dtd_identifier
FROM (SELECT c.relnamespace AS namespace, c.relname AS object_name,
             CASE WHEN c.relkind = 'c' THEN 'USER-DEFINED TYPE' ELSE 'TABLE' END AS object_type,
             a.attnum::text AS identifier, a.atttypid AS type, a.attcollation AS collation
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
      WHERE c.relkind IN ('r', 'v', 'f', 'c', 'p') AND a.attnum > 0 AND NOT a.attisdropped
      UNION ALL
      SELECT t.typnamespace, t.typname, 'DOMAIN', '1', t.typbasetype, t.typcollation
      FROM pg_catalog.pg_type t WHERE t.typtype = 'd'
      UNION ALL
      SELECT p.pronamespace, (p.proname || '_' || p.oid::text), 'ROUTINE', '0', p.prorettype, 0
      FROM pg_catalog.pg_proc p
      UNION ALL
      SELECT y.pronamespace, y.name, 'ROUTINE', y.position::text,
             CASE WHEN y.is_plain THEN y.proargtypes[y.position - 1]
                  ELSE y.proallargtypes[y.position] END, 0
      FROM (SELECT p.pronamespace, (p.proname || '_' || p.oid::text) AS name, p.proargtypes,
                   p.proallargtypes, p.proallargtypes IS NULL AS is_plain, g.position
            FROM pg_catalog.pg_proc p
            CROSS JOIN LATERAL generate_series(
                1, coalesce(cardinality(p.proallargtypes), p.pronargs)) AS g(position)) y) x
JOIN pg_catalog.pg_namespace n ON n.oid = x.namespace
JOIN pg_catalog.pg_type at ON at.oid = x.type AND at.typelem <> 0 AND at.typlen = -1
JOIN pg_catalog.pg_type bt ON bt.oid = at.typelem
JOIN pg_catalog.pg_namespace nbt ON nbt.oid = bt.typnamespace
LEFT JOIN (pg_catalog.pg_collation co
           JOIN pg_catalog.pg_namespace nco ON nco.oid = co.collnamespace)
       ON co.oid = x.collation AND (nco.nspname, co.collname) <> ('pg_catalog', 'default')
WHERE (n.nspname, x.object_name::text, x.object_type, x.identifier) IN (
          SELECT object_schema, object_name::text, object_type, dtd_identifier::text
          FROM information_schema.data_type_privileges);
