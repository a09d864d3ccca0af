/** From the compiler's tree of inline assembly (0.6 on) to the statements and expressions that the rules read. */
import {
  type Call,
  contains,
  type Declaration,
  type Expression,
  type Place,
  type Routine,
  type Statement,
  type Variable,
} from './tree.ts';

type Raw = Record<string, unknown>;

/** The part of the surrounding tree that assembly refers to. */
interface Around {
  place(raw: Raw): Place;
  declaration(id: unknown): Declaration | null;
}

const COMPARISONS: Readonly<Record<string, string>> = {
  eq: '==',
  lt: '<',
  slt: '<',
  gt: '>',
  sgt: '>',
  xor: '!=',
};
const ARITHMETIC: Readonly<Record<string, string>> = { and: '&', or: '|' };
/** Ends without going back to what called the contract. */
const STOPS = new Set(['revert', 'invalid']);
const LEAVES = new Set(['return', 'stop', 'leave']);

/**
 * Reads what an assembly block does. Arithmetic stays a call by the name of its instruction, so that no rule for Solidity's own
 * arithmetic looks at it; what decides and what leaves the contract reads as in Solidity.
 *
 * @returns null where the compiler gave no tree
 */
export function fromAssembly(raw: Raw, around: Around): Statement | null {
  const root = raw.AST;
  if (typeof root !== 'object' || root === null) return null;
  return new Reader(raw, around).block(root as Raw);
}

/** Reads one block of assembly: it knows the names that are in sight where it is. */
class Reader {
  private readonly around: Around;
  /** References to names outside of the assembly, by where they stand. */
  private readonly outer: ReadonlyMap<string, Raw>;
  private scopes: Map<string, Variable>[] = [];
  private functions: Map<string, Routine>[] = [];

  constructor(raw: Raw, around: Around) {
    this.around = around;
    this.outer = new Map(list(raw.externalReferences).map((reference) => [String(reference.src), reference]));
  }

  block(node: Raw): Statement {
    this.scopes = [new Map(), ...this.scopes];
    this.functions = [new Map(), ...this.functions];
    const all = list(node.statements);
    const defined = all.filter(({ nodeType }) => nodeType === 'YulFunctionDefinition');
    // A function may be called before the place where it stands.
    for (const each of defined) this.functions[0]?.set(String(each.name), this.head(each));
    for (const each of defined) this.define(each);
    const statements = all.filter((each) => !defined.includes(each)).map((each) => this.statement(each));
    this.functions = this.functions.slice(1);
    this.scopes = this.scopes.slice(1);
    return { kind: 'block', statements, unchecked: false, place: this.around.place(node) };
  }

  /** A function of assembly, without what it does. */
  head(node: Raw): Routine {
    const place = this.around.place(node);
    const variables = (given: unknown, scope: 'parameter' | 'return') =>
      list(given).map((each) => ({ ...this.variable(each), scope }));
    return {
      kind: 'routine',
      role: 'function',
      name: String(node.name),
      visibility: 'internal',
      mutability: 'nonpayable',
      parameters: variables(node.parameters, 'parameter'),
      returns: variables(node.returnVariables, 'return'),
      invocations: [],
      body: null,
      contract: null,
      place,
      head: place,
    };
  }

  /** Reads what a function of assembly does; it sees its own names alone, and other functions. */
  define(node: Raw): void {
    const routine = this.functions[0]?.get(String(node.name));
    if (routine === undefined) return;
    const outside = this.scopes;
    const own = [...routine.parameters, ...routine.returns];
    this.scopes = [new Map(own.map((each) => [each.name, each]))];
    routine.body = this.block(node.body as Raw);
    this.scopes = outside;
  }

  statement(node: Raw): Statement {
    const place = this.around.place(node);
    switch (node.nodeType) {
      case 'YulBlock':
        return this.block(node);
      case 'YulVariableDeclaration': {
        const initial = node.value == null ? null : this.expression(node.value as Raw);
        const variables = list(node.variables).map((each) => this.local(each));
        return { kind: 'declaration', variables, initial, place };
      }
      case 'YulAssignment': {
        const right = this.expression(node.value as Raw);
        const targets = list(node.variableNames);
        // Where a name for storage points is no value that is written.
        if (targets.some((each) => this.suffixOf(each) !== ''))
          return { kind: 'block', statements: [], unchecked: false, place };
        const items = targets.map((each) => this.expression(each));
        const left: Expression =
          items.length === 1 && items[0] !== undefined ? items[0] : { kind: 'tuple', items, type: '', place };
        return {
          kind: 'expression',
          expression: { kind: 'assignment', operator: '=', left, right, type: '', place },
          place,
        };
      }
      case 'YulExpressionStatement':
        return this.acting(node.expression as Raw, place);
      case 'YulIf':
        return {
          kind: 'if',
          condition: this.expression(node.condition as Raw),
          whenTrue: this.block(node.body as Raw),
          whenFalse: null,
          place,
        };
      case 'YulSwitch':
        return this.chosen(node, place);
      case 'YulForLoop': {
        this.scopes = [new Map(), ...this.scopes];
        const pre = node.pre as Raw;
        const statements = list(pre.statements).map((each) => this.statement(each));
        const before: Statement = {
          kind: 'block',
          statements,
          unchecked: false,
          place: this.around.place(pre),
        };
        const condition = this.expression(node.condition as Raw);
        const after = this.block(node.post as Raw);
        const body = this.block(node.body as Raw);
        this.scopes = this.scopes.slice(1);
        return { kind: 'loop', bodyFirst: false, before, condition, after, body, place };
      }
      default:
        return node.nodeType === 'YulLeave'
          ? { kind: 'return', value: null, place }
          : { kind: 'jump', place };
    }
  }

  /** An instruction for its own sake: some end the path. */
  acting(node: Raw, place: Place): Statement {
    const name = instructionOf(node);
    if (STOPS.has(name)) return { kind: 'revert', arguments: [], place };
    if (LEAVES.has(name)) return { kind: 'return', value: null, place };
    return { kind: 'expression', expression: this.expression(node), place };
  }

  /** `switch` as branches: each case compares, and what no case takes goes to the default. */
  chosen(node: Raw, place: Place): Statement {
    const on = this.expression(node.expression as Raw);
    let rest: Statement | null = null;
    for (const each of list(node.cases).toReversed()) {
      const body = this.block(each.body as Raw);
      if (each.value === 'default' || each.value == null) {
        rest = body;
        continue;
      }
      const value = this.expression(each.value as Raw);
      rest = {
        kind: 'if',
        condition: { kind: 'binary', operator: '==', left: on, right: value, type: 'bool', place },
        whenTrue: body,
        whenFalse: rest,
        place,
      };
    }
    return rest ?? { kind: 'jump', place };
  }

  local(node: Raw): Variable {
    const made = this.variable(node);
    this.scopes[0]?.set(made.name, made);
    return made;
  }

  variable(node: Raw): Variable {
    return {
      kind: 'variable',
      name: String(node.name),
      type: '',
      scope: 'local',
      location: '',
      fixed: false,
      visibility: '',
      initial: null,
      contract: null,
      place: this.around.place(node),
    };
  }

  suffixOf(node: Raw): string {
    const reference = this.outer.get(String(node.src));
    if (reference === undefined) return '';
    if (typeof reference.suffix === 'string') return reference.suffix;
    return reference.isSlot === true ? 'slot' : reference.isOffset === true ? 'offset' : '';
  }

  expression(node: Raw): Expression {
    const common = { type: '', place: this.around.place(node) };
    if (node.nodeType === 'YulLiteral')
      return { kind: 'literal', value: String(node.value ?? ''), unit: '', ...common };
    if (node.nodeType === 'YulIdentifier') {
      const reference = this.outer.get(String(node.src));
      const name = String(node.name).replace(/(\.|_)(slot|offset|length)$/, '');
      const target =
        reference === undefined
          ? (this.scopes.find((scope) => scope.has(String(node.name)))?.get(String(node.name)) ?? null)
          : this.around.declaration(reference.declaration);
      const plain: Expression = { kind: 'name', name, target, ...common };
      const suffix = this.suffixOf(node);
      return suffix === '' ? plain : { kind: 'member', of: plain, member: suffix, target: null, ...common };
    }
    return node.nodeType === 'YulFunctionCall'
      ? this.instruction(node, common)
      : { kind: 'name', name: '', target: null, ...common };
  }

  instruction(node: Raw, common: { type: string; place: Place }): Expression {
    const name = instructionOf(node);
    const args = list(node.arguments).map((each) => this.expression(each));
    const [first, second, third] = args;
    const defined = this.functions.find((each) => each.has(name))?.get(name);
    if (defined !== undefined) {
      const call = this.plainCall(name, args, common);
      return { ...call, callee: { kind: 'name', name, target: defined, ...common } };
    }
    const builtin = (of: string, member: string, type: string): Expression => ({
      kind: 'member',
      of: { kind: 'name', name: of, target: null, ...common },
      member,
      target: null,
      ...common,
      type,
    });
    if (name === 'caller') return builtin('msg', 'sender', 'address');
    if (name === 'origin') return builtin('tx', 'origin', 'address');
    if (name === 'callvalue') return builtin('msg', 'value', 'uint256');
    if (name === 'selfbalance') return builtin('this', 'balance', 'uint256');
    if (name === 'address') return { kind: 'name', name: 'this', target: null, ...common };
    if (first === undefined) return this.plainCall(name, args, common);
    if (name === 'iszero') return { kind: 'unary', operator: '!', operand: first, ...common };
    if (name === 'sload' && isSlotOf(first)) return first.of;
    if (second === undefined) return this.plainCall(name, args, common);
    // Cleaning the upper bits of an address leaves the address.
    if (name === 'shl' || name === 'shr')
      return isLiteral(first, /^(96|0x60)$/) ? second : this.plainCall(name, args, common);
    if (name === 'and' && isLiteral(first, /^(0xf{40}|0xf{24,}0{24})$/i)) return second;
    if (name === 'and' && isLiteral(second, /^(0xf{40}|0xf{24,}0{24})$/i)) return first;
    if (name === 'sstore' && isSlotOf(first))
      return { kind: 'assignment', operator: '=', left: first.of, right: second, ...common };
    const compares = COMPARISONS[name];
    if (compares !== undefined)
      return { kind: 'binary', operator: compares, left: first, right: second, ...common };
    const joins = ARITHMETIC[name];
    if (joins !== undefined) {
      const decides = isDecision(first) || isDecision(second);
      return {
        kind: 'binary',
        operator: decides ? joins + joins : joins,
        left: first,
        right: second,
        ...common,
      };
    }
    if (name === 'call' && third !== undefined) {
      const paysNothing = isLiteral(third, /^(0x)?0+$/);
      return this.outside(
        second,
        paysNothing ? 'callWithoutValue' : 'call',
        paysNothing ? null : third,
        common,
      );
    }
    if (name === 'delegatecall' || name === 'callcode' || name === 'staticcall')
      return this.outside(second, name, null, common);
    return this.plainCall(name, args, common);
  }

  outside(
    of: Expression,
    member: string,
    value: Expression | null,
    common: { type: string; place: Place },
  ): Call {
    const callee: Expression = { kind: 'member', of, member, target: null, ...common };
    return { kind: 'call', form: 'call', callee, args: [], value, gas: null, inAssembly: true, ...common };
  }

  plainCall(name: string, args: Expression[], common: { type: string; place: Place }): Call {
    const callee: Expression = { kind: 'name', name, target: null, ...common };
    return { kind: 'call', form: 'call', callee, args, value: null, gas: null, inAssembly: true, ...common };
  }
}

function instructionOf(node: Raw): string {
  return node.nodeType === 'YulFunctionCall'
    ? String((node.functionName as Raw | undefined)?.name ?? '')
    : '';
}

function isSlotOf(expression: Expression): expression is Extract<Expression, { kind: 'member' }> {
  return expression.kind === 'member' && expression.member === 'slot';
}

function isLiteral(expression: Expression, value: RegExp): boolean {
  return expression.kind === 'literal' && value.test(expression.value);
}

function isDecision(expression: Expression): boolean {
  return contains(
    expression,
    (part) =>
      (part.kind === 'unary' && part.operator === '!') ||
      (part.kind === 'binary' && part.type === '' && /^([=!]=|[<>])$/.test(part.operator)),
  );
}

function list(value: unknown): Raw[] {
  return Array.isArray(value)
    ? value.filter((each): each is Raw => typeof each === 'object' && each !== null)
    : [];
}
