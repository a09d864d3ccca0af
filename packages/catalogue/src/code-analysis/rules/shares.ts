/** Looks at the price of shares: whether a gift can make the next deposit round down to nothing. */
import type { Listener, Write } from '../flow.ts';
import { type Frame, keptPart } from '../meaning.ts';
import {
  type Call,
  type Contract,
  calledName,
  type Expression,
  type Routine,
  type Variable,
} from '../syntax/tree.ts';
import { callerDecides, deeply, deeplyContains, givenTo, isOwnBalance, literalOf } from './caller.ts';
import { type Finding, related, tell } from './finding.ts';

const SCALES = /^(full)?mulDiv\w*$/i;
const LOCKS = /minimum_?liquidity|dead_?shares|locked_?(shares|liquidity)/i;

/** A deposit whose shares are its part of what the contract holds. */
export function sharePrice(contract: Contract, entry: Routine, into: Finding[]): Listener {
  if (entry.role === 'constructor' || entry.mutability === 'view' || entry.mutability === 'pure') return {};
  const divided: { at: Expression; numerator: Expression[]; denominator: Expression; frame: Frame }[] = [];
  const raised = new Set<Variable>();
  let locks = false;
  const look = { contract, entry, into };
  return {
    expression(expression, _known, frame) {
      if (expression.kind === 'name' && LOCKS.test(expression.name)) locks = true;
      if (expression.kind === 'binary' && expression.operator === '/')
        divided.push({ at: expression, numerator: [expression.left], denominator: expression.right, frame });
      if (expression.kind === 'call' && expression.form === 'call') {
        if (/mint/i.test(calledName(expression)) && isToNobody(expression, frame)) locks = true;
        if (!SCALES.test(calledName(expression))) return;
        const [a, b, c] = givenTo(expression);
        if (a !== undefined && b !== undefined && c !== undefined)
          divided.push({ at: expression, numerator: [a, b], denominator: c, frame });
      }
    },
    write(write, _known, frame) {
      const part = keptPart(write.target, frame);
      if (part !== null && raises(write)) raised.add(part);
      const { target } = write;
      if (target.kind === 'index' && target.index !== null && literalOf(target.index, frame) !== null)
        locks = true;
    },
    end() {
      if (locks) return;
      for (const { at, numerator, denominator, frame } of divided) {
        const shares = [...numerator, denominator].some((each) =>
          deeplyContains(each, frame, (part, where) => {
            const kept = keptPart(part, where);
            return kept !== null && raised.has(kept) && /^uint/.test(kept.type);
          }),
        );
        if (!shares || !numerator.some((each) => callerDecides(each, frame) || pays(each, frame))) continue;
        const held = heldIn(denominator, frame);
        if (held === null) continue;
        if (isOffset(denominator, frame) || numerator.some((each) => isOffset(each, frame))) continue;
        const told: Finding[] = [];
        tell({ ...look, into: told }, 'inflated-share', at.place, frame, {
          severity: 'MEDIUM',
          confidence: 'medium',
          detail: `The shares of a deposit in ${entry.name || entry.role} are its part of the balance, which anybody can raise by a gift.`,
        });
        for (const each of told)
          into.push({ ...each, related: [...each.related, related(held.place, 'what the contract holds')] });
      }
    },
  };
}

function raises({ operator, value }: Write): boolean {
  if (operator === '+=') return true;
  if (operator !== '=' || value === null) return false;
  return value.kind === 'binary'
    ? value.operator === '+'
    : value.kind === 'call' && calledName(value) === 'add';
}

/** Where a value reads what the contract holds; null where it does not. */
function heldIn(expression: Expression, frame: Frame): Expression | null {
  for (const { expression: part, frame: at } of deeply(expression, frame))
    if (isOwnBalance(part, at)) return part;
  return null;
}

function pays(expression: Expression, frame: Frame): boolean {
  return deeplyContains(expression, frame, (part) => part.kind === 'member' && part.member === 'value');
}

/** `+ 1`, or `+ 10 ** offset`: shares and assets that nobody has. */
function isOffset(expression: Expression, frame: Frame): boolean {
  for (const { expression: part, frame: at } of deeply(expression, frame)) {
    if (part.kind !== 'binary' || part.operator !== '+') continue;
    const offsets = [part.left, part.right].some((side) => {
      if (literalOf(side, at) !== null) return true;
      return deeplyContains(side, at, (one, where) => {
        if (one.kind === 'binary' && one.operator === '**') return true;
        return (
          one.kind === 'name' &&
          one.target?.kind === 'variable' &&
          one.target.fixed &&
          keptPart(one, where) !== null
        );
      });
    });
    if (offsets) return true;
  }
  return false;
}

function isToNobody(call: Call, frame: Frame): boolean {
  return call.args.some(
    (arg) =>
      literalOf(arg, frame) !== null && /^(0|0x0*(dead|1)?)$/i.test(literalOf(arg, frame)?.value ?? ''),
  );
}
