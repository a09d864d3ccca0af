import { entriesOf, type Known, type Listener, walkEntry } from '../flow.ts';
import {
  authorities,
  type Frame,
  isCaller,
  keptPart,
  meaning,
  type OutsideCall,
  rootOf,
} from '../meaning.ts';
import {
  bare,
  type Contract,
  calledName,
  contains,
  type Expression,
  expressionsWithin,
  isBuiltin,
  type Place,
  type Routine,
  statementsWithin,
  type Variable,
} from '../syntax/tree.ts';
import { deeplyContains, isOfCaller } from './caller.ts';
import { type Finding, finding, ON_THE_WAY, type RelatedLine, related } from './finding.ts';

const AUTHORITY_NAME =
  /^_?(owner|admin|creator|governor|governance|controller|root|master|ceo|minter|pauser|operator)s?$/i;

/**
 * The state variables that say who may do what: those with which the caller is compared somewhere.
 */
export function authorityVariables(contract: Contract): Set<Variable> {
  const found = new Set<Variable>();
  for (const base of contract.lineage) {
    for (const routine of base.routines) {
      const frame: Frame = {
        contract,
        entry: routine,
        routine,
        bindings: new Map(),
        origins: new Map(),
        trail: [],
        depth: 0,
      };
      for (const statement of statementsWithin(routine.body)) {
        if (statement.kind === 'declaration' && statement.initial !== null && statement.variables[0] != null)
          frame.bindings.set(statement.variables[0], { expression: statement.initial, frame });
      }
      for (const part of expressionsWithin(routine)) {
        const compared =
          part.kind === 'binary' &&
          (part.operator === '==' || part.operator === '!=' || part.operator === '>');
        if (!compared && part.kind !== 'index') continue;
        for (const holds of [true, false]) {
          for (const variable of authorities(part, holds, frame) ?? []) {
            const isParty =
              /^address|^contract|=> (address|bool|enum )/.test(variable.type) || variable.type === '';
            if (isParty || AUTHORITY_NAME.test(variable.name) || /owner|admin/i.test(variable.name))
              found.add(variable);
          }
        }
      }
    }
  }
  return found;
}

/** What is kept and anybody sets to what they like: who is proposed, for one. */
export function openParts(contract: Contract): Set<Variable> {
  const found = new Set<Variable>();
  for (const entry of entriesOf(contract)) {
    if (entry.role === 'constructor') continue;
    walkEntry(contract, entry, [
      {
        write({ target, operator, value }, known, frame) {
          if (operator !== '=' || value === null || bare(target).kind !== 'name') return;
          const part = keptPart(target, frame);
          if (part === null || known.callerKnown || known.secretShown || isOnce(part, known)) return;
          if (/^address/.test(part.type) && contains(value, (one) => isOfCaller(one, frame))) found.add(part);
        },
      },
    ]);
  }
  return found;
}

/** Whether a value is of the caller's choice, now or in a call before. */
function isChosen(value: Expression, frame: Frame, open: ReadonlySet<Variable>): boolean {
  return contains(value, (part) => {
    if (isOfCaller(part, frame)) return true;
    const { expression, frame: at } = meaning(part, frame);
    const kept = expression.kind === 'name' ? keptPart(expression, at) : null;
    return kept !== null && open.has(kept);
  });
}

function chargeTaken(part: Variable, place: Place, frame: Frame, way: readonly RelatedLine[]): Finding {
  const { contract, entry, routine, depth } = frame;
  return finding(
    'unprotected-authority',
    place,
    { contract, routine },
    {
      severity: 'CRITICAL',
      confidence: depth > 2 ? 'medium' : 'high',
      detail: `${part.name}, by which the contract knows who may act, is set in ${entry.name || entry.role} for whoever calls.`,
      related: [...way, related(entry.head, 'the entry')],
    },
  );
}

/** `token.transferFrom(msg.sender, …)`. */
function takesFromCaller({ call, method, frame }: OutsideCall): boolean {
  const [from] = call.args;
  return (
    method === 'function' &&
    /^(safe)?transferFrom$/i.test(calledName(call)) &&
    from !== undefined &&
    isCaller(from, frame)
  );
}

/** Findings of an entry that anybody can call: SWC-105, 106, 112, 115, 124. */
export function accessControl(
  contract: Contract,
  entry: Routine,
  guarded: ReadonlySet<Variable>,
  open: ReadonlySet<Variable>,
  into: Finding[],
): Listener {
  if (entry.role === 'constructor') return {};
  const where = (frame: Frame) => ({ contract, routine: frame.routine });
  const way = (frame: Frame) => [
    ...frame.trail.map((at) => related(at, ON_THE_WAY)),
    ...(frame.trail.length > 0 ? [related(entry.head, 'the entry')] : []),
  ];
  const lengths = lengthsByHand(contract);
  const lowered = new Set<Variable>();
  const payouts: { call: OutsideCall; known: Known; amount: Expression }[] = [];
  const ofGivers: Finding[] = [];
  let given = false;

  return {
    expression(expression, known, frame) {
      if (expression.kind === 'binary' && (expression.operator === '==' || expression.operator === '!=')) {
        const { left, right } = expression;
        const origin = isBuiltin(bare(left), 'tx', 'origin')
          ? right
          : isBuiltin(bare(right), 'tx', 'origin')
            ? left
            : null;
        if (origin !== null && !isBuiltin(bare(origin), 'msg', 'sender')) {
          into.push(
            finding('tx-origin', expression.place, where(frame), {
              severity: 'HIGH',
              confidence: 'high',
              detail: 'tx.origin is compared to decide who may go on.',
            }),
          );
        }
      }
      if (expression.kind === 'call' && expression.form === 'call') {
        const name = calledName(expression);
        const callee = bare(expression.callee);
        const isDestroy =
          callee.kind === 'name' && callee.target === null && (name === 'selfdestruct' || name === 'suicide');
        if (isDestroy && !known.callerKnown && !known.secretShown) {
          into.push(
            finding('unprotected-selfdestruct', expression.place, where(frame), {
              severity: 'CRITICAL',
              confidence: 'high',
              detail: `${name} is reached from ${entry.name || entry.role} by anybody.`,
              related: [...way(frame), related(entry.head, 'the entry')],
            }),
          );
        }
      }
    },

    outsideCall(call, known) {
      if (takesFromCaller(call)) given = true;
      if (call.method === 'delegatecall' || call.method === 'callcode') delegated(call, known);
      const amount =
        call.method === 'send' || call.method === 'transfer'
          ? call.call.args[0]
          : call.method === 'call'
            ? call.call.value
            : null;
      if (amount != null && !known.callerKnown && !known.secretShown) payouts.push({ call, known, amount });
    },

    write({ root, target, operator, value, place }, known, frame) {
      lowered.add(root);
      lengthByHand(root, target, operator, value, known, frame);
      const part = keptPart(target, frame) ?? root;
      if ((!guarded.has(part) && !guarded.has(root)) || known.callerKnown || known.secretShown) return;
      // What is written under the caller's own name is theirs.
      const underCaller = contains(
        target,
        (part) => part.kind === 'index' && part.index !== null && isCaller(part.index, frame),
      );
      if (underCaller) {
        if (target.kind === 'index' && bare(target.of).kind === 'index') return;
        const { expression: given } = value === null ? { expression: null } : meaning(value, frame);
        if (!/owner|admin/i.test(part.name) || given?.kind === 'literal') return;
      }
      if (isOnce(part, known, target.kind === 'index') || (value !== null && isGivenUp(value))) return;
      if (value !== null && target.kind !== 'index' && !isChosen(value, frame, open)) return;
      const found = chargeTaken(part, place, frame, way(frame));
      if (target.kind === 'index' && value !== null && isCaller(value, frame)) ofGivers.push(found);
      else into.push(found);
    },

    end() {
      // An entry for whoever gave something for it is theirs.
      if (!given) into.push(...ofGivers);
      for (const payout of payouts) paidOut(payout);
    },
  };

  function delegated(call: OutsideCall, known: Known): void {
    if (known.callerKnown) return;
    const { expression, frame } = meaning(call.callee, call.frame);
    const root = rootOf(expression, frame);
    const place = call.call.place;
    const isParameter = root?.scope === 'parameter' || isCaller(expression, frame);
    if (isParameter && call.frame.entry.visibility !== 'internal') {
      into.push(
        finding('untrusted-delegatecall', place, where(call.frame), {
          severity: 'CRITICAL',
          confidence: 'high',
          detail: 'The caller names the address whose code runs.',
          related: way(call.frame),
        }),
      );
    } else if (root?.scope === 'state' && call.call.inAssembly !== true) {
      const forwards = call.call.args.some((arg) => contains(arg, (part) => isBuiltin(part, 'msg', 'data')));
      if (root.fixed && !forwards) return;
      into.push(
        finding(forwards ? 'untrusted-delegatecall' : 'delegatecall-to-variable', place, where(call.frame), {
          severity: root.fixed ? 'LOW' : forwards ? 'HIGH' : 'MEDIUM',
          confidence: root.fixed ? 'low' : 'medium',
          detail: `The code at ${root.name} runs with this contract’s storage${forwards ? ', with whatever the caller sends' : ''}.`,
          related: way(call.frame),
        }),
      );
    }
  }

  function lengthByHand(
    root: Variable,
    target: Expression,
    operator: string,
    value: Expression | null,
    known: Known,
    frame: Frame,
  ): void {
    if (known.callerKnown) return;
    if (target.kind === 'member' && target.member === 'length') {
      const isLess = operator === '--' || operator === '-=';
      const isEmptied = value !== null && value.kind === 'literal' && operator === '=';
      const sizeKnown = known.checks.some(({ condition, holds }) =>
        contains(
          condition,
          (part) =>
            part.kind === 'binary' &&
            ['>', '!='].includes(part.operator) &&
            holds &&
            mentionsLength(part, root),
        ),
      );
      if (isEmptied || (isLess && sizeKnown) || operator === '++' || operator === '+=') return;
      const settable = isLess || (value !== null && contains(value, (part) => isOfCaller(part, frame)));
      if (!settable) return;
      into.push(
        finding('array-length', target.place, where(frame), {
          severity: 'HIGH',
          confidence: isLess ? 'high' : 'medium',
          detail: `The length of ${root.name} is ${isLess ? 'lowered without a check that it is not zero' : 'set to a number of the caller’s'}.`,
        }),
      );
    } else if (target.kind === 'index' && lengths.has(root) && /\[\]/.test(target.of.type)) {
      into.push(
        finding('array-length', target.place, where(frame), {
          severity: 'HIGH',
          confidence: 'medium',
          detail: `${root.name}, whose length is set by hand, is written at a place of the caller’s choice.`,
        }),
      );
    }
  }

  function paidOut({ call, known, amount }: (typeof payouts)[number]): void {
    const { frame } = call;
    const { expression: meant, frame: within } = meaning(amount, frame);
    const receiver = meaning(call.callee, frame);
    const toCaller = isCaller(receiver.expression, receiver.frame);
    const root = rootOf(receiver.expression, receiver.frame);
    if ((!toCaller && root?.scope !== 'parameter') || call.call.inAssembly === true) return;
    const place = call.call.place;

    const inverted = known.checks.find(({ condition, holds, frame: at }) =>
      isInverted(condition, holds, at, meant),
    );
    if (inverted !== undefined) {
      into.push(
        finding('inverted-check', inverted.condition.place, where(frame), {
          severity: 'CRITICAL',
          confidence: 'medium',
          detail: `The payment in line ${place.line} is made when the amount is at least the caller’s balance.`,
          related: [related(place, 'the payment')],
        }),
      );
      return;
    }
    const owed = meant.kind === 'index' || meant.kind === 'member' ? rootOf(meant, within) : null;
    const ofCaller = contains(
      meant,
      (part) => part.kind === 'index' && part.index !== null && isCaller(part.index, within),
    );
    if (owed?.scope === 'state' && ofCaller && !lowered.has(owed) && toCaller && !limited(known, owed)) {
      into.push(
        finding('balance-not-lowered', place, where(frame), {
          severity: 'CRITICAL',
          confidence: 'high',
          detail: `${owed.name} of the caller is paid out, and nothing in ${entry.name || entry.role} lowers it.`,
        }),
      );
      return;
    }
    const takesAll = contains(
      meant,
      (part) =>
        part.kind === 'member' &&
        part.member === 'balance' &&
        !/^struct/.test(part.of.type) &&
        part.target === null,
    );
    const named = rootOf(meant, within);
    const takesNamed = named?.scope === 'parameter';
    if (!takesAll && !takesNamed) return;
    const decidedByState = known.checks.some(({ condition, frame: at }) =>
      contains(
        condition,
        (part) =>
          (part.kind === 'name' &&
            part.target?.kind === 'variable' &&
            (part.target.scope === 'state' || rootOf(part, at)?.scope === 'state')) ||
          part.kind === 'call' ||
          isBuiltin(part, 'msg', 'value') ||
          isBuiltin(part, 'block', 'timestamp') ||
          (part.kind === 'name' && part.name === 'now'),
      ),
    );
    if (decidedByState || lowered.size > 0 || entry.mutability === 'payable') return;
    into.push(
      finding('unprotected-withdrawal', place, where(frame), {
        severity: 'CRITICAL',
        confidence: 'medium',
        detail: `${takesAll ? 'The whole balance' : 'An amount of the caller’s choice'} goes to ${toCaller ? 'whoever calls' : 'an address that the caller names'}.`,
        related: [related(entry.head, 'the entry')],
      }),
    );
  }
}

/** Arrays whose length is set to something other than zero. */
function lengthsByHand(contract: Contract): Set<Variable> {
  const found = new Set<Variable>();
  for (const routine of contract.lineage.flatMap(({ routines }) => routines)) {
    for (const part of expressionsWithin(routine)) {
      const target =
        part.kind === 'assignment'
          ? part.left
          : part.kind === 'unary' && part.operator === '--'
            ? part.operand
            : null;
      if (target?.kind !== 'member' || target.member !== 'length' || target.of.kind !== 'name') continue;
      if (part.kind === 'assignment' && bare(part.right).kind === 'literal') continue;
      if (target.of.target?.kind === 'variable') found.add(target.of.target);
    }
  }
  return found;
}

function limited(known: Known, owed: Variable): boolean {
  return known.checks.some(({ condition, frame }) =>
    contains(condition, (part) => {
      const root = part.kind === 'name' ? rootOf(part, frame) : null;
      return root !== null && root !== owed && root.scope === 'state' && /bool/.test(root.type);
    }),
  );
}

function mentionsLength(expression: Expression, root: Variable): boolean {
  return contains(
    expression,
    (part) =>
      part.kind === 'member' &&
      part.member === 'length' &&
      contains(part.of, (one) => one.kind === 'name' && one.target === root),
  );
}

/** Whether the path shows that something is set once: what the same entry changes was compared before with a value of no caller. */
export function isOnce(part: Variable, known: Known, isEntry = false): boolean {
  return (
    known.checks.some(({ condition, frame }) => {
      const compared = bare(condition);
      const sides = compared.kind === 'binary' ? [compared.left, compared.right] : [compared];
      // That the new one is another than the old one says nothing of who calls.
      if (!isEntry && sides.some((side) => contains(side, (one) => isOfCaller(one, frame)))) return false;
      return deeplyContains(condition, frame, (one, at) => {
        if (one.kind !== 'name' && one.kind !== 'member' && one.kind !== 'index') return false;
        const read = keptPart(one, at);
        if (read === null) return false;
        return read === part || /init|setup|started|deployed|done|configured/i.test(read.name);
      });
    }) &&
    !known.checks.every(
      ({ condition }) => condition.kind === 'binary' && contains(condition, (one) => one.kind === 'index'),
    )
  );
}

/** Set to nobody. */
function isGivenUp(value: Expression): boolean {
  const meant = bare(value);
  return meant.kind === 'literal' && /^((0x)?0*|false)$/.test(meant.value);
}

/** `require(amount >= balances[msg.sender])` before `amount` is paid. */
function isInverted(condition: Expression, holds: boolean, frame: Frame, amount: Expression): boolean {
  if (condition.kind !== 'binary') return false;
  const asked = holds
    ? condition.operator
    : { '<': '>=', '<=': '>', '>': '<=', '>=': '<' }[condition.operator];
  const [small, large] =
    asked === '>' || asked === '>='
      ? [condition.right, condition.left]
      : asked === '<' || asked === '<='
        ? [condition.left, condition.right]
        : [];
  if (small === undefined || large === undefined) return false;
  const { expression, frame: within } = meaning(large, frame);
  const isAmount =
    expression.kind === 'name' &&
    amount.kind === 'name' &&
    expression.target === amount.target &&
    expression.target !== null;
  if (!isAmount) return false;
  const owed = meaning(small, within);
  return (
    owed.expression.kind === 'index' &&
    owed.expression.index !== null &&
    isCaller(owed.expression.index, owed.frame) &&
    /uint/.test(owed.expression.type)
  );
}

/** SWC-118: a function that was meant to be the constructor, before 0.5. */
export function wrongConstructors(contract: Contract, minor: number, into: Finding[]): void {
  if (minor >= 5 || contract.role !== 'contract') return;
  if (contract.routines.some(({ role }) => role === 'constructor')) {
    for (const routine of contract.routines) if (/^constructor$/i.test(routine.name)) report(routine);
    return;
  }
  const parties = authorityVariables(contract);
  for (const routine of contract.routines) {
    if (routine.role !== 'function' || routine.visibility === 'internal' || routine.visibility === 'private')
      continue;
    if (routine.invocations.length > 0) continue;
    const { name } = routine;
    const isNear =
      name.toLowerCase() === contract.name.toLowerCase() ||
      /^constructor$/i.test(name) ||
      (name.length > 4 &&
        (name.toLowerCase().includes(contract.name.toLowerCase()) ||
          distance(name.toLowerCase(), contract.name.toLowerCase()) <= 2));
    const statements = routine.body?.kind === 'block' ? routine.body.statements : [];
    const becomesOwner = statements.some(
      ({ ...each }) =>
        each.kind === 'expression' &&
        each.expression.kind === 'assignment' &&
        each.expression.left.kind === 'name' &&
        each.expression.left.target?.kind === 'variable' &&
        parties.has(each.expression.left.target) &&
        isBuiltin(bare(each.expression.right), 'msg', 'sender'),
    );
    const looksMeant = becomesOwner && /^[A-Z]/.test(name) && routine.parameters.length === 0;
    if ((isNear && becomesOwner) || looksMeant) report(routine);
  }

  function report(routine: Routine): void {
    into.push(
      finding(
        'wrong-constructor',
        routine.head,
        { contract, routine },
        {
          severity: 'CRITICAL',
          confidence: 'high',
          detail: `${routine.name} is an ordinary function of ${contract.name}: anybody can call it.`,
        },
      ),
    );
  }
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1),
      );
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
