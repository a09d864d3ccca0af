/** From the compact tree of a compiler (0.4.26 to 0.8) to the tree that the rules read. */
import { fromAssembly } from './assembly-tree.ts';
import type {
  Contract,
  Expression,
  Invocation,
  Place,
  Program,
  Routine,
  Statement,
  Struct,
  Variable,
} from './tree.ts';

/** A node as the compiler writes it. Its fields differ from version to version, so each is looked at before use. */
type Raw = Record<string, unknown>;

const CALL_OPTIONS = ['value', 'gas'] as const;

/**
 * @param units the compiler's tree of each file
 * @param texts the text of each file, by which offsets become lines
 * @param minor of the compiler: 8 for 0.8
 */
export function fromSolc(
  units: Readonly<Record<string, unknown>>,
  texts: Readonly<Record<string, string>>,
  minor: number,
): Program {
  const variables = new Map<number, Variable>();
  const routines = new Map<number, Routine>();
  const structs = new Map<number, Struct>();
  const contracts = new Map<number, Contract>();
  const bodies: (() => void)[] = [];
  const free: Routine[] = [];
  let file = '';
  let lineAt: (byte: number) => number = () => 1;

  const declaration = (id: unknown) =>
    typeof id === 'number'
      ? (variables.get(id) ?? routines.get(id) ?? structs.get(id) ?? contracts.get(id) ?? null)
      : null;

  function place(raw: Raw): Place {
    const [start = 0, length = 0] = String(raw.src).split(':').map(Number);
    return { file, line: lineAt(start), endLine: lineAt(start + Math.max(0, length - 1)) };
  }

  function variable(raw: Raw, scope: Variable['scope'], contract: Contract | null): Variable {
    const type = typeOf(raw);
    const given = String(raw.storageLocation ?? 'default');
    // Before 0.5 a local name of a reference type is one for storage, unless it says otherwise.
    const isReference = /^(struct |mapping)|\]$/.test(type);
    const made: Variable = {
      kind: 'variable',
      name: String(raw.name ?? ''),
      type,
      scope,
      location:
        given === 'storage' || given === 'memory' || given === 'calldata'
          ? given
          : scope === 'state' ||
              / storage (pointer|ref)/.test(type) ||
              (minor < 5 && scope === 'local' && isReference)
            ? 'storage'
            : / memory/.test(type)
              ? 'memory'
              : '',
      fixed: raw.constant === true || raw.mutability === 'immutable' || raw.mutability === 'constant',
      visibility: String(raw.visibility ?? ''),
      initial: null,
      contract,
      place: place(raw),
    };
    if (typeof raw.id === 'number') variables.set(raw.id, made);
    return made;
  }

  function parameters(raw: unknown, scope: 'parameter' | 'return', contract: Contract | null): Variable[] {
    return nodes((raw as Raw | null)?.parameters).map((each) => variable(each, scope, contract));
  }

  function routine(raw: Raw, contract: Contract | null): Routine {
    const name = String(raw.name ?? '');
    const isModifier = raw.nodeType === 'ModifierDefinition';
    const whole = place(raw);
    const body = raw.body as Raw | null | undefined;
    const made: Routine = {
      kind: 'routine',
      role: isModifier ? 'modifier' : roleOf(raw, name, contract),
      name,
      visibility: visibilityOf(raw),
      mutability: String(
        raw.stateMutability ??
          (raw.isDeclaredConst === true ? 'view' : raw.payable === true ? 'payable' : 'nonpayable'),
      ),
      parameters: parameters(raw.parameters, 'parameter', contract),
      returns: parameters(raw.returnParameters, 'return', contract),
      invocations: [],
      body: null,
      contract,
      place: whole,
      head: { ...whole, endLine: body == null ? whole.endLine : place(body).line },
    };
    if (typeof raw.id === 'number') routines.set(raw.id, made);
    const inFile = file;
    const linesOfFile = lineAt;
    bodies.push(() => {
      file = inFile;
      lineAt = linesOfFile;
      made.invocations = nodes(raw.modifiers).map(invocation);
      made.body = body == null ? null : statement(body);
    });
    return made;
  }

  function invocation(raw: Raw): Invocation {
    const named = raw.modifierName as Raw;
    const target = declaration(named.referencedDeclaration);
    return {
      name: String(named.name ?? ''),
      target: target?.kind === 'routine' ? target : null,
      args: nodes(raw.arguments).map(expression),
      place: place(raw),
    };
  }

  function struct(raw: Raw): Struct {
    const made: Struct = {
      kind: 'struct',
      name: String(raw.name),
      fields: nodes(raw.members).map((each) => variable(each, 'local', null)),
    };
    if (typeof raw.id === 'number') structs.set(raw.id, made);
    return made;
  }

  function contract(raw: Raw): Contract {
    const made: Contract = {
      kind: 'contract',
      role:
        raw.contractKind === 'library' || raw.contractKind === 'interface'
          ? raw.contractKind
          : raw.abstract === true
            ? 'abstract'
            : 'contract',
      name: String(raw.name),
      lineage: [],
      state: [],
      routines: [],
      structs: [],
      place: place(raw),
    };
    if (typeof raw.id === 'number') contracts.set(raw.id, made);
    for (const each of nodes(raw.nodes)) {
      if (each.nodeType === 'VariableDeclaration') {
        const state = variable(each, 'state', made);
        made.state.push(state);
        const value = each.value as Raw | null | undefined;
        const inFile = file;
        const linesOfFile = lineAt;
        if (value != null) {
          bodies.push(() => {
            file = inFile;
            lineAt = linesOfFile;
            state.initial = expression(value);
          });
        }
      } else if (each.nodeType === 'FunctionDefinition' || each.nodeType === 'ModifierDefinition') {
        made.routines.push(routine(each, made));
      } else if (each.nodeType === 'StructDefinition') {
        made.structs.push(struct(each));
      }
    }
    const lineage = Array.isArray(raw.linearizedBaseContracts) ? raw.linearizedBaseContracts : [];
    bodies.push(() => {
      made.lineage = lineage.flatMap((id) => {
        const found = contracts.get(Number(id));
        return found === undefined ? [] : [found];
      });
      if (made.lineage.length === 0) made.lineage = [made];
    });
    return made;
  }

  function statement(raw: Raw): Statement {
    const at = place(raw);
    switch (raw.nodeType) {
      case 'Block':
      case 'UncheckedBlock':
        return {
          kind: 'block',
          statements: nodes(raw.statements).map(statement),
          unchecked: raw.nodeType === 'UncheckedBlock',
          place: at,
        };
      case 'ExpressionStatement': {
        const inside = raw.expression as Raw;
        const called = callOf(inside);
        if (called === 'revert')
          return { kind: 'revert', arguments: nodes(inside.arguments).map(expression), place: at };
        return { kind: 'expression', expression: expression(inside), place: at };
      }
      case 'VariableDeclarationStatement': {
        const initial = raw.initialValue == null ? null : expression(raw.initialValue as Raw);
        const variables = list(raw.declarations).map((each) =>
          each === null ? null : variable(each as Raw, 'local', null),
        );
        // `var x = …` lies where its value lies.
        const only = variables.length === 1 ? variables[0] : null;
        if (only != null && / memory/.test(initial?.type ?? '')) only.location = 'memory';
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
        const before = raw.initializationExpression as Raw | null | undefined;
        const condition = raw.condition as Raw | null | undefined;
        const after = raw.loopExpression as Raw | null | undefined;
        return {
          kind: 'loop',
          bodyFirst: raw.nodeType === 'DoWhileStatement',
          before: before == null ? null : statement(before),
          condition: condition == null ? null : expression(condition),
          after: after == null ? null : statement(after),
          body: statement(raw.body as Raw),
          place: at,
        };
      }
      case 'Return':
        return {
          kind: 'return',
          value: raw.expression == null ? null : expression(raw.expression as Raw),
          place: at,
        };
      case 'Throw':
        return { kind: 'revert', arguments: [], place: at };
      case 'RevertStatement':
        return { kind: 'revert', arguments: [expression(raw.errorCall as Raw)], place: at };
      case 'EmitStatement':
        return { kind: 'emit', event: expression(raw.eventCall as Raw), place: at };
      case 'TryStatement':
        return {
          kind: 'try',
          call: expression(raw.externalCall as Raw),
          clauses: nodes(raw.clauses).map((clause) => {
            parameters(clause.parameters, 'return', null);
            return statement(clause.block as Raw);
          }),
          place: at,
        };
      case 'PlaceholderStatement':
        return { kind: 'placeholder', place: at };
      case 'InlineAssembly':
        return { kind: 'assembly', body: fromAssembly(raw, { place, declaration }), place: at };
      default:
        return { kind: 'jump', place: at };
    }
  }

  function expression(raw: Raw): Expression {
    const common = { type: typeOf(raw), place: place(raw) };
    switch (raw.nodeType) {
      case 'Identifier':
        return {
          kind: 'name',
          name: String(raw.name),
          target: declaration(raw.referencedDeclaration),
          ...common,
        };
      case 'MemberAccess': {
        const target = declaration(raw.referencedDeclaration);
        const of = expression(raw.expression as Raw);
        return { kind: 'member', of, member: String(raw.memberName), target, ...common };
      }
      case 'IndexAccess':
        return {
          kind: 'index',
          of: expression(raw.baseExpression as Raw),
          index: raw.indexExpression == null ? null : expression(raw.indexExpression as Raw),
          ...common,
        };
      case 'IndexRangeAccess':
        return expression(raw.baseExpression as Raw);
      case 'FunctionCall':
        return call(raw, common);
      case 'FunctionCallOptions':
        return expression(raw.expression as Raw);
      case 'Assignment':
        return {
          kind: 'assignment',
          operator: String(raw.operator),
          left: expression(raw.leftHandSide as Raw),
          right: expression(raw.rightHandSide as Raw),
          ...common,
        };
      case 'UnaryOperation':
        return {
          kind: 'unary',
          operator: String(raw.operator),
          operand: expression(raw.subExpression as Raw),
          ...common,
        };
      case 'BinaryOperation':
        return {
          kind: 'binary',
          operator: String(raw.operator),
          left: expression(raw.leftExpression as Raw),
          right: expression(raw.rightExpression as Raw),
          ...common,
        };
      case 'Conditional':
        return {
          kind: 'conditional',
          condition: expression(raw.condition as Raw),
          whenTrue: expression(raw.trueExpression as Raw),
          whenFalse: expression(raw.falseExpression as Raw),
          ...common,
        };
      case 'TupleExpression':
        return {
          kind: 'tuple',
          items: list(raw.components).map((item) => (item === null ? null : expression(item as Raw))),
          ...common,
        };
      case 'Literal':
        return {
          kind: 'literal',
          value: String(raw.value ?? ''),
          unit: String(raw.subdenomination ?? ''),
          ...common,
        };
      case 'NewExpression':
        return { kind: 'creation', ...common };
      case 'ElementaryTypeNameExpression': {
        const named = raw.typeName;
        const name = typeof named === 'string' ? named : String((named as Raw | null)?.name ?? '');
        return { kind: 'name', name, target: null, ...common };
      }
      default:
        return { kind: 'name', name: '', target: null, ...common };
    }
  }

  function call(raw: Raw, common: { type: string; place: Place }): Expression {
    const options: Record<(typeof CALL_OPTIONS)[number], Expression | null> = { value: null, gas: null };
    let callee = raw.expression as Raw;
    // `x.call.value(v).gas(g)(…)`: calls of calls, the innermost of which is what is called.
    for (;;) {
      const inner = callee.expression as Raw | undefined;
      if (callee.nodeType === 'FunctionCallOptions') {
        nodes(callee.options).forEach((option, at) => {
          const name = list(callee.names)[at];
          if (name === 'value' || name === 'gas') options[name] = expression(option);
        });
        callee = inner as Raw;
      } else if (
        callee.nodeType === 'FunctionCall' &&
        inner?.nodeType === 'MemberAccess' &&
        (inner.memberName === 'value' || inner.memberName === 'gas') &&
        /^function/.test(typeOf(inner.expression as Raw))
      ) {
        const given = nodes(callee.arguments)[0];
        if (given !== undefined) options[inner.memberName] = expression(given);
        callee = inner.expression as Raw;
      } else break;
    }
    const called = expression(callee);
    const given = list(raw.names).map((each) => String(each));
    const names = given.length > 0 ? given : parameterNames(called);
    return {
      kind: 'call',
      form:
        raw.kind === 'typeConversion'
          ? 'conversion'
          : raw.kind === 'structConstructorCall'
            ? 'struct'
            : 'call',
      callee: called,
      args: nodes(raw.arguments).map(expression),
      names,
      ...options,
      ...common,
    };
  }

  const declared: Contract[] = [];
  for (const [name, unit] of Object.entries(units)) {
    file = name;
    lineAt = lineFinder(texts[name] ?? '');
    for (const raw of nodes((unit as Raw).nodes)) {
      if (raw.nodeType === 'ContractDefinition') declared.push(contract(raw));
      else if (raw.nodeType === 'FunctionDefinition') free.push(routine(raw, null));
      else if (raw.nodeType === 'StructDefinition') struct(raw);
      else if (raw.nodeType === 'VariableDeclaration') variable(raw, 'state', null);
    }
  }
  for (const convert of bodies) convert();
  return { contracts: declared, routines: free, typed: true, minor, borrowed: new Set() };
}

/** The names of what a callee takes. Arguments without names of their own stand in this order. */
function parameterNames(callee: Expression): string[] {
  const target = callee.kind === 'name' || callee.kind === 'member' ? callee.target : null;
  if (target?.kind === 'routine') return target.parameters.map(({ name }) => name);
  return target?.kind === 'struct' ? target.fields.map(({ name }) => name) : [];
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function nodes(value: unknown): Raw[] {
  return list(value).filter((each): each is Raw => typeof each === 'object' && each !== null);
}

function typeOf(raw: Raw): string {
  return String((raw.typeDescriptions as Raw | undefined)?.typeString ?? '');
}

function callOf(raw: Raw): string | null {
  const callee = raw.expression as Raw | undefined;
  return raw.nodeType === 'FunctionCall' && callee?.nodeType === 'Identifier' ? String(callee.name) : null;
}

function roleOf(raw: Raw, name: string, contract: Contract | null): Routine['role'] {
  if (raw.kind === 'constructor' || raw.isConstructor === true) return 'constructor';
  if (raw.kind === 'fallback' || raw.kind === 'receive') return raw.kind;
  if (raw.kind === undefined && contract !== null && name === '') return 'fallback';
  return 'function';
}

function visibilityOf(raw: Raw): Routine['visibility'] {
  const given = raw.visibility;
  return given === 'external' || given === 'internal' || given === 'private' ? given : 'public';
}

/** From the offset of a byte in UTF-8 to its line. */
function lineFinder(text: string): (byte: number) => number {
  const bytes = Buffer.from(text, 'utf8');
  const starts = [0];
  for (let at = bytes.indexOf(10); at !== -1; at = bytes.indexOf(10, at + 1)) starts.push(at + 1);
  return (byte) => {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((starts[middle] ?? 0) <= byte) low = middle;
      else high = middle - 1;
    }
    return low + 1;
  };
}
