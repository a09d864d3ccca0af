import {
  bare,
  type Call,
  type Contract,
  calledName,
  contains,
  type Expression,
  expressionsOf,
  expressionsWithin,
  isBuiltin,
  type Routine,
  type Statement,
  statementsWithin,
  type Variable,
  within,
} from '../syntax/tree.ts';
import { type Finding, finding, type RelatedLine, related } from './finding.ts';

const HASHES = /^(sha3|keccak256|sha256|ripemd160)$/;
/** A window as wide as this cannot be moved by a block's time. */
const WIDE_WINDOW_SECONDS = 900;
/** A modulus from here on divides time into days and weeks; it draws no lots. */
const CALENDAR_MODULUS = 3_600;

function isTime(part: Expression): boolean {
  return (
    isBuiltin(part, 'block', 'timestamp') ||
    (part.kind === 'name' && part.name === 'now' && part.target?.kind !== 'variable')
  );
}

function isBlockhash(part: Expression): part is Call {
  return part.kind === 'call' && part.form === 'call' && calledName(part) === 'blockhash';
}

function isSource(part: Expression): boolean {
  return (
    isTime(part) ||
    isBlockhash(part) ||
    (part.kind === 'member' &&
      ['number', 'difficulty', 'prevrandao', 'coinbase', 'gaslimit', 'timestamp'].includes(part.member) &&
      isBuiltin(part, 'block', part.member))
  );
}

const BLOCK_INSTRUCTIONS = /^(timestamp|prevrandao|difficulty|blockhash|coinbase)$/;

/**
 * Assembly that takes a remainder of a hash and asks the block for its time, its hash or its maker: what is hashed lies in
 * memory, which is not followed.
 */
function drawsInAssembly(routine: Routine): { at: Expression; name: string } | null {
  const called = [...expressionsWithin(routine)].flatMap((part) =>
    part.kind === 'call' && part.inAssembly === true ? [{ at: part, name: calledName(part) }] : [],
  );
  const source = called.find(({ name }) => BLOCK_INSTRUCTIONS.test(name));
  const draws =
    called.some(({ name }) => name === 'keccak256') &&
    (called.some(({ name }) => name === 'mod') ||
      [...expressionsWithin(routine)].some((part) => part.kind === 'binary' && part.operator === '%'));
  return source !== undefined && draws ? source : null;
}

/** SWC-120: a lot that is drawn in assembly. */
export function assemblyDraws(contract: Contract, into: Finding[]): void {
  for (const routine of contract.lineage.flatMap((base) => base.routines)) {
    const drawn = routine.contract?.role === 'library' ? null : drawsInAssembly(routine);
    if (drawn === null) continue;
    into.push(
      finding(
        'weak-randomness',
        drawn.at.place,
        { contract, routine },
        {
          severity: 'HIGH',
          confidence: 'medium',
          detail: `A remainder of a hash is taken beside ${drawn.name}() of the block.`,
        },
      ),
    );
  }
}

/** Variables and functions whose value comes from the block. */
interface Tainted {
  variables: Set<Variable>;
  routines: Set<Routine>;
}

/** Follows a source through assignments and returns until nothing new is found. */
function taint(contract: Contract, from: (part: Expression) => boolean): Tainted {
  const found: Tainted = { variables: new Set(), routines: new Set() };
  const routines = contract.lineage.flatMap((base) => base.routines);
  const isTainted = (expression: Expression | null) =>
    contains(expression, (part) => from(part) || isKnown(part, found));
  for (const { state } of contract.lineage)
    for (const variable of state) if (isTainted(variable.initial)) found.variables.add(variable);
  for (let round = 0; round < 6; round++) {
    const before = found.variables.size + found.routines.size;
    for (const routine of routines) {
      for (const statement of statementsWithin(routine.body)) {
        if (statement.kind === 'declaration' && isTainted(statement.initial))
          for (const variable of statement.variables) if (variable !== null) found.variables.add(variable);
        if (statement.kind === 'return' && isTainted(statement.value)) found.routines.add(routine);
      }
      for (const part of expressionsWithin(routine)) {
        if (part.kind !== 'assignment' || !isTainted(part.right)) continue;
        const target = bare(part.left);
        const field = target.kind === 'member' || target.kind === 'name' ? target.target : null;
        if (field?.kind === 'variable') {
          found.variables.add(field);
          if (field.scope === 'return') found.routines.add(routine);
        }
      }
    }
    if (found.variables.size + found.routines.size === before) break;
  }
  return found;
}

function isKnown(part: Expression, tainted: Tainted): boolean {
  if ((part.kind === 'name' || part.kind === 'member') && part.target?.kind === 'variable')
    return tainted.variables.has(part.target);
  if (part.kind !== 'call') return false;
  const callee = bare(part.callee);
  const target = callee.kind === 'name' || callee.kind === 'member' ? callee.target : null;
  return target?.kind === 'routine' && tainted.routines.has(target);
}

/** SWC-120: what a block says flows into a hash, a remainder or a comparison with a guess. */
export function randomness(contract: Contract, into: Finding[]): void {
  const tainted = taint(contract, isSource);
  const hashes = taint(contract, isBlockhash);
  const flows = (expression: Expression) =>
    contains(expression, (part) => isSource(part) || isKnown(part, tainted));
  const pays = contract.lineage.some(({ routines }) =>
    routines.some((routine) =>
      [...expressionsWithin(routine)].some(
        (part) => part.kind === 'call' && /^(send|transfer|call)$/.test(calledName(part)),
      ),
    ),
  );
  for (const routine of contract.lineage.flatMap((base) => base.routines)) {
    const sources = [...expressionsWithin(routine)].filter((part) => isSource(part));
    for (const part of expressionsWithin(routine)) {
      const how = sinkOf(part);
      if (how === null) continue;
      into.push(
        finding(
          'weak-randomness',
          part.place,
          { contract, routine },
          {
            severity: pays ? 'HIGH' : 'MEDIUM',
            confidence: how.sure ? 'high' : 'medium',
            detail: how.detail,
            related: [
              ...sources.map((source) => related(source.place, 'a value of the block')),
              ...originsOf(part),
            ],
          },
        ),
      );
    }
  }

  function sinkOf(part: Expression): { detail: string; sure: boolean } | null {
    if (
      part.kind === 'call' &&
      part.form === 'call' &&
      HASHES.test(calledName(part)) &&
      part.args.some(flows)
    ) {
      return {
        detail: `${calledName(part)} mixes values that a block says.`,
        sure: part.args.some((arg) => contains(arg, isSource)),
      };
    }
    if (part.kind === 'binary' && part.operator === '%') {
      const modulus = bare(part.right);
      if (seconds(modulus) >= CALENDAR_MODULUS) return null;
      const caller = contains(part.left, (one) => isBuiltin(one, 'msg', 'sender'));
      if (flows(part.left) || caller)
        return {
          detail: `A remainder of ${caller ? 'the caller’s address' : 'a value of the block'} draws a lot.`,
          sure: !caller,
        };
    }
    if (
      part.kind === 'call' &&
      part.form === 'conversion' &&
      part.args.length === 1 &&
      /^u?int/.test(part.type)
    ) {
      const of = bare(part);
      if (isBlockhash(of) || isBuiltin(of, 'block', 'coinbase'))
        return { detail: 'A number is made of what identifies a block.', sure: true };
    }
    if (part.kind === 'binary' && (part.operator === '==' || part.operator === '!=')) {
      const guess = [part.left, part.right].find((side) =>
        contains(side, (one) => isBlockhash(one) || isOfBlockhash(one)),
      );
      if (guess !== undefined && !contains(part, (one) => one.kind === 'literal'))
        return { detail: 'A guess is compared with the hash of a block.', sure: false };
    }
    if (isBuiltin(part, 'block', 'difficulty') || isBuiltin(part, 'block', 'prevrandao'))
      return { detail: 'The difficulty of a block is known to whoever makes it.', sure: false };
    return null;
  }

  function isOfBlockhash(part: Expression): boolean {
    return (
      (part.kind === 'name' || part.kind === 'member') &&
      part.target?.kind === 'variable' &&
      part.target.scope === 'local' &&
      hashes.variables.has(part.target)
    );
  }

  /** Where state variables that flow in have their value from. */
  function originsOf(sink: Expression): RelatedLine[] {
    return [...within(sink)].flatMap((part) => {
      const variable = part.kind === 'name' && part.target?.kind === 'variable' ? part.target : null;
      return variable !== null &&
        variable.scope === 'state' &&
        tainted.variables.has(variable) &&
        variable.initial !== null
        ? [related(variable.place, 'its first value is of a block')]
        : [];
    });
  }
}

/** SWC-116: the time of a block is compared, and the comparison decides something that pays or that others read. */
export function timestamps(contract: Contract, into: Finding[]): void {
  const tainted = taint(contract, isTime);
  const isTimed = (expression: Expression) =>
    contains(expression, (part) => isTime(part) || isKnown(part, tainted));
  for (const routine of contract.lineage.flatMap((base) => base.routines)) {
    const pays = [...expressionsWithin(routine)].some(
      (part) =>
        part.kind === 'call' &&
        part.form === 'call' &&
        (/^(send|transfer)$/.test(calledName(part)) || part.value !== null),
    );
    for (const statement of statementsWithin(routine.body)) {
      for (const expression of expressionsOf(statement)) {
        for (const part of within(expression)) decides(part, statement, routine, pays);
      }
      const drawn =
        statement.kind === 'return' &&
        statement.value !== null &&
        /rand|seed|lucky|winner/i.test(routine.name);
      if (drawn && statement.kind === 'return' && statement.value !== null && isTime(bare(statement.value)))
        report(statement.value, routine, 'MEDIUM', 'The time of the block is handed out as a random number.');
    }
  }

  function decides(part: Expression, statement: Statement, routine: Routine, pays: boolean): void {
    if (
      part.kind === 'call' &&
      part.form === 'call' &&
      HASHES.test(calledName(part)) &&
      part.args.some((arg) => contains(arg, isTime))
    ) {
      report(part, routine, 'MEDIUM', 'The time of the block is hashed to draw a lot.');
      return;
    }
    if (part.kind !== 'binary') return;
    const { operator, left, right } = part;
    if (operator === '%' && contains(left, isTime)) {
      const modulus = bare(right);
      if (seconds(modulus) < CALENDAR_MODULUS)
        report(part, routine, 'MEDIUM', 'A remainder of the block’s time decides.');
      return;
    }
    if (!/^([<>]=?|[!=]=)$/.test(operator)) return;
    const direct = contains(part, isTime);
    if (!direct && !(isTimed(left) || isTimed(right))) return;
    const exact = operator === '==' || operator === '!=';
    if (!direct && !exact && !pays) return;
    // A deadline that the caller sets for himself protects him.
    if (
      [left, right].some((side) =>
        contains(side, (one) => one.kind === 'name' && /deadline|expir|validUntil/i.test(one.name)),
      )
    )
      return;
    if (
      [left, right].some(
        (side) => bare(side).kind === 'literal' && /^0?$/.test((bare(side) as { value: string }).value),
      )
    )
      return;
    const returned = statement.kind === 'return' && routine.returns[0]?.type === 'bool';
    if (!exact && !pays && !returned) return;
    const wide = contains(part, (one) => one.kind === 'literal' && seconds(one) >= WIDE_WINDOW_SECONDS);
    report(
      part,
      routine,
      exact && direct && pays && !wide ? 'MEDIUM' : 'LOW',
      exact
        ? 'The block’s time must be an exact value.'
        : `The block’s time decides ${pays ? 'whether something is paid' : 'what is answered'}.`,
    );
  }

  function report(part: Expression, routine: Routine, severity: 'MEDIUM' | 'LOW', detail: string): void {
    const stored: RelatedLine[] = [];
    const variables = [...within(part)].flatMap((one) =>
      (one.kind === 'name' || one.kind === 'member') && one.target?.kind === 'variable' ? [one.target] : [],
    );
    for (const other of contract.lineage.flatMap((base) => base.routines)) {
      for (const each of expressionsWithin(other)) {
        if (each.kind === 'assignment' && contains(each.right, isTime)) {
          const target = bare(each.left);
          const variable = target.kind === 'name' || target.kind === 'member' ? target.target : null;
          if (variable?.kind === 'variable' && variables.includes(variable))
            stored.push(related(each.place, 'the time is kept here'));
        }
      }
    }
    into.push(
      finding(
        'timestamp-decides',
        part.place,
        { contract, routine },
        { severity, confidence: severity === 'MEDIUM' ? 'medium' : 'low', detail, related: stored },
      ),
    );
  }
}

const UNITS: Readonly<Record<string, number>> = {
  seconds: 1,
  minutes: 60,
  hours: 3_600,
  days: 86_400,
  weeks: 604_800,
  years: 31_536_000,
};

function seconds(literal: Expression): number {
  if (literal.kind === 'binary' && literal.operator === '**')
    return seconds(bare(literal.left)) ** seconds(bare(literal.right));
  return literal.kind === 'literal'
    ? Number(literal.value.replaceAll('_', '')) * (UNITS[literal.unit] ?? 1)
    : 0;
}
