import type { Database } from '../../../../packages/core/src/db/connection.ts';

/** By the kind of thing, a query whose rows are lines: each says all that the catalog knows of one thing, but for what differs from database to database. */
const QUERIES = {
  tables: `
    select format('%s %s %s %s %s of %s %s', c.relkind, c.relname, c.relpersistence, c.reloptions, pg_get_partkeydef(c.oid),
             (select inhparent::regclass from pg_inherits where inhrelid = c.oid), pg_get_expr(c.relpartbound, c.oid))
    from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'c')`,
  columns: `
    select format('%s %s %s %s %s %s %s %s %s %s', a.attrelid::regclass,
             row_number() over (partition by a.attrelid order by a.attnum), a.attname, format_type(a.atttypid, a.atttypmod),
             a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attgenerated, a.attidentity, a.attcollation::regcollation,
             a.attstorage)
    from pg_attribute a join pg_class c on c.oid = a.attrelid
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped`,
  // NOT NULL stands with the columns: it has a name since PostgreSQL 18 alone, and one that depends on
  // what stood there before.
  constraints: `
    select format('%s %s %s %s %s', conrelid::regclass, conname, convalidated, contype, pg_get_constraintdef(oid, true))
    from pg_constraint where connamespace = 'public'::regnamespace and contype <> 'n'`,
  indexes: `
    select format('%s %s %s %s', c.relname, c.reloptions, x.indisvalid, pg_get_indexdef(c.oid))
    from pg_index x join pg_class c on c.oid = x.indexrelid where c.relnamespace = 'public'::regnamespace`,
  triggers: `
    select format('%s %s %s', tgenabled, tgname, pg_get_triggerdef(oid)) from pg_trigger where not tgisinternal`,
  functions: `
    select format('%s %s', pg_get_functiondef(oid), proacl) from pg_proc where pronamespace = 'public'::regnamespace`,
  sequences: `
    select format('%s %s %s %s %s %s %s', s.seqrelid::regclass, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmax,
             s.seqmin, s.seqcycle)
    from pg_sequence s`,
  comments: `
    select format('%s %s %s', classoid::regclass, pg_describe_object(classoid, objoid, objsubid), description)
    from pg_description d join pg_class c on c.oid = d.objoid where c.relnamespace = 'public'::regnamespace`,
  privileges: `
    select format('%s %s', relname, relacl) from pg_class
    where relnamespace = 'public'::regnamespace and relacl is not null`,
  types: `
    select format('%s %s', typname, typtype) from pg_type
    where typnamespace = 'public'::regnamespace and typtype not in ('b', 'c')`,
  house: `select format('%s %s %s %s', id, house, name, bucket) from ledger_accounts where house`,
  'triggers that were brought': `select format('%s %s', name, text_number) from sql_triggers`,
} as const;

/** All that the catalog says of a database's schema, by the kind of thing, in sorted lines. */
export async function schemaOf(sql: Database): Promise<Record<string, string[]>> {
  const schema: Record<string, string[]> = {};
  for (const [kind, query] of Object.entries(QUERIES)) {
    const rows = await sql.unsafe<{ line: string }[]>(`select line from (${query}) x (line)`);
    schema[kind] = rows.map(({ line }) => line).sort();
  }
  return schema;
}
