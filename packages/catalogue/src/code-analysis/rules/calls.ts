import { outsideCall } from '../meaning.ts';
import {
  bare,
  type Call,
  type Contract,
  calledName,
  type Expression,
  expressionsWithin,
  isBuiltin,
  type Routine,
  statementsWithin,
  type Variable,
} from '../syntax/tree.ts';
import { type Finding, finding } from './finding.ts';

const CAN_FAIL_SILENTLY = new Set(['call', 'send', 'delegatecall', 'callcode']);

/** SWC-104: the result of a low-level call is dropped, or goes into a variable that nobody reads. */
export function uncheckedCalls(contract: Contract | null, routine: Routine, into: Finding[]): void {
  for (const statement of statementsWithin(routine.body)) {
    if (statement.kind === 'expression') {
      const expression = bare(statement.expression);
      const popped = poppedCall(expression);
      if (silent(expression, routine)) report(expression, 'dropped');
      else if (popped !== null && contract?.role !== 'library' && silent(popped, routine))
        report(popped, 'dropped');
      else if (neverMade(expression)) {
        into.push(
          finding(
            'unchecked-call',
            expression.place,
            { contract, routine },
            {
              severity: 'MEDIUM',
              confidence: 'high',
              detail:
                'The call is prepared with its value and never made: the brackets of the call are missing.',
            },
          ),
        );
      }
      if (expression.kind === 'assignment' && silent(bare(expression.right), routine)) {
        const first = expression.left.kind === 'tuple' ? expression.left.items[0] : expression.left;
        const target = first?.kind === 'name' && first.target?.kind === 'variable' ? first.target : null;
        if (first == null || (target !== null && target.scope === 'local' && !isRead(target, routine)))
          report(expression.right, 'kept and never read');
      }
    } else if (statement.kind === 'declaration' && statement.initial !== null) {
      const call = bare(statement.initial);
      const [first = null] = statement.variables;
      if (silent(call, routine) && (first === null || !isRead(first, routine)))
        report(call, 'kept and never read');
    }
  }

  function report(expression: Expression, fate: string): void {
    const call = bare(expression) as Call;
    const callee = bare(call.callee);
    const method = callee.kind === 'member' ? callee.member : '';
    const pays = method === 'send' || call.value !== null;
    into.push(
      finding(
        'unchecked-call',
        call.place,
        { contract, routine },
        {
          severity: pays || method === 'delegatecall' || method === 'callcode' ? 'MEDIUM' : 'LOW',
          confidence: 'high',
          detail: `The result of ${method} is ${fate}.`,
        },
      ),
    );
  }
}

function silent(expression: Expression, routine: Routine): boolean {
  if (expression.kind !== 'call') return false;
  const { contract } = routine;
  if (contract === null && routine.body === null) return false;
  const frame = {
    contract: contract ?? NOWHERE,
    entry: routine,
    routine,
    bindings: new Map(),
    origins: new Map(),
    trail: [],
    depth: 0,
  };
  const outside = outsideCall(expression, frame);
  return outside !== null && CAN_FAIL_SILENTLY.has(outside.method);
}

/** `pop(call(…))` in assembly. */
function poppedCall(expression: Expression): Expression | null {
  if (expression.kind !== 'call' || expression.inAssembly !== true || calledName(expression) !== 'pop')
    return null;
  const [call] = expression.args;
  const callee = call?.kind === 'call' ? bare(call.callee) : null;
  // Whoever called sees for themselves whether they were paid.
  return call === undefined || (callee?.kind === 'member' && isBuiltin(bare(callee.of), 'msg', 'sender'))
    ? null
    : call;
}

/** `x.call.value(v);` sets an option and calls nothing. */
function neverMade(expression: Expression): boolean {
  if (expression.kind !== 'call' || expression.callee.kind !== 'member') return false;
  const { member, of } = expression.callee;
  return (member === 'value' || member === 'gas') && of.kind === 'member' && CAN_FAIL_SILENTLY.has(of.member);
}

/** Free functions have no contract. */
const NOWHERE: Contract = {
  kind: 'contract',
  role: 'library',
  name: '',
  lineage: [],
  state: [],
  routines: [],
  structs: [],
  place: { file: '', line: 1, endLine: 1 },
};

function isRead(variable: Variable, routine: Routine): boolean {
  const writes = new Set<Expression>();
  for (const part of expressionsWithin(routine)) {
    if (part.kind === 'assignment' && part.operator === '=') {
      writes.add(part.left);
      if (part.left.kind === 'tuple') for (const item of part.left.items) if (item !== null) writes.add(item);
    }
  }
  // A name for a statement, as is written against a warning, decides nothing.
  for (const statement of statementsWithin(routine.body))
    if (statement.kind === 'expression') writes.add(bare(statement.expression));
  return [...expressionsWithin(routine)].some(
    (part) => part.kind === 'name' && part.target === variable && !writes.has(part),
  );
}

/** A token's own word on whether it moved, dropped or kept and never read. */
export function uncheckedTransfers(contract: Contract, routine: Routine, into: Finding[]): void {
  for (const statement of statementsWithin(routine.body)) {
    const made =
      statement.kind === 'expression'
        ? bare(statement.expression)
        : statement.kind === 'declaration' && statement.initial !== null
          ? bare(statement.initial)
          : null;
    if (made?.kind !== 'call' || made.type !== 'bool' || !/^transfer(From)?$/.test(calledName(made)))
      continue;
    const callee = bare(made.callee);
    if (callee.kind !== 'member' || !/^contract /.test(callee.of.type)) continue;
    if (callee.target?.kind === 'routine' && callee.target.contract?.role === 'library') continue;
    const kept = statement.kind === 'declaration' ? (statement.variables[0] ?? null) : null;
    if (kept !== null && isRead(kept, routine)) continue;
    into.push(
      finding(
        'unchecked-transfer',
        made.place,
        { contract, routine },
        {
          severity: 'MEDIUM',
          confidence: 'high',
          detail: `The answer of ${calledName(made)} is ${kept === null ? 'dropped' : 'kept and never read'}.`,
        },
      ),
    );
  }
}
