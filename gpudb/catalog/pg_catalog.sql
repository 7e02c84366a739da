-- The system views of pg_catalog over its base relations, with PostgreSQL 15's columns.
-- The binder casts each column to the type that the built-in catalog lists for it. Views that are
-- missing here are filled by gpudb.catalog.system or by a provider of the running server.

CREATE VIEW pg_catalog.pg_tables AS
SELECT n.nspname AS schemaname, c.relname AS tablename,
       pg_get_userbyid(c.relowner) AS tableowner, t.spcname AS tablespace,
       c.relhasindex AS hasindexes, c.relhasrules AS hasrules,
       c.relhastriggers AS hastriggers, c.relrowsecurity AS rowsecurity
FROM pg_catalog.pg_class c
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_tablespace t ON t.oid = c.reltablespace
WHERE c.relkind IN ('r', 'p');

CREATE VIEW pg_catalog.pg_views AS
SELECT n.nspname AS schemaname, c.relname AS viewname,
       pg_get_userbyid(c.relowner) AS viewowner, pg_get_viewdef(c.oid) AS definition
FROM pg_catalog.pg_class c
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'v';

CREATE VIEW pg_catalog.pg_matviews AS
SELECT n.nspname AS schemaname, c.relname AS matviewname,
       pg_get_userbyid(c.relowner) AS matviewowner, t.spcname AS tablespace,
       c.relhasindex AS hasindexes, c.relispopulated AS ispopulated,
       pg_get_viewdef(c.oid) AS definition
FROM pg_catalog.pg_class c
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_tablespace t ON t.oid = c.reltablespace
WHERE c.relkind = 'm';

CREATE VIEW pg_catalog.pg_indexes AS
SELECT n.nspname AS schemaname, c.relname AS tablename, i.relname AS indexname,
       t.spcname AS tablespace, pg_get_indexdef(i.oid) AS indexdef
FROM pg_catalog.pg_index x
JOIN pg_catalog.pg_class c ON c.oid = x.indrelid
JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_tablespace t ON t.oid = i.reltablespace
WHERE c.relkind IN ('r', 'm', 'p') AND i.relkind IN ('i', 'I');

CREATE VIEW pg_catalog.pg_sequences AS
SELECT n.nspname AS schemaname, c.relname AS sequencename,
       pg_get_userbyid(c.relowner) AS sequenceowner, s.seqtypid::regtype AS data_type,
       s.seqstart AS start_value, s.seqmin AS min_value, s.seqmax AS max_value,
       s.seqincrement AS increment_by, s.seqcycle AS cycle, s.seqcache AS cache_size,
       CASE WHEN has_sequence_privilege(c.oid, 'SELECT,USAGE')
            THEN pg_sequence_last_value(c.oid::regclass) END AS last_value
FROM pg_catalog.pg_sequence s
JOIN pg_catalog.pg_class c ON c.oid = s.seqrelid
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S' AND NOT pg_is_other_temp_schema(n.oid);

CREATE VIEW pg_catalog.pg_rules AS
SELECT n.nspname AS schemaname, c.relname AS tablename, r.rulename,
       pg_get_ruledef(r.oid) AS definition
FROM pg_catalog.pg_rewrite r
JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE r.rulename <> '_RETURN';

CREATE VIEW pg_catalog.pg_policies AS
SELECT n.nspname AS schemaname, c.relname AS tablename, p.polname AS policyname,
       CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END AS permissive,
       CASE WHEN p.polroles = '{0}' THEN '{public}'::name[]
            ELSE ARRAY(SELECT a.rolname FROM pg_catalog.pg_authid a
                       WHERE a.oid = ANY (p.polroles) ORDER BY a.rolname) END AS roles,
       CASE p.polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE'
            WHEN 'd' THEN 'DELETE' WHEN '*' THEN 'ALL' END AS cmd,
       pg_get_expr(p.polqual, p.polrelid) AS qual,
       pg_get_expr(p.polwithcheck, p.polrelid) AS with_check
FROM pg_catalog.pg_policy p
JOIN pg_catalog.pg_class c ON c.oid = p.polrelid
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace;

CREATE VIEW pg_catalog.pg_roles AS
SELECT a.rolname, a.rolsuper, a.rolinherit, a.rolcreaterole, a.rolcreatedb, a.rolcanlogin,
       a.rolreplication, a.rolconnlimit, '********'::text AS rolpassword, a.rolvaliduntil,
       a.rolbypassrls, s.setconfig AS rolconfig, a.oid
FROM pg_catalog.pg_authid a
LEFT JOIN pg_catalog.pg_db_role_setting s ON s.setrole = a.oid AND s.setdatabase = 0;

CREATE VIEW pg_catalog.pg_shadow AS
SELECT a.rolname AS usename, a.oid AS usesysid, a.rolcreatedb AS usecreatedb,
       a.rolsuper AS usesuper, a.rolreplication AS userepl, a.rolbypassrls AS usebypassrls,
       a.rolpassword AS passwd, a.rolvaliduntil AS valuntil, s.setconfig AS useconfig
FROM pg_catalog.pg_authid a
LEFT JOIN pg_catalog.pg_db_role_setting s ON s.setrole = a.oid AND s.setdatabase = 0
WHERE a.rolcanlogin;

CREATE VIEW pg_catalog.pg_user AS
SELECT usename, usesysid, usecreatedb, usesuper, userepl, usebypassrls,
       '********'::text AS passwd, valuntil, useconfig
FROM pg_catalog.pg_shadow;

CREATE VIEW pg_catalog.pg_group AS
SELECT a.rolname AS groname, a.oid AS grosysid,
       ARRAY(SELECT m.member FROM pg_catalog.pg_auth_members m
             WHERE m.roleid = a.oid) AS grolist
FROM pg_catalog.pg_authid a
WHERE NOT a.rolcanlogin;

CREATE VIEW pg_catalog.pg_user_mappings AS
SELECT u.oid AS umid, s.oid AS srvid, s.srvname, u.umuser,
       CASE WHEN u.umuser = 0 THEN 'public'::name ELSE a.rolname END AS usename, u.umoptions
FROM pg_catalog.pg_user_mapping u
JOIN pg_catalog.pg_foreign_server s ON s.oid = u.umserver
LEFT JOIN pg_catalog.pg_authid a ON a.oid = u.umuser;

CREATE VIEW pg_catalog.pg_available_extensions AS
SELECT e.extname AS name, e.extversion AS default_version, e.extversion AS installed_version,
       d.description AS comment
FROM pg_catalog.pg_extension e
LEFT JOIN pg_catalog.pg_description d ON d.objoid = e.oid AND d.classoid = 3079
     AND d.objsubid = 0;

CREATE VIEW pg_catalog.pg_available_extension_versions AS
SELECT e.extname AS name, e.extversion AS version, true AS installed, true AS superuser,
       true AS trusted, e.extrelocatable AS relocatable, n.nspname AS schema,
       NULL::name[] AS requires, d.description AS comment
FROM pg_catalog.pg_extension e
JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
LEFT JOIN pg_catalog.pg_description d ON d.objoid = e.oid AND d.classoid = 3079
     AND d.objsubid = 0;

CREATE VIEW pg_catalog.pg_stat_user_tables AS
SELECT * FROM pg_catalog.pg_stat_all_tables
WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast';

CREATE VIEW pg_catalog.pg_stat_sys_tables AS
SELECT * FROM pg_catalog.pg_stat_all_tables
WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast';

CREATE VIEW pg_catalog.pg_stat_xact_all_tables AS
SELECT relid, schemaname, relname, 0::int8 AS seq_scan, 0::int8 AS seq_tup_read,
       0::int8 AS idx_scan, 0::int8 AS idx_tup_fetch, 0::int8 AS n_tup_ins,
       0::int8 AS n_tup_upd, 0::int8 AS n_tup_del, 0::int8 AS n_tup_hot_upd
FROM pg_catalog.pg_stat_all_tables;

CREATE VIEW pg_catalog.pg_stat_xact_user_tables AS
SELECT * FROM pg_catalog.pg_stat_xact_all_tables
WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast';

CREATE VIEW pg_catalog.pg_stat_xact_sys_tables AS
SELECT * FROM pg_catalog.pg_stat_xact_all_tables
WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast';

CREATE VIEW pg_catalog.pg_stat_all_indexes AS
SELECT c.oid AS relid, i.oid AS indexrelid, n.nspname AS schemaname, c.relname,
       i.relname AS indexrelname, 0::int8 AS idx_scan, 0::int8 AS idx_tup_read,
       0::int8 AS idx_tup_fetch
FROM pg_catalog.pg_index x
JOIN pg_catalog.pg_class c ON c.oid = x.indrelid
JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 't', 'm');

CREATE VIEW pg_catalog.pg_stat_user_indexes AS
SELECT * FROM pg_catalog.pg_stat_all_indexes
WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast';

CREATE VIEW pg_catalog.pg_stat_sys_indexes AS
SELECT * FROM pg_catalog.pg_stat_all_indexes
WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast';

CREATE VIEW pg_catalog.pg_statio_all_tables AS
SELECT relid, schemaname, relname, 0::int8 AS heap_blks_read, 0::int8 AS heap_blks_hit,
       0::int8 AS idx_blks_read, 0::int8 AS idx_blks_hit, NULL::int8 AS toast_blks_read,
       NULL::int8 AS toast_blks_hit, NULL::int8 AS tidx_blks_read, NULL::int8 AS tidx_blks_hit
FROM pg_catalog.pg_stat_all_tables;

CREATE VIEW pg_catalog.pg_statio_user_tables AS
SELECT * FROM pg_catalog.pg_statio_all_tables
WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast';

CREATE VIEW pg_catalog.pg_statio_sys_tables AS
SELECT * FROM pg_catalog.pg_statio_all_tables
WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast';

CREATE VIEW pg_catalog.pg_statio_all_indexes AS
SELECT relid, indexrelid, schemaname, relname, indexrelname, 0::int8 AS idx_blks_read,
       0::int8 AS idx_blks_hit
FROM pg_catalog.pg_stat_all_indexes;

CREATE VIEW pg_catalog.pg_statio_user_indexes AS
SELECT * FROM pg_catalog.pg_statio_all_indexes
WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast';

CREATE VIEW pg_catalog.pg_statio_sys_indexes AS
SELECT * FROM pg_catalog.pg_statio_all_indexes
WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast';

CREATE VIEW pg_catalog.pg_statio_all_sequences AS
SELECT c.oid AS relid, n.nspname AS schemaname, c.relname, 0::int8 AS blks_read,
       0::int8 AS blks_hit
FROM pg_catalog.pg_class c
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'S';

CREATE VIEW pg_catalog.pg_statio_user_sequences AS
SELECT * FROM pg_catalog.pg_statio_all_sequences
WHERE schemaname NOT IN ('pg_catalog', 'information_schema') AND schemaname !~ '^pg_toast';

CREATE VIEW pg_catalog.pg_statio_sys_sequences AS
SELECT * FROM pg_catalog.pg_statio_all_sequences
WHERE schemaname IN ('pg_catalog', 'information_schema') OR schemaname ~ '^pg_toast';

CREATE VIEW pg_catalog.pg_stat_database_conflicts AS
SELECT d.oid AS datid, d.datname, 0::int8 AS confl_tablespace, 0::int8 AS confl_lock,
       0::int8 AS confl_snapshot, 0::int8 AS confl_bufferpin, 0::int8 AS confl_deadlock
FROM pg_catalog.pg_database d;

CREATE VIEW pg_catalog.pg_stat_gssapi AS
SELECT pid, false AS gss_authenticated, NULL::text AS principal, false AS encrypted
FROM pg_catalog.pg_stat_activity WHERE client_port IS NOT NULL;
