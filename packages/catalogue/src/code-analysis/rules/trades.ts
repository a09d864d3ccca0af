/** Looks at trades: what the least is that they accept, and how old the prices are that they go by. */
import type { Known, Listener } from '../flow.ts';
import { type Frame, isCaller, meaning, outsideCall } from '../meaning.ts';
import {
  bare,
  type Call,
  type Contract,
  calledName,
  contains,
  type Expression,
  expressionsWithin,
  type Routine,
  statementsWithin,
} from '../syntax/tree.ts';
import { argumentDecides, deeplyContains, literalOf } from './caller.ts';
import { type Finding, finding, type Look, tell } from './finding.ts';
import { type TokenMove, tokenMove } from './tokens.ts';

const TRADES = /swap|exactInput|exactOutput|exchange|(add|remove)_?liquidity|zap/i;
const LEAST = /min|least|limit(?!x96)/i;
const QUOTES = /getAmounts?(Out|In)|quote|consult|get_dy|previewSwap/i;
/** Where the least stands among the arguments of well-known markets, by name and number of arguments. */
const LEAST_AT: readonly (readonly [name: RegExp, count: number, at: readonly number[]])[] = [
  [/^swapExactTokensFor(Tokens|ETH)(SupportingFeeOnTransferTokens)?$/, 5, [1]],
  [/^swapExactETHForTokens(SupportingFeeOnTransferTokens)?$/, 4, [0]],
  [/^addLiquidity$/, 8, [4, 5]],
  [/^addLiquidityETH$/, 6, [2, 3]],
  [/^removeLiquidity$/, 7, [3, 4]],
  [/^removeLiquidityETH(SupportingFeeOnTransferTokens)?$/, 6, [2, 3]],
  [/^exchange(_underlying)?$/, 4, [3]],
  [/^remove_liquidity_one_coin$/, 3, [2]],
];
const OWN_TRADE = /^_?(swap|exchange|trade|buy|sell)/i;

interface Condition {
  condition: Expression;
  frame: Frame;
}

/** Trades of one entry that take any price. */
export function trades(contract: Contract, entry: Routine, into: Finding[]): Listener {
  if (entry.role === 'constructor') return {};
  const look = { contract, entry, into };
  const moves: TokenMove[] = [];
  const conditions: Condition[] = [];
  const traded: { call: Call; known: Known; frame: Frame }[] = [];
  return {
    expression(expression, known, frame) {
      if (expression.kind === 'binary' && /^[<>]=?$/.test(expression.operator))
        conditions.push({ condition: expression, frame });
      if (expression.kind !== 'call') return;
      const move = tokenMove(expression, known, frame);
      if (move !== null) moves.push(move);
      if (outsideCall(expression, frame)?.method === 'function' && TRADES.test(calledName(expression)))
        traded.push({ call: expression, known, frame });
    },
    end() {
      if (!conditions.some(isLeast))
        for (const { call, known, frame } of traded) judge(look, call, known, frame);
      ownTrade(look, moves, conditions);
    },
  };
}

/** What comes out is held against the least that the caller names. */
function isLeast({ condition, frame }: Condition): boolean {
  if (condition.kind !== 'binary') return false;
  return [condition.left, condition.right].some((side) => {
    const { expression } = meaning(side, frame);
    return expression.kind === 'name' && LEAST.test(expression.name) && isArgumentAlone(side, frame);
  });
}

/** A trade on a market of others. */
function judge(look: Look, call: Call, known: Known, frame: Frame): void {
  const places = LEAST_AT.find(([name, count]) => count === call.args.length && name.test(calledName(call)));
  let unset = false;
  const limits = call.args.flatMap((arg, i) => {
    const { expression, frame: at } = meaning(arg, frame);
    if (expression.kind === 'call' && expression.form === 'struct') return limitsOf(expression, at);
    if (/^exactInput(Single)?$/.test(calledName(call)) && expression.kind === 'name') {
      const set = fieldsSet(expression, at);
      if (set !== null && !set.some(({ field }) => LEAST.test(field))) unset = true;
      return (set ?? []).flatMap(({ field, value }) =>
        LEAST.test(field) ? [{ limit: value, frame: at }] : [],
      );
    }
    const isLimit = LEAST.test(call.names?.[i] ?? '') || places?.[2].includes(i) === true;
    return isLimit ? [{ limit: arg, frame }] : [];
  });
  const open = unset || limits.some(({ limit, frame: at }) => isNothing(limit, at));
  const quoted = limits.find(({ limit, frame: at }) =>
    deeplyContains(limit, at, (part) => part.kind === 'call' && QUOTES.test(calledName(part))),
  );
  if (!open && quoted === undefined) return;
  tell(look, 'no-slippage-limit', call.place, frame, {
    severity: 'MEDIUM',
    confidence: known.callerKnown ? 'low' : 'medium',
    detail: open
      ? `${calledName(call)} accepts any amount, down to nothing.`
      : `${calledName(call)} accepts what the same market says in the same transaction.`,
  });
}

/** A pool of the contract's own: it takes from the caller and pays by a ratio, and nobody can say for how little. */
function ownTrade(look: Look, moves: readonly TokenMove[], conditions: readonly Condition[]): void {
  const { entry } = look;
  if (!OWN_TRADE.test(entry.name)) return;
  const paid = moves.some(
    ({ kind, from, frame }) => kind === 'pull' && from !== null && isCaller(from, frame),
  );
  const given = moves.find(
    ({ kind, amount, frame }) =>
      kind === 'push' &&
      amount !== null &&
      deeplyContains(amount, frame, (part) => part.kind === 'binary' && part.operator === '/'),
  );
  if (!paid || given?.amount == null || given.known.callerKnown) return;
  const { amount, frame } = given;
  const paidAt = given.call.place;
  const meant = meaning(amount, frame).expression;
  const limited = conditions.some(({ condition, frame: at }) => {
    if (condition.kind !== 'binary') return false;
    const sides = [condition.left, condition.right];
    const ofAmount = sides.some(
      (side) => meaning(side, at).expression === meant || deeplyContains(side, at, (part) => part === meant),
    );
    return ofAmount && sides.some((side) => isArgumentAlone(side, at));
  });
  if (limited) return;
  tell(look, 'no-slippage-limit', paidAt, frame, {
    severity: 'MEDIUM',
    confidence: 'medium',
    detail: `${entry.name} pays by the ratio of the moment, and the caller cannot say for how little.`,
  });
}

function isArgumentAlone(side: Expression, frame: Frame): boolean {
  const { expression } = meaning(side, frame);
  return (expression.kind === 'name' || expression.kind === 'member') && argumentDecides(expression, frame);
}

function limitsOf(struct: Call, frame: Frame): { limit: Expression; frame: Frame }[] {
  return struct.args.flatMap((limit, i) => (LEAST.test(struct.names?.[i] ?? '') ? [{ limit, frame }] : []));
}

/** The fields that a function gives to a struct in memory that starts empty; null for what is no such struct. */
function fieldsSet(name: Expression, frame: Frame): { field: string; value: Expression }[] | null {
  if (name.kind !== 'name' || name.target?.kind !== 'variable' || name.target.scope !== 'local') return null;
  const { target } = name;
  if (!/^struct /.test(target.type) || frame.bindings.has(target)) return null;
  return [...expressionsWithin(frame.routine)].flatMap((part) =>
    part.kind === 'assignment' &&
    part.left.kind === 'member' &&
    part.left.of.kind === 'name' &&
    part.left.of.target === target
      ? [{ field: part.left.member, value: part.right }]
      : [],
  );
}

/** Nothing or next to nothing, or a local number that was never given a value. */
function isNothing(limit: Expression, frame: Frame): boolean {
  const literal = literalOf(limit, frame);
  if (literal !== null && /^(0x)?0*[01]$/.test(literal.value) && literal.unit === '') return true;
  const { expression, frame: at } = meaning(limit, frame);
  if (
    expression.kind !== 'name' ||
    expression.target?.kind !== 'variable' ||
    expression.target.scope !== 'local'
  )
    return false;
  const { target } = expression;
  if (at.bindings.has(target) || at.origins.has(target)) return false;
  return ![...expressionsWithin(at.routine)].some(
    (part) =>
      part.kind === 'assignment' &&
      contains(part.left, (one) => one.kind === 'name' && one.target === target),
  );
}

/** A price feed whose answer is taken without its time. */
export function stalePrices(contract: Contract, routine: Routine, into: Finding[]): void {
  const report = (at: Expression, detail: string) =>
    into.push(
      finding(
        'stale-price',
        at.place,
        { contract, routine },
        { severity: 'MEDIUM', confidence: 'medium', detail },
      ),
    );
  for (const statement of statementsWithin(routine.body)) {
    if (statement.kind !== 'declaration' || statement.initial === null) continue;
    const call = bare(statement.initial);
    if (call.kind !== 'call' || calledName(call) !== 'latestRoundData' || statement.variables.length !== 5)
      continue;
    const time = statement.variables[3] ?? null;
    const read = [...expressionsWithin(routine)].some(
      (part) => time !== null && part.kind === 'name' && part.target === time,
    );
    const price = statement.variables[1] ?? null;
    if (!read && price !== null) report(call, 'The time of the price is dropped or never read.');
  }
  for (const part of expressionsWithin(routine)) {
    if (part.kind === 'call' && calledName(part) === 'latestAnswer' && bare(part.callee).kind === 'member')
      report(part, 'latestAnswer says nothing of when the price was made.');
  }
}
