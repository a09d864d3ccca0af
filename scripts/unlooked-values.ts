/**
 * Values that are turned into text or numbers without a look at what they are. `String(value)` of an object asks the object,
 * and JSON of a caller can answer with an error (`{"toString":""}`) or with a text that it is not (`["0x…"]`).
 */
import { join, relative, sep } from 'node:path';
import {
  isBinaryExpression,
  isCallExpression,
  isIdentifier,
  isPrefixUnaryExpression,
  isPropertyAccessExpression,
  isTaggedTemplateExpression,
  isTemplateExpression,
  type Node,
  type SourceFile,
  SyntaxKind,
} from 'typescript/unstable/ast';
import { API, type Checker, type Type, TypeFlags } from 'typescript/unstable/sync';

const CONVERSIONS = new Set(['String', 'Number', 'BigInt']);
const OURS = /^(apps\/shop|packages\/(?!sandbox)[\w-]+)\/src\/.*(?<!\.(test|fixture|d))\.ts$/;
/** The file in which faults must be found, so that a rule that finds nothing any more is not taken for code without faults. */
const PROOF = 'scripts/unlooked-values.fixture.ts';
/** What these turn into text is no caller's and no peer's: rows of our tables, our own configuration, a compiler's tree. */
const OWN_VALUES = /\/(books-rules|share-rules|ledger\/books|ledger-rules|declared)\.ts$|\/code-analysis\//;
/** What was thrown, by our code or a library: it tells of itself in a log. */
const THROWN = /^(?:(\w+) instanceof Error \? \1\.message : )?(?:error|cause)(?:\.code)?$/;
/** A project without tests, which only this program sees: they are as much as the rest. */
const OWN_PROJECT = JSON.stringify({
  extends: './tsconfig.json',
  compilerOptions: { incremental: false },
  include: ['apps/shop/src/**/*.ts', 'packages/*/src/**/*.ts'],
  exclude: ['**/*.test.ts', '**/*.fixture.ts', '**/node_modules'],
  files: [PROOF],
});

/** Places in our own code, tests and sandbox aside, with what stands there and its type; and those of the fixture. */
export function unlookedValues(root: string): string[] {
  const config = join(root, 'tsconfig.own.json');
  const fs = {
    fileExists: (name: string) => (name === config ? true : undefined),
    readFile: (name: string) => (name === config ? OWN_PROJECT : undefined),
  };
  const api = new API({ cwd: root, fs });
  try {
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    if (project === undefined) throw new Error(`there is no project in ${config}`);
    const { program, checker } = project;
    return program.getSourceFileNames().flatMap((name) => {
      const path = relative(root, name).replaceAll(sep, '/');
      const isAsked = path === PROOF || (OURS.test(path) && !OWN_VALUES.test(path));
      const file = isAsked ? program.getSourceFile(name) : undefined;
      if (file === undefined) return [];
      const values = convertedIn(file);
      const types = checker.getTypeAtLocation(values);
      return values.flatMap((value, index) => {
        const type = types[index];
        const text = file.text.slice(value.pos, value.end).trim();
        if (type === undefined || isLooked(type, checker) || THROWN.test(text)) return [];
        return [`${path} ${text}: ${checker.typeToString(type)}`];
      });
    });
  } finally {
    api.close();
  }
}

/** The expressions of a file whose value becomes text or a number. */
function convertedIn(file: SourceFile): Node[] {
  const converted: Node[] = [];
  const look = (node: Node): void => {
    if (isTaggedTemplateExpression(node)) {
      // What stands in it is handed to its function as it is.
      if (isTemplateExpression(node.template))
        for (const { expression } of node.template.templateSpans) look(expression);
      return;
    }
    if (isCallExpression(node)) {
      const [first] = node.arguments;
      const { expression: called } = node;
      if (isIdentifier(called) && CONVERSIONS.has(called.text) && first !== undefined) converted.push(first);
      if (isPropertyAccessExpression(called) && called.name.text === 'toString')
        converted.push(called.expression);
    } else if (isTemplateExpression(node)) {
      converted.push(...node.templateSpans.map(({ expression }) => expression));
    } else if (isPrefixUnaryExpression(node) && node.operator === SyntaxKind.PlusToken) {
      converted.push(node.operand);
    } else if (isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.PlusToken) {
      converted.push(node.left, node.right);
    }
    node.forEachChild(look);
  };
  look(file);
  return converted;
}

/** Whether nothing can stand there but texts, numbers, truth values, lists of them, and what has a text of its own. */
function isLooked(type: Type, checker: Checker): boolean {
  if (type.isUnionType()) return type.getTypes().every((each) => isLooked(each, checker));
  if (type.isIntersectionType()) return type.getTypes().some((each) => isLooked(each, checker));
  if ((type.flags & (TypeFlags.AnyOrUnknown | TypeFlags.NonPrimitive)) !== 0) return false;
  if ((type.flags & TypeFlags.InstantiableNonPrimitive) !== 0) {
    const bound = checker.getBaseConstraintOfType(type);
    return bound !== undefined && bound.id !== type.id && isLooked(bound, checker);
  }
  if (!type.isObjectType()) return true;
  if (checker.isArrayType(type) && type.isTypeReference())
    return checker.getTypeArguments(type).every((each) => isLooked(each, checker));
  const writesItself = checker.getPropertyOfType(type, 'toString')?.getParent()?.name;
  return writesItself !== undefined && writesItself !== 'Object';
}
