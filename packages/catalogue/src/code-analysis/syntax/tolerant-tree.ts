/**
 * Reads source that no compiler here takes: a parser that knows the syntax of 0.4 to 0.8 and nothing else, and a resolver
 * that finds names by their scope. Types are known where they are written, so the rules see less than with a compiler.
 */
import { createRequire } from 'node:module';
import type {
  Contract,
  Declaration,
  Expression,
  Invocation,
  Place,
  Program,
  Routine,
  Statement,
  Struct,
  Variable,
} from './tree.ts';

type Raw = Record<string, unknown>;

const parser: { parse(text: string, options: object): Raw } = createRequire(import.meta.url)(
  '@solidity-parser/parser',
);
const ASSIGNMENTS = new Set(['=', '+=', '-=', '*=', '/=', '%=', '|=', '&=', '^=', '<<=', '>>=']);

/**
 * @param texts the text of each file
 * @throws Error with the parser's message when even this one does not understand it
 */
export function fromTolerantParser(texts: Readonly<Record<string, string>>, minor: number): Program {
  const contracts = new Map<string, Contract>();
  const bases = new Map<Contract, string[]>();
  const structs = new Map<string, Struct>();
  const enums = new Set<string>();
  const bodies: (() => void)[] = [];
  const free: Routine[] = [];
  let file = '';
  let current: Contract | null = null;
  let scopes: Map<string, Variable>[] = [];

  function place(raw: Raw): Place {
    const loc = raw.loc as { start: { line: number }; end: { line: number } } | undefined;
    return { file, line: loc?.start.line ?? 1, endLine: loc?.end.line ?? loc?.start.line ?? 1 };
  }

  function typeText(raw: Raw | null | undefined): string {
    if (raw == null) return '';
    switch (raw.type) {
      case 'ElementaryTypeName': {
        const name = String(raw.name);
        if (name === 'uint' || name === 'int') return `${name}256`;
        if (name === 'byte') return 'bytes1';
        return name === 'var' ? '' : name;
      }
      case 'Mapping':
        return `mapping(${typeText(raw.keyType as Raw)} => ${typeText(raw.valueType as Raw)})`;
      case 'ArrayTypeName': {
        const length = raw.length as Raw | null;
        return `${typeText(raw.baseTypeName as Raw)}[${length === null ? '' : String(length?.number ?? '1')}]`;
      }
      case 'UserDefinedTypeName': {
        const name = String(raw.namePath).split('.').at(-1) ?? '';
        if (enums.has(name)) return `enum ${name}`;
        return structs.has(name) ? `struct ${name}` : `contract ${name}`;
      }
      case 'FunctionTypeName':
        return 'function ()';
      default:
        return '';
    }
  }

  function variable(raw: Raw, scope: Variable['scope'], contract: Contract | null): Variable {
    const type = typeText(raw.typeName as Raw | null);
    const given = String(raw.storageLocation ?? '');
    const isReference = /^(struct |mapping)|\]$/.test(type);
    const made: Variable = {
      kind: 'variable',
      name: String(raw.name ?? ''),
      type,
      scope,
      location:
        given === 'storage' || given === 'memory' || given === 'calldata'
          ? given
          : scope === 'state' || (scope === 'local' && isReference && minor < 5)
            ? 'storage'
            : isReference
              ? 'memory'
              : '',
      fixed: raw.isDeclaredConst === true || raw.isImmutable === true,
      visibility: String(raw.visibility ?? ''),
      initial: null,
      contract,
      place: place(raw),
    };
    return made;
  }

  function declare(each: Variable): Variable {
    scopes.at(-1)?.set(each.name, each);
    return each;
  }

  function routine(raw: Raw, contract: Contract | null): Routine {
    const whole = place(raw);
    const body = raw.body as Raw | null | undefined;
    const name = String(raw.name ?? '');
    const given = String(raw.visibility ?? 'default');
    const made: Routine = {
      kind: 'routine',
      role:
        raw.type === 'ModifierDefinition'
          ? 'modifier'
          : raw.isConstructor === true || (minor < 5 && contract !== null && name === contract.name)
            ? 'constructor'
            : raw.isReceiveEther === true
              ? 'receive'
              : raw.isFallback === true || name === ''
                ? 'fallback'
                : 'function',
      name,
      visibility: given === 'external' || given === 'internal' || given === 'private' ? given : 'public',
      mutability: raw.stateMutability === 'constant' ? 'view' : String(raw.stateMutability ?? 'nonpayable'),
      parameters: nodes(raw.parameters).map((each) => variable(each, 'parameter', contract)),
      returns: nodes(raw.returnParameters).map((each) => variable(each, 'return', contract)),
      invocations: [],
      body: null,
      contract,
      place: whole,
      head: { ...whole, endLine: body == null ? whole.endLine : place(body).line },
    };
    later(contract, () => {
      scopes = [new Map()];
      for (const each of [...made.parameters, ...made.returns]) declare(each);
      made.invocations = nodes(raw.modifiers).map(invocation);
      made.body = body == null ? null : statement(body);
    });
    return made;
  }

  function later(contract: Contract | null, convert: () => void): void {
    const inFile = file;
    bodies.push(() => {
      file = inFile;
      current = contract;
      scopes = [];
      convert();
    });
  }

  function invocation(raw: Raw): Invocation {
    const name = String(raw.name);
    const args = nodes(raw.arguments).map(expression);
    const target = (current?.lineage ?? [])
      .flatMap((each) => each.routines)
      .find((each) => each.role === 'modifier' && each.name === name);
    return { name, target: target ?? null, args, place: place(raw) };
  }

  function contract(raw: Raw): void {
    const kind = String(raw.kind);
    const made: Contract = {
      kind: 'contract',
      role: kind === 'library' || kind === 'interface' || kind === 'abstract' ? kind : 'contract',
      name: String(raw.name),
      lineage: [],
      state: [],
      routines: [],
      structs: [],
      place: place(raw),
    };
    contracts.set(made.name, made);
    bases.set(
      made,
      nodes(raw.baseContracts).map(
        (each) =>
          String((each.baseName as Raw).namePath)
            .split('.')
            .at(-1) ?? '',
      ),
    );
    for (const each of nodes(raw.subNodes)) {
      if (each.type === 'StateVariableDeclaration') {
        for (const one of nodes(each.variables)) {
          const state = variable(one, 'state', made);
          made.state.push(state);
          const initial = (one.expression ?? each.initialValue) as Raw | null | undefined;
          if (initial != null)
            later(made, () => {
              state.initial = expression(initial);
            });
        }
      } else if (each.type === 'FunctionDefinition' || each.type === 'ModifierDefinition') {
        made.routines.push(routine(each, made));
      }
    }
  }

  function block(raws: Raw[], unchecked: boolean, at: Place): Statement {
    scopes.push(new Map());
    const statements = raws.map(statement);
    const own = scopes.pop();
    // Before 0.5 a variable is there for the rest of the function.
    if (minor < 5) for (const each of own?.values() ?? []) declare(each);
    return { kind: 'block', statements, unchecked, place: at };
  }

  function statement(raw: Raw): Statement {
    const at = place(raw);
    switch (raw.type) {
      case 'Block':
        return block(nodes(raw.statements), false, at);
      case 'UncheckedStatement':
        return block(nodes((raw.block as Raw).statements), true, at);
      case 'ExpressionStatement': {
        const inside = raw.expression as Raw | null;
        if (inside === null) return { kind: 'jump', place: at };
        if (inside.type === 'Identifier' && inside.name === '_') return { kind: 'placeholder', place: at };
        const called = inside.type === 'FunctionCall' ? (inside.expression as Raw) : null;
        if (called?.type === 'Identifier' && called.name === 'revert')
          return { kind: 'revert', arguments: nodes(inside.arguments).map(expression), place: at };
        return { kind: 'expression', expression: expression(inside), place: at };
      }
      case 'VariableDeclarationStatement': {
        const initial = raw.initialValue == null ? null : expression(raw.initialValue as Raw);
        const variables = list(raw.variables).map((each) =>
          each === null ? null : declare(variable(each as Raw, 'local', null)),
        );
        const only = variables.length === 1 ? variables[0] : null;
        // `var x = …` is what its value is.
        if (only != null && only.type === '' && initial !== null) {
          only.type = initial.type;
          if (/^(struct |mapping)|\]$/.test(initial.type)) only.location = 'storage';
        }
        return { kind: 'declaration', variables, initial, place: at };
      }
      case 'IfStatement':
        return {
          kind: 'if',
          condition: expression(raw.condition as Raw),
          whenTrue: statement(raw.trueBody as Raw),
          whenFalse: raw.falseBody == null ? null : statement(raw.falseBody as Raw),
          place: at,
        };
      case 'ForStatement':
      case 'WhileStatement':
      case 'DoWhileStatement': {
        const before = raw.initExpression as Raw | null | undefined;
        const start = before == null ? null : statement(before);
        const condition = (raw.conditionExpression ?? raw.condition) as Raw | null | undefined;
        const after = raw.loopExpression as Raw | null | undefined;
        return {
          kind: 'loop',
          bodyFirst: raw.type === 'DoWhileStatement',
          before: start,
          condition: condition == null ? null : expression(condition),
          after: after == null || after.expression == null ? null : statement(after),
          body: statement(raw.body as Raw),
          place: at,
        };
      }
      case 'ReturnStatement':
        return {
          kind: 'return',
          value: raw.expression == null ? null : expression(raw.expression as Raw),
          place: at,
        };
      case 'ThrowStatement':
        return { kind: 'revert', arguments: [], place: at };
      case 'RevertStatement':
        return { kind: 'revert', arguments: [expression(raw.revertCall as Raw)], place: at };
      case 'EmitStatement':
        return { kind: 'emit', event: expression(raw.eventCall as Raw), place: at };
      case 'TryStatement':
        return {
          kind: 'try',
          call: expression(raw.expression as Raw),
          clauses: [raw.body as Raw, ...nodes(raw.catchClauses).map((each) => each.body as Raw)].map(
            statement,
          ),
          place: at,
        };
      case 'InlineAssemblyStatement':
        return { kind: 'assembly', body: null, place: at };
      default:
        return { kind: 'jump', place: at };
    }
  }

  function named(name: string): Declaration | null {
    for (const scope of scopes.toReversed()) {
      const found = scope.get(name);
      if (found !== undefined) return found;
    }
    for (const each of current?.lineage ?? []) {
      const found =
        each.state.find((state) => state.name === name) ??
        each.routines.find((one) => one.name === name && one.role === 'function');
      if (found !== undefined) return found;
    }
    return contracts.get(name) ?? structs.get(name) ?? free.find((each) => each.name === name) ?? null;
  }

  function typed(raw: Raw): { type: string; place: Place } {
    return { type: '', place: place(raw) };
  }

  function expression(raw: Raw): Expression {
    const common = typed(raw);
    switch (raw.type) {
      case 'Identifier': {
        const target = named(String(raw.name));
        const type =
          target?.kind === 'variable'
            ? target.type
            : target?.kind === 'contract'
              ? `type(contract ${target.name})`
              : target?.kind === 'routine'
                ? 'function ()'
                : '';
        return { kind: 'name', name: String(raw.name), target, ...common, type };
      }
      case 'MemberAccess': {
        const of = expression(raw.expression as Raw);
        const member = String(raw.memberName);
        return { kind: 'member', of, member, ...memberOf(of, member), place: common.place };
      }
      case 'IndexAccess': {
        const of = expression(raw.base as Raw);
        const type = /^mapping\(.*? => (.*)\)$/.exec(of.type)?.[1] ?? of.type.replace(/\[\d*\]$/, '');
        return {
          kind: 'index',
          of,
          index: expression(raw.index as Raw),
          ...common,
          type: of.type === '' ? '' : type,
        };
      }
      case 'IndexRangeAccess':
        return expression(raw.base as Raw);
      case 'FunctionCall':
        return call(raw, common);
      case 'NameValueExpression':
        return expression(raw.expression as Raw);
      case 'UnaryOperation':
        return {
          kind: 'unary',
          operator: String(raw.operator),
          operand: expression(raw.subExpression as Raw),
          ...common,
        };
      case 'BinaryOperation': {
        const left = expression(raw.left as Raw);
        const right = expression(raw.right as Raw);
        const operator = String(raw.operator);
        if (ASSIGNMENTS.has(operator))
          return { kind: 'assignment', operator, left, right, ...common, type: left.type };
        const type = /^([<>]=?|[!=]=|&&|\|\|)$/.test(operator) ? 'bool' : left.type || right.type;
        return { kind: 'binary', operator, left, right, ...common, type };
      }
      case 'Conditional':
        return {
          kind: 'conditional',
          condition: expression(raw.condition as Raw),
          whenTrue: expression(raw.trueExpression as Raw),
          whenFalse: expression(raw.falseExpression as Raw),
          ...common,
        };
      case 'TupleExpression': {
        const items = list(raw.components).map((item) => (item === null ? null : expression(item as Raw)));
        return { kind: 'tuple', items, ...common, type: items.length === 1 ? (items[0]?.type ?? '') : '' };
      }
      case 'NumberLiteral':
        return {
          kind: 'literal',
          value: String(raw.number),
          unit: String(raw.subdenomination ?? ''),
          ...common,
          type: `int_const ${String(raw.number)}`,
        };
      case 'StringLiteral':
        return { kind: 'literal', value: String(raw.value), unit: '', ...common, type: 'literal_string' };
      case 'BooleanLiteral':
      case 'HexLiteral':
        return {
          kind: 'literal',
          value: String(raw.value),
          unit: '',
          ...common,
          type: raw.type === 'BooleanLiteral' ? 'bool' : '',
        };
      case 'NewExpression':
        return {
          kind: 'creation',
          ...common,
          type: `function () returns (${typeText(raw.typeName as Raw)})`,
        };
      case 'ElementaryTypeName':
      case 'TypeNameExpression': {
        const type = typeText((raw.type === 'TypeNameExpression' ? raw.typeName : raw) as Raw);
        return { kind: 'name', name: type, target: null, ...common, type: `type(${type})` };
      }
      default:
        return { kind: 'name', name: '', target: null, ...common };
    }
  }

  function memberOf(of: Expression, member: string): { type: string; target: Declaration | null } {
    const owner = /^(type\()?(struct|contract) ([A-Za-z_$][\w$]*)/.exec(of.type);
    if (owner?.[2] === 'struct') {
      const field = structs.get(owner[3] ?? '')?.fields.find(({ name }) => name === member);
      return { type: field?.type ?? '', target: field ?? null };
    }
    if (owner?.[2] === 'contract') {
      const target = contracts.get(owner[3] ?? '')?.routines.find(({ name }) => name === member);
      return { type: 'function ()', target: target ?? null };
    }
    if (of.kind === 'name' && of.name === 'super') {
      const target = (current?.lineage ?? [])
        .slice(1)
        .flatMap(({ routines }) => routines)
        .find(({ name }) => name === member);
      return { type: 'function ()', target: target ?? null };
    }
    if (of.kind === 'name' && of.target === null) {
      if (member === 'sender' || member === 'origin' || member === 'coinbase')
        return { type: 'address', target: null };
      if (of.name === 'msg' || of.name === 'block')
        return { type: member === 'data' ? 'bytes' : 'uint256', target: null };
    }
    return { type: member === 'length' || member === 'balance' ? 'uint256' : '', target: null };
  }

  function call(raw: Raw, common: { type: string; place: Place }): Expression {
    const options: { value: Expression | null; gas: Expression | null } = { value: null, gas: null };
    let callee = raw.expression as Raw;
    for (;;) {
      const inner = callee.expression as Raw | undefined;
      if (callee.type === 'NameValueExpression') {
        const given = callee.arguments as Raw;
        list(given.names).forEach((name, at) => {
          const value = nodes(given.arguments)[at];
          if ((name === 'value' || name === 'gas') && value !== undefined) options[name] = expression(value);
        });
        callee = inner as Raw;
      } else if (
        callee.type === 'FunctionCall' &&
        inner?.type === 'MemberAccess' &&
        (inner.memberName === 'value' || inner.memberName === 'gas') &&
        (inner.expression as Raw).type !== 'Identifier'
      ) {
        const given = nodes(callee.arguments)[0];
        if (given !== undefined) options[inner.memberName] = expression(given);
        callee = inner.expression as Raw;
      } else break;
    }
    const made = expression(callee);
    const payable = made.kind === 'name' && made.name === 'payable' && made.target === null;
    const converts = payable ? 'address payable' : /^type\((.*)\)$/.exec(made.type)?.[1];
    const target = made.kind === 'name' || made.kind === 'member' ? made.target : null;
    return {
      kind: 'call',
      form: converts !== undefined ? 'conversion' : target?.kind === 'struct' ? 'struct' : 'call',
      callee: made,
      args: nodes(raw.arguments).map(expression),
      ...options,
      ...common,
      type:
        converts ??
        (target?.kind === 'struct'
          ? `struct ${target.name}`
          : target?.kind === 'routine' && target.returns.length === 1
            ? (target.returns[0]?.type ?? '')
            : ''),
    };
  }

  const units = Object.entries(texts).map(([name, text]) => ({
    name,
    root: parser.parse(text, { loc: true, range: false, tolerant: false }),
  }));
  // Structs and enums first, because types name them before they are declared.
  for (const { root } of units) {
    const declared = nodes(root.children).flatMap((each) => [each, ...nodes(each.subNodes)]);
    for (const each of declared) {
      if (each.type === 'EnumDefinition') enums.add(String(each.name));
      if (each.type === 'StructDefinition')
        structs.set(String(each.name), { kind: 'struct', name: String(each.name), fields: [] });
    }
  }
  for (const { name, root } of units) {
    file = name;
    for (const each of nodes(root.children)) {
      for (const one of [each, ...nodes(each.subNodes)]) {
        if (one.type !== 'StructDefinition') continue;
        const struct = structs.get(String(one.name));
        if (struct !== undefined)
          struct.fields = nodes(one.members).map((field) => variable(field, 'local', null));
      }
      if (each.type === 'ContractDefinition') contract(each);
      if (each.type === 'FunctionDefinition') free.push(routine(each, null));
    }
  }
  for (const each of contracts.values()) each.lineage = lineageOf(each, contracts, bases);
  for (const convert of bodies) convert();
  return { contracts: [...contracts.values()], routines: free, typed: false, minor, borrowed: new Set() };
}

/** Near enough to the language's own order: the last named base is the nearest. */
function lineageOf(
  of: Contract,
  contracts: ReadonlyMap<string, Contract>,
  bases: ReadonlyMap<Contract, string[]>,
): Contract[] {
  const order: Contract[] = [];
  const visit = (each: Contract): void => {
    if (order.includes(each)) return;
    order.push(each);
    for (const name of (bases.get(each) ?? []).toReversed()) {
      const base = contracts.get(name);
      if (base !== undefined) visit(base);
    }
  };
  visit(of);
  return order;
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function nodes(value: unknown): Raw[] {
  return list(value).filter((each): each is Raw => typeof each === 'object' && each !== null);
}
