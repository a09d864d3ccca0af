/**
 * The rule of the functions that begin and end calls: each of their statements names the bucket of the rows that it touches. Where
 * buckets are spread over servers, such a function runs on the one that has its bucket. PostgreSQL's own parser reads the
 * functions (libpg-query), so that no spelling hides a statement.
 */
import { parse, parsePlPgSQL } from 'libpg-query';

type Node = Record<string, unknown>;

/** The argument that each such function has first. */
const ARGUMENT = 'p_bucket';
const COLUMN = 'bucket';

/**
 * Finds statements of a function that touch a table beyond one bucket.
 *
 * @param text of the function, as its file has it
 * @param tables those that have a bucket
 * @returns for each breach the table, what is wrong with it, and the statement; for tables without a bucket the table alone
 */
export async function lintBuckets(
  text: string,
  tables: ReadonlySet<string>,
): Promise<{ breaches: string[]; others: string[] }> {
  const breaches: string[] = [];
  const others: string[] = [];
  for (const statement of await statementsOf(text)) {
    const { stmts = [] } = await parse(statement);
    for (const query of queriesIn(stmts)) {
      for (const { name, alias, isTarget } of tablesOf(query)) {
        const table = name.replace(/__week$/, '');
        if (!tables.has(table)) others.push(table);
        else if (isTarget && query.kind === 'InsertStmt' ? !insertsBucket(query) : !namesBucket(query, alias))
          breaches.push(`${table} beyond one bucket: ${statement.replace(/\s+/g, ' ')}`);
      }
    }
  }
  return { breaches, others };
}

/** Whether a function has the bucket as its first argument. */
export async function takesBucket(text: string): Promise<boolean> {
  const { stmts = [] } = await parse(text);
  const made = record(record(stmts[0]).stmt).CreateFunctionStmt;
  const first = record(record(list(record(made).parameters)[0]).FunctionParameter);
  return first.name === ARGUMENT;
}

/** All that a function asks PostgreSQL, each as a statement of its own. */
async function statementsOf(text: string): Promise<string[]> {
  const found: string[] = [];
  for (const node of everyNode(await parsePlPgSQL(text))) {
    const { query } = record(node.PLpgSQL_expr);
    if (typeof query !== 'string') continue;
    const asked = query.replace(/^\s*[a-z_][\w.]*(?:\[[^\]]*\])?\s*:=/i, '').trim();
    found.push(/^(?:select|insert|update|delete|with)\b/i.test(asked) ? asked : `SELECT ${asked}`);
  }
  return found;
}

const KINDS = ['SelectStmt', 'InsertStmt', 'UpdateStmt', 'DeleteStmt'] as const;

interface Query {
  kind: (typeof KINDS)[number];
  node: Node;
}

/** Each query of a statement, those within others too. */
function queriesIn(statement: unknown): Query[] {
  return everyNode(statement).flatMap((node): Query[] => [
    ...KINDS.filter((kind) => kind in node).map((kind) => ({ kind, node: record(node[kind]) })),
    // The sides of a UNION are queries without a name.
    ...[node.larg, node.rarg]
      .map(record)
      .filter((side) => 'targetList' in side || 'op' in side)
      .map((side) => ({ kind: 'SelectStmt' as const, node: side })),
  ]);
}

interface Touched {
  name: string;
  alias: string;
  isTarget: boolean;
}

/** The tables that a query itself reads or writes; not those of queries within it, and not what WITH names. */
function tablesOf({ kind, node }: Query): Touched[] {
  const target = kind === 'SelectStmt' ? [] : [touched(record(node.relation), true)];
  const from = [...list(node.fromClause), ...list(node.usingClause)].flatMap(sourcesIn);
  return [...target, ...from.map((relation) => touched(relation, false))];
}

function touched(relation: Node, isTarget: boolean): Touched {
  const name = String(relation.relname);
  const { aliasname } = record(relation.alias);
  return { name, alias: typeof aliasname === 'string' ? aliasname : name, isTarget };
}

function sourcesIn(source: unknown): Node[] {
  const node = record(source);
  if ('RangeVar' in node) return [record(node.RangeVar)];
  if (!('JoinExpr' in node)) return [];
  const { larg, rarg } = record(node.JoinExpr);
  return [...sourcesIn(larg), ...sourcesIn(rarg)];
}

/** Whether what a query is for says that the table's bucket is the argument, and nothing makes that optional. */
function namesBucket({ node }: Query, alias: string): boolean {
  const joins = [...list(node.fromClause), ...list(node.usingClause)].flatMap(conditionsIn);
  const conditions = [node.whereClause, ...joins].flatMap(conjuncts);
  const alone = tablesOf({ kind: 'SelectStmt', node }).length + (node.relation === undefined ? 0 : 1) === 1;
  return conditions.some((condition) => {
    const { name, lexpr, rexpr } = record(condition.A_Expr);
    if (namesIn(name)[0] !== '=' || columnOf(rexpr).join('.') !== ARGUMENT) return false;
    const left = columnOf(lexpr).join('.');
    return left === `${alias}.${COLUMN}` || (alone && left === COLUMN);
  });
}

function conditionsIn(source: unknown): unknown[] {
  const join = record(source).JoinExpr;
  if (join === undefined) return [];
  const { larg, rarg, quals } = record(join);
  return [quals, ...conditionsIn(larg), ...conditionsIn(rarg)];
}

/** The conditions that must all hold. */
function conjuncts(condition: unknown): Node[] {
  const node = record(condition);
  const { boolop, args } = record(node.BoolExpr);
  return boolop === 'AND_EXPR' ? list(args).flatMap(conjuncts) : [node];
}

/** Whether each row that is inserted has the argument as its bucket. */
function insertsBucket({ node }: Query): boolean {
  const columns = list(node.cols).map((column) => record(record(column).ResTarget).name);
  const at = columns.indexOf(COLUMN);
  return at !== -1 && rowsOf(record(record(node.selectStmt).SelectStmt)).every((row) => isArgument(row[at]));
}

function rowsOf(select: Node): unknown[][] {
  if (select.op === 'SETOP_UNION') return [select.larg, select.rarg].flatMap((side) => rowsOf(record(side)));
  const values = list(select.valuesLists);
  if (values.length > 0) return values.map((row) => [...list(record(record(row).List).items)]);
  return [list(select.targetList).map((target) => record(record(target).ResTarget).val)];
}

const isArgument = (value: unknown) => columnOf(value).join('.') === ARGUMENT;

function columnOf(node: unknown): string[] {
  return namesIn(record(record(node).ColumnRef).fields);
}

function namesIn(names: unknown): string[] {
  return list(names).map((name) => String(record(record(name).String).sval));
}

function everyNode(value: unknown): Node[] {
  if (Array.isArray(value)) return value.flatMap(everyNode);
  if (typeof value !== 'object' || value === null) return [];
  return [record(value), ...Object.values(value).flatMap(everyNode)];
}

function record(value: unknown): Node {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
