/**
 * The tree that the rules read: one tree for every compiler version and for source that no compiler takes. Names are resolved to
 * what they declare, options of calls stand with their call, and each node knows its lines.
 */

/** Lines count from 1. */
export interface Place {
  file: string;
  line: number;
  endLine: number;
}

export interface Variable {
  kind: 'variable';
  name: string;
  /** The type as the compiler writes it, such as `mapping(address => uint256)`; empty where it is not known. */
  type: string;
  scope: 'state' | 'parameter' | 'return' | 'local';
  /** Where a value of a reference type lies; empty for what lies nowhere by name. */
  location: 'storage' | 'memory' | 'calldata' | '';
  /** Never changes after construction. */
  fixed: boolean;
  visibility: string;
  initial: Expression | null;
  contract: Contract | null;
  place: Place;
}

export interface Invocation {
  name: string;
  target: Routine | null;
  args: Expression[];
  place: Place;
}

/** A function, a constructor, a fallback or a modifier. */
export interface Routine {
  kind: 'routine';
  role: 'function' | 'constructor' | 'fallback' | 'receive' | 'modifier';
  name: string;
  visibility: 'public' | 'external' | 'internal' | 'private';
  /** `pure`, `view` (also the older `constant`), `nonpayable` or `payable`. */
  mutability: string;
  parameters: Variable[];
  returns: Variable[];
  /** Modifiers and constructors of bases, in their order. */
  invocations: Invocation[];
  body: Statement | null;
  contract: Contract | null;
  place: Place;
  /** The lines of its head alone. */
  head: Place;
}

export interface Struct {
  kind: 'struct';
  name: string;
  fields: Variable[];
}

export interface Contract {
  kind: 'contract';
  role: 'contract' | 'abstract' | 'library' | 'interface';
  name: string;
  /** Itself first, then its bases from the nearest to the farthest. */
  lineage: Contract[];
  state: Variable[];
  routines: Routine[];
  structs: Struct[];
  place: Place;
}

export type Declaration = Variable | Routine | Struct | Contract;

interface Typed {
  /** The type as the compiler writes it; empty where it is not known. */
  type: string;
  place: Place;
}

export interface Name extends Typed {
  kind: 'name';
  name: string;
  /** Null for what the language declares, such as `msg`. */
  target: Declaration | null;
}
export interface Member extends Typed {
  kind: 'member';
  of: Expression;
  member: string;
  target: Declaration | null;
}
export interface Index extends Typed {
  kind: 'index';
  of: Expression;
  index: Expression | null;
}
export interface Call extends Typed {
  kind: 'call';
  /** `conversion`: a cast. `struct`: makes a struct. */
  form: 'call' | 'conversion' | 'struct';
  callee: Expression;
  args: Expression[];
  value: Expression | null;
  gas: Expression | null;
  /** The names of the arguments, where they are known: those of the parameters or of the fields. */
  names?: readonly string[];
  /** Written in assembly. */
  inAssembly?: true;
}
export interface Assignment extends Typed {
  kind: 'assignment';
  /** `=`, `+=`, … */
  operator: string;
  left: Expression;
  right: Expression;
}
export interface Unary extends Typed {
  kind: 'unary';
  /** `!`, `-`, `++`, `--`, `delete`, `~`. */
  operator: string;
  operand: Expression;
}
export interface Binary extends Typed {
  kind: 'binary';
  operator: string;
  left: Expression;
  right: Expression;
}
export interface Conditional extends Typed {
  kind: 'conditional';
  condition: Expression;
  whenTrue: Expression;
  whenFalse: Expression;
}
export interface Tuple extends Typed {
  kind: 'tuple';
  items: (Expression | null)[];
}
export interface Literal extends Typed {
  kind: 'literal';
  value: string;
  /** `ether`, `days`, …; empty without one. */
  unit: string;
}
export interface Creation extends Typed {
  kind: 'creation';
}
export type Expression =
  | Name
  | Member
  | Index
  | Call
  | Assignment
  | Unary
  | Binary
  | Conditional
  | Tuple
  | Literal
  | Creation;

export type Statement =
  | { kind: 'block'; statements: Statement[]; unchecked: boolean; place: Place }
  | { kind: 'expression'; expression: Expression; place: Place }
  | { kind: 'declaration'; variables: (Variable | null)[]; initial: Expression | null; place: Place }
  | { kind: 'if'; condition: Expression; whenTrue: Statement; whenFalse: Statement | null; place: Place }
  | {
      kind: 'loop';
      /** A `do … while` runs its body before its condition. */
      bodyFirst: boolean;
      before: Statement | null;
      condition: Expression | null;
      after: Statement | null;
      body: Statement;
      place: Place;
    }
  | { kind: 'return'; value: Expression | null; place: Place }
  | { kind: 'revert'; arguments: Expression[]; place: Place }
  | { kind: 'emit'; event: Expression; place: Place }
  | { kind: 'try'; call: Expression; clauses: Statement[]; place: Place }
  /** The block that it amounts to, as far as it can be written as other statements; null where there is no tree of it. */
  | { kind: 'assembly'; body: Statement | null; place: Place }
  /** `_;` in a modifier. */
  | { kind: 'placeholder'; place: Place }
  | { kind: 'jump'; place: Place };

/** Everything that one audit looks at. */
export interface Program {
  contracts: Contract[];
  /** Functions outside of contracts. */
  routines: Routine[];
  /** Whether a compiler resolved names and types. */
  typed: boolean;
  /** The version of the language, such as 0.8; decides what arithmetic and constructors mean. */
  minor: number;
  /** Files of published packages that were not sent: they are walked, and not reported on. */
  borrowed: ReadonlySet<string>;
}

/** The expressions directly below one. */
export function partsOf(expression: Expression): Expression[] {
  switch (expression.kind) {
    case 'member':
      return [expression.of];
    case 'index':
      return expression.index === null ? [expression.of] : [expression.of, expression.index];
    case 'call':
      return [expression.callee, ...expression.args, expression.value, expression.gas].filter(
        (part) => part !== null,
      );
    case 'assignment':
    case 'binary':
      return [expression.left, expression.right];
    case 'unary':
      return [expression.operand];
    case 'conditional':
      return [expression.condition, expression.whenTrue, expression.whenFalse];
    case 'tuple':
      return expression.items.filter((item) => item !== null);
    default:
      return [];
  }
}

/** An expression and everything in it, from the outside in. */
export function* within(expression: Expression): Generator<Expression> {
  yield expression;
  for (const part of partsOf(expression)) yield* within(part);
}

/** Whether an expression or something in it is what is looked for. */
export function contains(
  expression: Expression | null,
  is: (part: Expression) => boolean,
): expression is Expression {
  if (expression === null) return false;
  for (const part of within(expression)) if (is(part)) return true;
  return false;
}

/** The statements directly below one. */
function statementsIn(statement: Statement): Statement[] {
  switch (statement.kind) {
    case 'block':
      return statement.statements;
    case 'if':
      return statement.whenFalse === null ? [statement.whenTrue] : [statement.whenTrue, statement.whenFalse];
    case 'loop':
      return [statement.before, statement.body, statement.after].filter((part) => part !== null);
    case 'try':
      return statement.clauses;
    case 'assembly':
      return statement.body === null ? [] : [statement.body];
    default:
      return [];
  }
}

/** The expressions that stand in a statement itself, without those of the statements below it. */
export function expressionsOf(statement: Statement): Expression[] {
  switch (statement.kind) {
    case 'expression':
      return [statement.expression];
    case 'declaration':
      return statement.initial === null ? [] : [statement.initial];
    case 'if':
      return [statement.condition];
    case 'loop':
      return statement.condition === null ? [] : [statement.condition];
    case 'return':
      return statement.value === null ? [] : [statement.value];
    case 'revert':
      return statement.arguments;
    case 'emit':
      return [statement.event];
    case 'try':
      return [statement.call];
    default:
      return [];
  }
}

/** A statement and everything below it, in the order of the text. */
export function* statementsWithin(statement: Statement | null): Generator<Statement> {
  if (statement === null) return;
  yield statement;
  for (const below of statementsIn(statement)) yield* statementsWithin(below);
}

/** Every expression in a routine's body and in what its modifiers are given. */
export function* expressionsWithin(routine: Routine): Generator<Expression> {
  for (const { args } of routine.invocations) for (const arg of args) yield* within(arg);
  for (const statement of statementsWithin(routine.body)) {
    for (const expression of expressionsOf(statement)) yield* within(expression);
  }
}

/** An expression without the casts and brackets around it. */
export function bare(expression: Expression): Expression {
  if (expression.kind === 'call' && expression.form === 'conversion' && expression.args.length === 1) {
    return bare(expression.args[0] as Expression);
  }
  if (expression.kind === 'tuple' && expression.items.length === 1 && expression.items[0] != null) {
    return bare(expression.items[0]);
  }
  return expression;
}

/** Whether an expression is such a member of what the language declares, such as `msg.sender`. */
export function isBuiltin(expression: Expression, of: string, member: string): boolean {
  return (
    expression.kind === 'member' &&
    expression.member === member &&
    expression.of.kind === 'name' &&
    expression.of.name === of &&
    (expression.of.target === null || expression.of.target.kind !== 'variable')
  );
}

/** The name of what a call calls, whatever it is called on. */
export function calledName(call: Call): string {
  const callee = bare(call.callee);
  return callee.kind === 'name' ? callee.name : callee.kind === 'member' ? callee.member : '';
}

/** An expression as text, without spaces, brackets and casts: two that read alike mean alike in one place. */
export function textOf(expression: Expression | null): string {
  if (expression === null) return '';
  const meant = bare(expression);
  switch (meant.kind) {
    case 'name':
      return meant.name;
    case 'member':
      return `${textOf(meant.of)}.${meant.member}`;
    case 'index':
      return `${textOf(meant.of)}[${textOf(meant.index)}]`;
    case 'literal':
      return meant.unit === '' ? meant.value : `${meant.value} ${meant.unit}`;
    case 'binary':
    case 'assignment':
      return `${textOf(meant.left)}${meant.operator}${textOf(meant.right)}`;
    case 'unary':
      return `${meant.operator}${textOf(meant.operand)}`;
    case 'call':
      return `${textOf(meant.callee)}(${meant.args.map(textOf).join()})`;
    case 'conditional':
      return `${textOf(meant.condition)}?${textOf(meant.whenTrue)}:${textOf(meant.whenFalse)}`;
    case 'tuple':
      return `(${meant.items.map(textOf).join()})`;
    default:
      return 'new';
  }
}
