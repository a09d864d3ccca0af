/**
 * Looks at prices of the moment: what a market holds or quotes right now, where it decides what somebody has, gets or may do. A trade
 * or a loan within one transaction moves such a price and back. Followed by where the number goes: a price that is only shown,
 * held against a mean or a feed, or handed to the same market in a trade, is no finding.
 */
import type { Known, Listener } from '../flow.ts';
import {
  type Bound,
  type Frame,
  frameWithin,
  isKept,
  keptPart,
  meaning,
  type OutsideCall,
  outsideCall,
  returned,
  rootOf,
} from '../meaning.ts';
import {
  bare,
  type Call,
  type Contract,
  calledName,
  contains,
  type Expression,
  expressionsWithin,
  isBuiltin,
  type Program,
  type Routine,
  statementsWithin,
  textOf,
  type Variable,
  within,
} from '../syntax/tree.ts';
import { argumentDecides, givenTo, isThis } from './caller.ts';
import { type Finding, type Look, related, tell } from './finding.ts';
import { tokenMove } from './tokens.ts';

/** What markets answer of their present state, by function, and which of the values are prices; none means all. */
const PRESENT: Readonly<Record<string, readonly number[] | null>> = {
  slot0: [0, 1],
  getSlot0: [0, 1],
  globalState: [0, 1],
  getReserves: [0, 1],
  getPoolTokens: [1],
  getAmountsOut: null,
  getAmountsIn: null,
  getAmountOut: null,
  get_dy: null,
  quoteExactInput: null,
  quoteExactInputSingle: null,
};
/** What a market or a library of one answers of a length of time. */
const MEAN = /^(observe|consult|price[01]CumulativeLast|currentCumulativePrices|getTimeWeightedAverage)$/;
/** What somebody else says of a price. */
const FEED = /^(latestRoundData|latestAnswer|getPrice(NoOlderThan|Unsafe)?)$/;
const TRADES =
  /^(swap|mint|burn|exchange|flash|join|exit|exactInput|exactOutput|(add|remove)_?liquidity|modifyLiquidity)/i;
const ISSUES = /^_?(mint|burn|issue|credit|reward)(For|To|From)?$/i;
const DIVIDES = /^(full)?mulDiv\w*$/i;
const ORDERS = new Set(['<', '>', '<=', '>=']);
/** More parts of one value are not looked at. */
const MAX_PARTS = 3_000;
const MAX_DEPTH = 10;

/** What the rule knows of the sources before it looks at an entry. */
export interface Markets {
  contracts: readonly Contract[];
  /** Whether any present price is read at all. */
  read: boolean;
  /** State variables that keep a present price from one call to the next. */
  kept: ReadonlyMap<Variable, readonly Bound[]>;
}

/** Finds which state variables of a contract keep a present price. */
export function marketsOf(contract: Contract, program: Program): Markets {
  const { contracts } = program;
  const reads = (routine: Routine) =>
    [...expressionsWithin(routine)].some(
      (part) => part.kind === 'call' && (isPresent(part) || calledName(part) === 'balanceOf'),
    );
  const read = contracts.some(({ routines }) => routines.some(reads)) || program.routines.some(reads);
  const kept = new Map<Variable, Bound[]>();
  const markets: Markets = { contracts, read, kept };
  if (!read) return markets;
  for (const routine of contract.lineage.flatMap(({ routines }) => routines)) {
    const frame = frameWithin(contract, routine);
    for (const part of expressionsWithin(routine)) {
      if (part.kind !== 'assignment') continue;
      const root = rootOf(part.left, frame);
      if (!isKept(root) || grows(part.operator, part.right, frame)) continue;
      const found = pricesIn(part.right, frame, markets);
      if (found.length > 0) kept.set(root, [...(kept.get(root) ?? []), ...found]);
    }
  }
  return markets;
}

/** A sum of prices times time, as a mean is made of. */
function grows(operator: string, value: Expression, frame: Frame): boolean {
  const meant = bare(value);
  if (operator !== '+=' && !(meant.kind === 'binary' && meant.operator === '+')) return false;
  for (const { expression: part } of provenance(value, frame, null))
    if (isBuiltin(part, 'block', 'timestamp')) return true;
  return false;
}

interface Use {
  prices: readonly Bound[];
  at: Expression;
  what: string;
  known: Known;
  /** Whether it concerns what the contract keeps for somebody. */
  ofKept: boolean;
  values: readonly Expression[];
}

/** Prices of the moment that decide something in one entry. */
export function spotPrices(contract: Contract, entry: Routine, markets: Markets, into: Finding[]): Listener {
  const isView = entry.mutability === 'view' || entry.mutability === 'pure';
  if (!markets.read || entry.role === 'constructor' || isView) return {};
  const look = { contract, entry, into };
  const uses: Use[] = [];
  /** Prices that are held against a mean or a feed. */
  const compared = new Set<Expression>();
  const traded: Bound[] = [];
  const use = (
    value: Expression,
    at: Expression,
    what: string,
    known: Known,
    frame: Frame,
    also: Expression[],
  ) => {
    const prices = pricesIn(value, frame, markets);
    if (prices.length === 0) return;
    const values = [...provenance(value, frame, markets)].map(({ expression }) => expression);
    const ofKept = [value, ...also].some((one) => isQuantity(one, frame, markets));
    uses.push({ prices, at, what, known, ofKept, values });
  };
  return {
    expression(expression, known, frame) {
      if (expression.kind === 'binary' && ORDERS.has(expression.operator)) {
        const { left, right } = expression;
        const told = [left, right].flatMap((side) => pricesIn(side, frame, markets));
        if ([left, right].some((side) => isHeldAgainst(side, frame, markets))) {
          for (const price of told) compared.add(price.expression);
          return;
        }
        use(left, expression, 'a condition', known, frame, [right]);
        use(right, expression, 'a condition', known, frame, [left]);
      }
      if (expression.kind !== 'call' || expression.form !== 'call') return;
      const move = tokenMove(expression, known, frame);
      if (move?.amount != null) use(move.amount, expression, 'a payment', known, frame, []);
      else if (outsideCall(expression, frame) !== null) {
        if (TRADES.test(calledName(expression)) && !isIssue(expression))
          traded.push(...expression.args.map((arg) => meaning(arg, frame)));
        else if (ISSUES.test(calledName(expression)))
          for (const arg of expression.args) use(arg, expression, 'what is issued', known, frame, []);
      }
    },
    outsideCall(call, known) {
      const amount = coinsOf(call);
      if (amount !== null) use(amount, call.call, 'a payment', known, call.frame, []);
    },
    write({ target, operator, value }, known, frame) {
      if (value === null || grows(operator, value, frame)) return;
      const changes = operator === '+=' || operator === '-=';
      const ofSomebody = isQuantity(value, frame, markets) || argumentDecides(value, frame);
      if (changes || ofSomebody) use(value, target, 'what is kept', known, frame, [target]);
    },
    end() {
      const trades = traded.length > 0;
      for (const { prices, at, what, known, ofKept, values } of uses) {
        if (prices.some(({ expression }) => compared.has(expression))) continue;
        // In a trade with a market, its present state is what the trade is made at.
        if (
          trades &&
          (!ofKept || traded.some(({ expression }) => isNumber(expression) && values.includes(expression)))
        )
          continue;
        if (what === 'a condition' && !ofKept) continue;
        for (const price of prices) report(look, price, at, what, known);
      }
    },
  };
}

function report(look: Look, price: Bound, at: Expression, what: string, known: Known): void {
  const told: Finding[] = [];
  const name = price.expression.kind === 'call' ? calledName(price.expression) : 'a ratio of balances';
  tell({ ...look, into: told }, 'spot-price', price.expression.place, price.frame, {
    severity: known.ownerCalls ? 'LOW' : 'HIGH',
    confidence: 'medium',
    detail: `${name} is what a market says at this moment, and ${what} goes by it.`,
  });
  for (const each of told)
    look.into.push({ ...each, related: [...each.related, related(at.place, `${what} that goes by it`)] });
}

/** The coins that a call pays. */
function coinsOf({ call, method }: OutsideCall): Expression | null {
  return method === 'send' || method === 'transfer' ? (call.args[0] ?? null) : call.value;
}

function isNumber(expression: Expression): boolean {
  return expression.kind !== 'literal' && !/^(address|contract|bytes)/.test(expression.type);
}

/** A token of one's own that is made for somebody, and no position in a market: a receiver and an amount. */
function isIssue(call: Call): boolean {
  return ISSUES.test(calledName(call)) && call.args.length === 2;
}

/** Whether a value is what the contract keeps for somebody, what was paid, or what such things go into. */
function isQuantity(value: Expression, frame: Frame, markets: Markets): boolean {
  for (const { expression: part, frame: at } of provenance(value, frame, markets)) {
    if (isBuiltin(part, 'msg', 'value')) return true;
    if (part.kind !== 'name' && part.kind !== 'member' && part.kind !== 'index') continue;
    const kept = keptPart(part, at);
    if (kept === null || kept.fixed || markets.kept.has(kept)) continue;
    if (
      /u?int\d+\)?$/.test(kept.type) ||
      (/^mapping/.test(kept.type) && !/(address|bool|contract \w+)\)*$/.test(kept.type))
    )
      return true;
  }
  return false;
}

/** Whether a side of a comparison has a mean in it, or differs from what a feed says. */
function isHeldAgainst(side: Expression, frame: Frame, markets: Markets): boolean {
  let differs = false;
  let fed = false;
  for (const { expression: part } of provenance(side, frame, markets)) {
    if (part.kind === 'binary' && part.operator === '-') differs = true;
    if (part.kind !== 'call') continue;
    if (MEAN.test(calledName(part))) return true;
    if (FEED.test(calledName(part))) fed = true;
  }
  return differs && fed;
}

/** A call that asks a market for its present state, or a library that does. */
function isPresent(call: Call): boolean {
  return (
    call.form === 'call' && Object.hasOwn(PRESENT, calledName(call)) && bare(call.callee).kind === 'member'
  );
}

/** The present prices that go into a value; none where a mean over time does. */
function pricesIn(value: Expression, frame: Frame, markets: Markets): Bound[] {
  const found = new Map<Expression, Bound>();
  for (const { expression: part, frame: at } of provenance(value, frame, markets)) {
    if (part.kind === 'call' && MEAN.test(calledName(part))) return [];
    const read = part.kind === 'call' && isPresent(part) && isOfOthers(part, at);
    if (read || isRatioOfBalances(part, at, markets)) found.set(part, { expression: part, frame: at });
  }
  return [...found.values()];
}

/** Asked of another contract, and not of a function of the contract's own. */
function isOfOthers(call: Call, frame: Frame): boolean {
  const callee = bare(call.callee);
  if (callee.kind !== 'member') return false;
  const { target } = callee;
  if (target?.kind === 'routine' && target.contract?.role === 'library')
    return calledName(call) === 'getSlot0' && target.returns.length > 1;
  return outsideCall(call, frame)?.method === 'function' && !isThis(callee.of, frame);
}

/** Two tokens that somebody else holds, one divided by the other. */
function isRatioOfBalances(part: Expression, frame: Frame, markets: Markets): boolean {
  const [above, below] = divided(part);
  if (above === null || below === null) return false;
  const [a, b] = [heldByOthers(above, frame, markets), heldByOthers(below, frame, markets)];
  return a.some(({ holder, token }) => b.some((other) => other.holder === holder && other.token !== token));
}

function divided(part: Expression): [Expression | null, Expression | null] {
  if (part.kind === 'binary' && part.operator === '/') return [part.left, part.right];
  if (part.kind !== 'call' || part.form !== 'call') return [null, null];
  const given = givenTo(part);
  const [a = null, b = null, c = null] = given;
  if (calledName(part) === 'div' && given.length === 2) return [a, b];
  return DIVIDES.test(calledName(part)) && c !== null
    ? [a !== null && b !== null ? joint(a, b) : null, c]
    : [null, null];
}

/** Two factors as one product. */
function joint(left: Expression, right: Expression): Expression {
  return { kind: 'binary', operator: '*', left, right, type: left.type, place: left.place };
}

function heldByOthers(
  value: Expression,
  frame: Frame,
  markets: Markets,
): { holder: string; token: string }[] {
  return [...provenance(value, frame, markets)].flatMap(({ expression: part, frame: at }) => {
    if (part.kind !== 'call' || calledName(part) !== 'balanceOf' || outsideCall(part, at) === null) return [];
    const [holder] = part.args;
    const callee = bare(part.callee);
    if (holder === undefined || callee.kind !== 'member' || isThis(holder, at) || argumentDecides(holder, at))
      return [];
    if (contains(holder, (one) => isBuiltin(one, 'msg', 'sender'))) return [];
    return [
      { holder: textOf(meaning(holder, at).expression), token: textOf(meaning(callee.of, at).expression) },
    ];
  });
}

/**
 * A value and whatever goes into it: through names, parts of tuples, functions, kept prices, and functions of other contracts of the
 * sources behind the interfaces that they have.
 */
function* provenance(
  value: Expression,
  frame: Frame,
  markets: Markets | null,
  depth = 0,
  left = { parts: MAX_PARTS },
): Generator<Bound> {
  const { expression: meant, frame: at } = meaning(value, frame);
  for (const part of within(meant)) {
    if (left.parts-- <= 0) return;
    yield { expression: part, frame: at };
    if (depth >= MAX_DEPTH) continue;
    if (part.kind === 'name' && part.target?.kind === 'variable') {
      for (const from of originsOf(part, part.target, meant, at, markets))
        yield* provenance(from.expression, from.frame, markets, depth + 1, left);
    }
    if (part.kind === 'call' && part.form === 'call')
      for (const from of [...returned(part, at), ...answers(part, at, markets)])
        yield* provenance(from.expression, from.frame, markets, depth + 1, left);
  }
}

function originsOf(
  part: Expression,
  named: Variable,
  meant: Expression,
  at: Frame,
  markets: Markets | null,
): Bound[] {
  if (named.scope === 'state') return [...(markets?.kept.get(named) ?? [])];
  const of = meaning(part, at);
  const found = part !== meant && of.expression !== part ? [of] : [];
  const { expression } = of;
  if (expression.kind !== 'name' || expression.target?.kind !== 'variable') return found;
  const origin = of.frame.origins.get(expression.target);
  return origin === undefined || !isPrice(expression.target, origin) ? found : [...found, origin];
}

/** Whether a variable that was taken out of a market's answer is one of its prices. */
function isPrice(variable: Variable, { expression, frame }: Bound): boolean {
  const call = bare(expression);
  const places = call.kind === 'call' ? (PRESENT[calledName(call)] ?? null) : null;
  if (places === null) return true;
  for (const statement of statementsWithin(frame.routine.body)) {
    if (statement.kind === 'declaration' && statement.initial === expression)
      return places.includes(statement.variables.indexOf(variable));
    if (statement.kind !== 'expression' || statement.expression.kind !== 'assignment') continue;
    const { left: target, right } = statement.expression;
    if (right !== expression || target.kind !== 'tuple') continue;
    return places.includes(
      target.items.findIndex((item) => item?.kind === 'name' && item.target === variable),
    );
  }
  return true;
}

/** The answers of a function of another contract of the sources, also where only its interface is named. */
function answers(call: Call, frame: Frame, markets: Markets | null): Bound[] {
  const callee = bare(call.callee);
  const target = callee.kind === 'member' ? callee.target : null;
  const declared = target?.kind === 'routine' ? target.contract : null;
  if (markets === null || target?.kind !== 'routine' || declared === null || target.body !== null) return [];
  return markets.contracts
    .filter((each) => each !== declared && each.role === 'contract' && each.lineage.includes(declared))
    .flatMap((each) => {
      const found = each.lineage
        .flatMap(({ routines }) => routines)
        .find(
          ({ name, body, parameters }) =>
            name === target.name && body !== null && parameters.length === call.args.length,
        );
      if (found === undefined) return [];
      const named: Expression = {
        kind: 'name',
        name: found.name,
        target: found,
        type: '',
        place: call.place,
      };
      return returned({ ...call, callee: named }, { ...frame, contract: each });
    });
}
