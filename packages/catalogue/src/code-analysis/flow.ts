/**
 * What may have happened before what: walks each entry of a contract along its paths, through modifiers and internal
 * calls, and tells the rules of every expression, write and outside call with what is known there. Branches that end
 * leave nothing behind; the others are joined.
 */
import {
  authorities,
  type Bound,
  bindParts,
  certainly,
  type Frame,
  isKept,
  keptPart,
  type OutsideCall,
  outsideCall,
  overriding,
  rootOf,
  showsSecret,
} from './meaning.ts';
import {
  bare,
  type Call,
  type Contract,
  calledName,
  contains,
  type Expression,
  type Place,
  partsOf,
  type Routine,
  type Statement,
  type Variable,
} from './syntax/tree.ts';

/** Deeper internal calls are not followed. */
const MAX_DEPTH = 6;
/** Expressions that one entry may visit: inlining can grow without end. */
const MAX_STEPS = 60_000;

export interface Check {
  condition: Expression;
  holds: boolean;
  frame: Frame;
}

export interface Write {
  /** The state variable that changes. */
  root: Variable;
  target: Expression;
  operator: string;
  value: Expression | null;
  place: Place;
}

/** The facts that are known at one point of a path. */
export interface Known {
  /** Outside calls that may have run. */
  calls: readonly OutsideCall[];
  /** Conditions that hold. */
  checks: readonly Check[];
  /** State variables read so far. */
  reads: ReadonlySet<Variable>;
  /** Whether the caller was compared with somebody whom the contract knows. */
  callerKnown: boolean;
  /** Whether the caller is in charge here, and not only somebody with an entry of their own. */
  ownerCalls: boolean;
  /** Whether the caller has shown a secret or a signature. */
  secretShown: boolean;
  /** Inside of `unchecked { }`. */
  unchecked: boolean;
  /** How many loops are around it, of all functions on the way. */
  loops: number;
}

/** The events that a rule listens to. */
export interface Listener {
  expression?(expression: Expression, known: Known, frame: Frame, statement: Statement | null): void;
  outsideCall?(call: OutsideCall, known: Known): void;
  write?(write: Write, known: Known, frame: Frame): void;
  /** When the entry has been walked. */
  end?(): void;
}

interface State {
  calls: OutsideCall[];
  checks: Check[];
  reads: Set<Variable>;
  callerKnown: boolean;
  ownerCalls: boolean;
  secretShown: boolean;
  unchecked: boolean;
  loops: number;
  ended: boolean;
}

const NOTHING_KNOWN: State = {
  calls: [],
  checks: [],
  reads: new Set(),
  callerKnown: false,
  ownerCalls: false,
  secretShown: false,
  unchecked: false,
  loops: 0,
  ended: false,
};

/** The functions of a contract that anybody can call, each as the most derived contract has it. */
export function entriesOf(contract: Contract): Routine[] {
  const seen = new Set<string>();
  const entries: Routine[] = [];
  for (const base of contract.lineage) {
    for (const routine of base.routines) {
      if (routine.role === 'modifier' || routine.body === null) continue;
      if (routine.visibility !== 'public' && routine.visibility !== 'external') continue;
      if (routine.role === 'constructor' && base !== contract) continue;
      const key = `${routine.role} ${routine.name} ${routine.parameters.map(({ type }) => type).join()}`;
      if (seen.has(key)) continue;
      seen.add(key);
      entries.push(routine);
    }
  }
  return entries;
}

type Names = ReadonlySet<string>;

/** Names of functions that let only some callers through, as contracts call them in front of an act. */
const GUARD_CALL = /^_?(check|only|require|enforce|auth|assert)[A-Z_]/;

/**
 * Walks one entry and tells the listeners.
 *
 * @returns the names of modifiers and guards on the way whose source is not there, such as those of an import that was not
 * sent: what they ask is unknown
 */
export function walkEntry(contract: Contract, entry: Routine, listeners: readonly Listener[]): Names {
  let steps = 0;
  const unseen = new Set<string>();

  function run(routine: Routine, frame: Frame, state: State): State {
    const exits: State[] = [];
    const after = modified(routine, 0, frame, state, exits);
    return joined([after, ...exits.map((exit) => ({ ...exit, ended: false }))]);
  }

  /** The body with the modifiers from one on around it. */
  function modified(routine: Routine, at: number, frame: Frame, state: State, exits: State[]): State {
    const invocation = routine.invocations[at];
    if (invocation === undefined)
      return routine.body === null ? state : step(routine.body, frame, state, exits, null);
    const before = invocation.args.reduce((now, arg) => evaluate(arg, frame, now, null), state);
    const { target } = invocation;
    if (target === null && routine.role !== 'constructor') unseen.add(invocation.name);
    if (target === null || target.role !== 'modifier') return modified(routine, at + 1, frame, before, exits);
    const modifier = overriding(target, frame.contract);
    if (modifier.body === null || frame.depth > MAX_DEPTH)
      return modified(routine, at + 1, frame, before, exits);
    const inner = frameOf(modifier, frame, invocation.args, invocation.place);
    const leaving: State[] = [];
    const result = step(modifier.body, inner, before, leaving, (now) => {
      const own: State[] = [];
      const done = modified(routine, at + 1, frame, now, own);
      return joined([done, ...own.map((exit) => ({ ...exit, ended: false }))]);
    });
    return joined([result, ...leaving.map((exit) => ({ ...exit, ended: false }))]);
  }

  type Placeholder = ((state: State) => State) | null;

  function step(
    statement: Statement,
    frame: Frame,
    state: State,
    exits: State[],
    placeholder: Placeholder,
  ): State {
    if (state.ended) return state;
    switch (statement.kind) {
      case 'block': {
        const inside = { ...state, unchecked: state.unchecked || statement.unchecked };
        const after = statement.statements.reduce(
          (now, each) => step(each, frame, now, exits, placeholder),
          inside,
        );
        return { ...after, unchecked: state.unchecked };
      }
      case 'expression':
        return evaluate(statement.expression, frame, state, statement);
      case 'declaration': {
        if (statement.initial === null) return state;
        const after = evaluate(statement.initial, frame, state, statement);
        bindDeclared(statement.variables, statement.initial, frame);
        return after;
      }
      case 'if': {
        const decided = evaluate(statement.condition, frame, state, statement);
        const taken = (holds: boolean): State => {
          const branch = holds ? statement.whenTrue : statement.whenFalse;
          const now = assume(statement.condition, holds, frame, decided);
          return branch === null ? now : step(branch, frame, now, exits, placeholder);
        };
        const certain = certainly(statement.condition, frame);
        return certain === null ? joined([taken(true), taken(false)]) : taken(certain);
      }
      case 'loop': {
        const started =
          statement.before === null ? state : step(statement.before, frame, state, exits, placeholder);
        const { condition } = statement;
        const decided = condition === null ? started : evaluate(condition, frame, started, statement);
        const inside =
          condition === null || statement.bodyFirst ? decided : assume(condition, true, frame, decided);
        const entered = { ...inside, loops: state.loops + 1 };
        const body = step(statement.body, frame, entered, exits, placeholder);
        const round =
          statement.after === null || body.ended
            ? body
            : step(statement.after, frame, body, exits, placeholder);
        return joined([decided, { ...round, loops: state.loops }]);
      }
      case 'return': {
        const after = statement.value === null ? state : evaluate(statement.value, frame, state, statement);
        exits.push(after);
        return { ...after, ended: true };
      }
      case 'revert': {
        const after = statement.arguments.reduce((now, each) => evaluate(each, frame, now, statement), state);
        return { ...after, ended: true };
      }
      case 'emit':
        return evaluate(statement.event, frame, state, statement);
      case 'try': {
        const called = evaluate(statement.call, frame, state, statement);
        return joined(statement.clauses.map((clause) => step(clause, frame, called, exits, placeholder)));
      }
      case 'assembly':
        return statement.body === null ? state : step(statement.body, frame, state, exits, placeholder);
      case 'placeholder':
        return placeholder === null ? state : placeholder(state);
      default:
        return state;
    }
  }

  /** Evaluates an expression from the inside out. */
  function evaluate(expression: Expression, frame: Frame, state: State, statement: Statement | null): State {
    steps += 1;
    if (steps > MAX_STEPS || state.ended) return state;
    let now = state;
    if (expression.kind === 'binary' && (expression.operator === '&&' || expression.operator === '||')) {
      const left = evaluate(expression.left, frame, now, statement);
      const right = evaluate(
        expression.right,
        frame,
        assume(expression.left, expression.operator === '&&', frame, left),
        statement,
      );
      now = knownWithout(left, right);
    } else if (expression.kind === 'conditional') {
      const decided = evaluate(expression.condition, frame, now, statement);
      now = joined([
        evaluate(expression.whenTrue, frame, assume(expression.condition, true, frame, decided), statement),
        evaluate(expression.whenFalse, frame, assume(expression.condition, false, frame, decided), statement),
      ]);
    } else if (expression.kind === 'assignment') {
      now = evaluate(expression.right, frame, now, statement);
      now = evaluate(expression.left, frame, now, statement);
      bindAssigned(expression, frame);
    } else {
      for (const part of partsOf(expression)) now = evaluate(part, frame, now, statement);
    }
    const root = expression.kind === 'name' ? rootOf(expression, frame) : null;
    if (isKept(root) && !now.reads.has(root)) {
      now = { ...now, reads: new Set(now.reads).add(root) };
    }
    for (const listener of listeners) listener.expression?.(expression, now, frame, statement);
    if (expression.kind === 'assignment')
      tellWrites(expression.left, expression.operator, expression.right, frame, now);
    if (expression.kind === 'unary' && ['++', '--', 'delete'].includes(expression.operator)) {
      tellWrites(expression.operand, expression.operator, null, frame, now);
    }
    return expression.kind === 'call' ? called(expression, frame, now) : now;
  }

  function tellWrites(
    target: Expression,
    operator: string,
    value: Expression | null,
    frame: Frame,
    known: Known,
  ): void {
    if (target.kind === 'tuple') {
      for (const item of target.items) if (item !== null) tellWrites(item, operator, null, frame, known);
      return;
    }
    const root = rootOf(target, frame);
    // Another meaning for a name of storage writes nothing.
    const renames =
      target.kind === 'name' && target.target?.kind === 'variable' && target.target.scope !== 'state';
    if (!isKept(root) || renames) return;
    for (const listener of listeners)
      listener.write?.({ root, target, operator, value, place: target.place }, known, frame);
  }

  function called(call: Call, frame: Frame, state: State): State {
    if (call.form !== 'call') return state;
    const name = calledName(call);
    const callee = bare(call.callee);
    const target = callee.kind === 'name' || callee.kind === 'member' ? callee.target : null;
    if (callee.kind === 'name' && target === null) {
      const condition = call.args[0];
      if ((name === 'require' || name === 'assert') && condition !== undefined)
        return assume(condition, true, frame, state);
      if (name === 'revert' || name === 'selfdestruct' || name === 'suicide')
        return { ...state, ended: true };
      if (GUARD_CALL.test(name)) unseen.add(name);
      return state;
    }
    if (callee.kind === 'member' && target === null && (name === 'push' || name === 'pop')) {
      tellWrites(callee.of, name, call.args[0] ?? null, frame, state);
      return state;
    }
    const outside = outsideCall(call, frame);
    if (outside !== null) {
      for (const listener of listeners) listener.outsideCall?.(outside, state);
      return { ...state, calls: [...state.calls, outside] };
    }
    if (target?.kind !== 'routine' || frame.depth >= MAX_DEPTH) return state;
    const isSuper = callee.kind === 'member' && callee.of.kind === 'name' && callee.of.name === 'super';
    const routine = isSuper || callee.kind === 'member' ? target : overriding(target, frame.contract);
    // Without a body it is for whoever inherits to say: what it asks is unknown.
    if (routine.body === null && (GUARD_CALL.test(name) || /^_?authori[sz]e/i.test(name))) unseen.add(name);
    if (routine.body === null || routine === frame.routine) return state;
    // `using L for T`: what it is called on is the first argument.
    const on =
      callee.kind === 'member' && routine.parameters.length === call.args.length + 1 ? [callee.of] : [];
    return {
      ...run(routine, frameOf(routine, frame, [...on, ...call.args], call.place), {
        ...state,
        unchecked: false,
      }),
      unchecked: state.unchecked,
    };
  }

  /** Notes what is known once a condition has turned out one way. */
  function assume(condition: Expression, holds: boolean, frame: Frame, state: State): State {
    const decided = bare(condition);
    if (decided.kind === 'unary' && decided.operator === '!')
      return assume(decided.operand, !holds, frame, state);
    if (decided.kind === 'binary' && (decided.operator === '&&' || decided.operator === '||')) {
      const both = (decided.operator === '&&') === holds;
      const left = assume(decided.left, holds, frame, state);
      if (both) return assume(decided.right, holds, frame, left);
      const right = assume(decided.right, holds, frame, state);
      return {
        ...state,
        checks: [...state.checks, { condition: decided, holds, frame }],
        callerKnown: left.callerKnown && right.callerKnown,
        ownerCalls: left.ownerCalls && right.ownerCalls,
        secretShown: left.secretShown && right.secretShown,
      };
    }
    if (decided.kind === 'name' && decided.target?.kind === 'variable' && decided.target.scope === 'local') {
      const bound = frame.bindings.get(decided.target);
      if (bound !== undefined && bound.expression.kind !== 'name' && bound.expression !== condition) {
        const meant = bare(bound.expression);
        if (meant.kind === 'binary' || meant.kind === 'unary')
          return assume(meant, holds, bound.frame, state);
      }
    }
    const parties = authorities(decided, holds, frame);
    return {
      ...state,
      checks: [...state.checks, { condition: decided, holds, frame }],
      callerKnown: state.callerKnown || parties !== null,
      ownerCalls:
        state.ownerCalls ||
        (parties !== null &&
          !asksForStruct(decided, frame) &&
          !parties.some(({ type }) => /^mapping\(.*=> (struct|contract|u?int|mapping)/.test(type))),
      secretShown: state.secretShown || showsSecret(decided, holds, frame),
    };
  }

  const frame = entryFrame(contract, entry);
  run(entry, frame, { ...NOTHING_KNOWN });
  for (const listener of listeners) listener.end?.();
  return unseen;
}

/** Where an entry begins: nothing is bound, and nothing was called. */
function entryFrame(contract: Contract, entry: Routine): Frame {
  const [bindings, origins] = [new Map<Variable, Bound>(), new Map<Variable, Bound>()];
  return { contract, entry, routine: entry, bindings, origins, trail: [], depth: 0 };
}

/** Where a called function or a modifier begins: its parameters stand for what it is given. */
function frameOf(
  routine: Routine,
  outer: Frame,
  args: readonly (Expression | undefined)[],
  place: Place,
): Frame {
  const bindings = new Map<Variable, Bound>();
  routine.parameters.forEach((parameter, i) => {
    const expression = args[i];
    if (expression !== undefined) bindings.set(parameter, { expression, frame: outer });
  });
  const trail = [...outer.trail, place];
  return { ...outer, routine, bindings, origins: new Map(), trail, depth: outer.depth + 1 };
}

/** Notes what declared variables stand for, or come from where they are parts of one value. */
function bindDeclared(variables: readonly (Variable | null)[], initial: Expression, frame: Frame): void {
  const known = variables.length === 1 ? frame.bindings : frame.origins;
  for (const each of variables) if (each !== null) known.set(each, { expression: initial, frame });
}

/** Notes what a variable stands for from an assignment on. */
function bindAssigned(
  { operator, left, right }: Extract<Expression, { kind: 'assignment' }>,
  frame: Frame,
): void {
  if (operator === '=') bindParts({ left, right }, frame);
  if (operator !== '=' || left.kind !== 'name' || left.target?.kind !== 'variable') return;
  const { target } = left;
  // What a variable stands for must not stand for itself.
  const loops = contains(right, (part) => part.kind === 'name' && part.target === target);
  if (target.scope !== 'state' && !loops) frame.bindings.set(target, { expression: right, frame });
}

/** Whether a condition reads a field of a struct under an index: an entry of many, and nobody in charge. */
function asksForStruct(condition: Expression, frame: Frame): boolean {
  return contains(condition, (part) => {
    if (part.kind !== 'member') return false;
    const root = rootOf(part, frame);
    return isKept(root) && root !== keptPart(part, frame) && /^mapping/.test(root.type);
  });
}

/** The state after an operand that may not have been evaluated: what may have happened is its own, what holds is of before it. */
function knownWithout(before: State, after: State): State {
  const { checks, callerKnown, ownerCalls, secretShown } = before;
  return { ...after, checks, callerKnown, ownerCalls, secretShown };
}

/** Joins the facts where several paths meet: what may have happened on any, and what holds on all. */
function joined(states: readonly State[]): State {
  const open = states.filter(({ ended }) => !ended);
  const [first, ...rest] = open;
  if (first === undefined) return states[0] ?? { ...NOTHING_KNOWN, ended: true };
  if (rest.length === 0) return first;
  return {
    calls: [...new Set(open.flatMap(({ calls }) => calls))],
    checks: first.checks.filter((check) => rest.every(({ checks }) => checks.includes(check))),
    reads: new Set(open.flatMap(({ reads }) => [...reads])),
    callerKnown: open.every(({ callerKnown }) => callerKnown),
    ownerCalls: open.every(({ ownerCalls }) => ownerCalls),
    secretShown: open.every(({ secretShown }) => secretShown),
    unchecked: first.unchecked,
    loops: first.loops,
    ended: false,
  };
}
