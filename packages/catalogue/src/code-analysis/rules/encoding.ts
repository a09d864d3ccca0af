/** Looks at what is hashed: whether two inputs can give the same bytes. */
import type { Listener } from '../flow.ts';
import { type Frame, meaning } from '../meaning.ts';
import { bare, type Call, type Contract, calledName, type Expression, type Routine } from '../syntax/tree.ts';
import { argumentDecides, deeply } from './caller.ts';
import { type Finding, tell } from './finding.ts';

const HASHES = /^(keccak256|sha3|sha256|ripemd160)$/;

/** SWC-133 in one entry. */
export function encoding(contract: Contract, entry: Routine, into: Finding[]): Listener {
  if (entry.role === 'constructor') return {};
  const look = { contract, entry, into };
  return {
    expression(expression, _known, frame) {
      if (
        expression.kind !== 'call' ||
        !HASHES.test(calledName(expression)) ||
        expression.inAssembly === true
      )
        return;
      const [data] = expression.args;
      if (data === undefined) return;
      for (const { expression: part, frame: at } of deeply(data, frame)) {
        if (part.kind !== 'call' || !/^(encodePacked|concat)$/.test(calledName(part))) continue;
        // A hash within it has its own turn.
        if (part !== meaning(data, frame).expression && isWithinHash(data, part)) continue;
        judge(part, at);
      }
    },
  };

  function judge(packed: Call, frame: Frame): void {
    const dynamic = packed.args.filter((arg) => isDynamic(arg, frame));
    if (dynamic.length < 2 || !dynamic.some((arg) => argumentDecides(arg, frame))) return;
    tell(look, 'packed-collision', packed.place, frame, {
      severity: 'HIGH',
      confidence: 'medium',
      detail: `${dynamic.length} values of any length stand one after the other in what is hashed.`,
    });
  }
}

function isWithinHash(data: Expression, part: Call): boolean {
  return [data].some(
    (each) => each.kind === 'call' && HASHES.test(calledName(each)) && each.args.some((arg) => arg === part),
  );
}

/** A value of a length that its type does not say, other than code and what was encoded with its length. */
function isDynamic(arg: Expression, frame: Frame): boolean {
  if (!/^(string|bytes)( |$)|\[\]/.test(arg.type)) return false;
  const { expression } = meaning(arg, frame);
  const meant = bare(expression);
  if (meant.kind === 'literal') return false;
  if (meant.kind === 'member' && /^(creationCode|runtimeCode)$/.test(meant.member)) return false;
  return !(
    meant.kind === 'call' && /^encode(Packed|WithSelector|WithSignature|Call)?$/.test(calledName(meant))
  );
}
