/**
 * Rules of migrations, which hold because somebody writes while it runs and because the release before runs beside it. PostgreSQL's
 * own parser reads the statements (libpg-query, compiled to WebAssembly), so that no spelling hides one.
 */
import { parse } from 'libpg-query';

/** One breach of a rule. */
export interface Breach {
  rule: keyof typeof RULES;
  /** The table that it is about; empty: none. */
  table: string;
}

/** The rules, each with what to do instead. */
export const RULES = {
  'index-waits': 'An index of a table that is in use is built CONCURRENTLY, in a file in steps.',
  'index-left-behind':
    'Before an index is built CONCURRENTLY, DROP INDEX CONCURRENTLY IF EXISTS takes away what a cut-off attempt left.',
  'concurrently-in-transaction':
    'What is CONCURRENT cannot stand in a transaction: begin the file with "-- In steps."',
  'rewrites-table':
    'Another type, storage or a default that is computed for each row writes the whole table anew: add a column, fill it in batches, and read it from then on.',
  'constraint-scans': 'A constraint of a table that is in use is added NOT VALID, and a key by USING INDEX.',
  'validates-in-transaction':
    'A constraint is validated in a step of its own: with the statement that added it, writers would wait.',
  'not-null-scans':
    'SET NOT NULL reads the table while writers wait, unless a CHECK that says the same was validated before.',
  'writes-without-batches':
    'Rows of a table that is in use are changed in "-- Batches.", a bounded number at a time.',
  'unbounded-batch': 'A batch needs a LIMIT.',
  'locks-table': 'This keeps writers out while it runs.',
  'takes-away':
    'The release before still uses it: take it away in a later release, and say in EXCUSED which one stopped using it.',
  'sets-bounds':
    'The runner sets lock_timeout and statement_timeout, so that a wait ends after 100 ms and is tried again.',
  'reads-under-lock':
    'A file that changes a table in use holds its lock to the end: it reads no other table in use.',
} as const;

type Statement = Record<string, unknown>;

/**
 * Checks the statements of one migration.
 *
 * @param text of the file
 * @returns what breaks the rules, in the order of the statements
 * @throws the parser's error for text that PostgreSQL would not take
 */
export async function lintMigration(text: string): Promise<Breach[]> {
  const inSteps = text.startsWith('-- In steps.\n');
  const { stmts = [] } = await parse(text);
  const bytes = Buffer.from(text);
  const breaches: Breach[] = [];
  const file: FileSoFar = {
    inSteps,
    made: new Set(),
    dropped: new Set(),
    validated: new Set(),
    locks: false,
    reads: false,
  };
  for (const { stmt, stmt_location: at = 0, stmt_len: length } of stmts) {
    const before = bytes.subarray(0, at + leadingSpace(bytes, at)).toString();
    const isBatch = inSteps && before.lastIndexOf('-- Batches.') > before.lastIndexOf('-- Step.');
    const source = bytes.subarray(at, length === undefined ? undefined : at + length).toString();
    for (const [kind, statement] of Object.entries(asRecord(stmt)))
      breaches.push(...(CHECKS[kind]?.(asRecord(statement), file, { isBatch, source }) ?? []));
  }
  if (!inSteps && file.locks && file.reads) breaches.push({ rule: 'reads-under-lock', table: '' });
  return breaches;
}

/** A statement's place begins with the comments before it. */
function leadingSpace(bytes: Buffer, at: number): number {
  const lead = /^(?:\s|--[^\n]*(?:\n|$))*/.exec(bytes.subarray(at).toString());
  return Buffer.byteLength(lead?.[0] ?? '');
}

interface FileSoFar {
  inSteps: boolean;
  /** Tables that the file makes: nobody uses them yet. */
  made: Set<string>;
  /** Indexes that the file has taken away, if they were there. */
  dropped: Set<string>;
  /** Tables with a constraint that the file has validated. */
  validated: Set<string>;
  /** Whether it changes a table in use, and whether it reads one. */
  locks: boolean;
  reads: boolean;
}

type Check = (statement: Statement, file: FileSoFar, about: { isBatch: boolean; source: string }) => Breach[];

const CHECKS: Readonly<Record<string, Check>> = {
  CreateStmt(statement, file) {
    file.made.add(tableOf(statement.relation));
    if (JSON.stringify(statement).includes('CONSTR_FOREIGN')) file.locks = true;
    return [];
  },
  CreateTableAsStmt(statement, file) {
    file.made.add(tableOf(asRecord(statement.into).rel));
    file.reads = true;
    return [];
  },
  IndexStmt(statement, file) {
    const table = tableOf(statement.relation);
    const name = textOf(statement.idxname);
    if (file.made.has(table)) return [];
    if (statement.concurrent !== true) return [{ rule: 'index-waits', table }];
    if (!file.inSteps) return [{ rule: 'concurrently-in-transaction', table }];
    return file.dropped.has(name) ? [] : [{ rule: 'index-left-behind', table }];
  },
  AlterTableStmt(statement, file) {
    const table = tableOf(statement.relation);
    if (file.made.has(table)) return [];
    file.locks = true;
    return listOf(statement.cmds).flatMap((each) =>
      changeOf(asRecord(asRecord(each).AlterTableCmd), table, file),
    );
  },
  DropStmt(statement, file) {
    const names = namesIn(statement.objects);
    if (statement.removeType === 'OBJECT_INDEX') {
      for (const name of names) file.dropped.add(name);
      if (statement.concurrent !== true) return [{ rule: 'locks-table', table: names.join(', ') }];
      return file.inSteps ? [] : [{ rule: 'concurrently-in-transaction', table: names.join(', ') }];
    }
    if (statement.removeType !== 'OBJECT_TABLE' && statement.removeType !== 'OBJECT_VIEW') return [];
    return names.every((name) => file.made.has(name))
      ? []
      : [{ rule: 'takes-away', table: names.join(', ') }];
  },
  RenameStmt: (statement, file) =>
    file.made.has(tableOf(statement.relation))
      ? []
      : [{ rule: 'takes-away', table: tableOf(statement.relation) }],
  UpdateStmt: changesRows,
  DeleteStmt: changesRows,
  MergeStmt: changesRows,
  InsertStmt(statement, file, about) {
    const select = asRecord(asRecord(statement.selectStmt).SelectStmt);
    if (select.fromClause !== undefined) file.reads = true;
    // A few rows that stand in the file, or rows of a table that nobody uses yet, hold up nobody.
    if (select.fromClause === undefined || file.made.has(tableOf(statement.relation))) return [];
    return changesRows(statement, file, about);
  },
  TruncateStmt: (statement) => [{ rule: 'locks-table', table: namesIn(statement.relations).join(', ') }],
  LockStmt: (statement) => [{ rule: 'locks-table', table: namesIn(statement.relations).join(', ') }],
  ClusterStmt: (statement) => [{ rule: 'locks-table', table: tableOf(statement.relation) }],
  VacuumStmt: () => [{ rule: 'locks-table', table: '' }],
  RefreshMatViewStmt: (statement) => [{ rule: 'locks-table', table: tableOf(statement.relation) }],
  ReindexStmt: (statement) =>
    JSON.stringify(statement.params ?? '').includes('concurrently')
      ? []
      : [{ rule: 'locks-table', table: tableOf(statement.relation) }],
  VariableSetStmt: (statement) =>
    statement.name === 'lock_timeout' || statement.name === 'statement_timeout'
      ? [{ rule: 'sets-bounds', table: '' }]
      : [],
};

function changesRows(
  statement: Statement,
  file: FileSoFar,
  about: { isBatch: boolean; source: string },
): Breach[] {
  const table = tableOf(statement.relation);
  if (file.made.has(table)) return [];
  if (!about.isBatch) return [{ rule: 'writes-without-batches', table }];
  return JSON.stringify(statement).includes('"limitCount"') ? [] : [{ rule: 'unbounded-batch', table }];
}

/** One change of a table in use. */
function changeOf(change: Statement, table: string, file: FileSoFar): Breach[] {
  const breach = (rule: Breach['rule']): Breach[] => [{ rule, table }];
  const definition = asRecord(change.def);
  switch (change.subtype) {
    case 'AT_AddColumn':
      return columnOf(asRecord(definition.ColumnDef)).flatMap(breach);
    case 'AT_AlterColumnType':
    case 'AT_SetTableSpace':
    case 'AT_SetLogged':
    case 'AT_SetUnLogged':
    case 'AT_SetAccessMethod':
    case 'AT_SetExpression':
      return breach('rewrites-table');
    case 'AT_SetNotNull':
      return file.validated.has(table) ? [] : breach('not-null-scans');
    case 'AT_AddConstraint': {
      const constraint = asRecord(definition.Constraint);
      const scans =
        constraint.contype === 'CONSTR_CHECK' || constraint.contype === 'CONSTR_FOREIGN'
          ? constraint.skip_validation !== true
          : constraint.indexname === undefined;
      return scans ? breach('constraint-scans') : [];
    }
    case 'AT_ValidateConstraint':
      file.validated.add(table);
      return file.inSteps ? [] : breach('validates-in-transaction');
    case 'AT_DropColumn':
      return breach('takes-away');
    default:
      return [];
  }
}

/** The breaches of adding a column. */
function columnOf(column: Statement): Breach['rule'][] {
  return listOf(column.constraints).flatMap((each): Breach['rule'][] => {
    const constraint = asRecord(asRecord(each).Constraint);
    switch (constraint.contype) {
      case 'CONSTR_NULL':
        return [];
      case 'CONSTR_NOTNULL':
        // With a default that is the same for all rows none is read.
        return listOf(column.constraints).length > 1 ? [] : ['not-null-scans'];
      case 'CONSTR_DEFAULT':
        return isConstant(asRecord(constraint.raw_expr)) ? [] : ['rewrites-table'];
      case 'CONSTR_GENERATED':
      case 'CONSTR_IDENTITY':
        return ['rewrites-table'];
      default:
        return ['constraint-scans'];
    }
  });
}

function isConstant(expression: Statement): boolean {
  if ('A_Const' in expression) return true;
  return 'TypeCast' in expression && isConstant(asRecord(asRecord(expression.TypeCast).arg));
}

function asRecord(value: unknown): Statement {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The name of a table, without its schema. */
function tableOf(relation: unknown): string {
  const plain = asRecord(relation);
  return textOf(plain.relname ?? asRecord(plain.RangeVar).relname);
}

function namesIn(objects: unknown): string[] {
  return listOf(objects).map((object) => {
    const table = tableOf(object);
    if (table !== '') return table;
    const last = listOf(asRecord(asRecord(object).List).items).at(-1);
    return textOf(asRecord(asRecord(last).String).sval);
  });
}
