/** Looks at what a contract makes of signatures: whether zero passes for a signer, and whether one can be used again. */
import type { Known, Listener, Write } from '../flow.ts';
import { type Frame, isCaller, keptPart, meaning, outsideCall, returned } from '../meaning.ts';
import {
  bare,
  type Call,
  type Contract,
  calledName,
  contains,
  type Expression,
  type Place,
  type Routine,
  type Variable,
  within,
} from '../syntax/tree.ts';
import { argumentDecides, deeply, deeplyContains, givenTo, isZeroLiteral } from './caller.ts';
import { type Finding, type Look, tell } from './finding.ts';

const VERIFIES = /^(ecrecover|(try)?recover\w*|isValid\w*Signature\w*|checkSignatures?|verifySignature)$/;

interface Verified {
  call: Call;
  known: Known;
  frame: Frame;
}

interface Compared {
  side: Expression;
  other: Expression;
  frame: Frame;
}

interface Written {
  write: Write;
  known: Known;
  frame: Frame;
}

/** SWC-117 and 121 of one entry. */
export function signatures(contract: Contract, entry: Routine, into: Finding[]): Listener {
  if (entry.role === 'constructor') return {};
  const look = { contract, entry, into };
  const verified: Verified[] = [];
  const compared: Compared[] = [];
  const zeroed: Pick<Compared, 'side' | 'frame'>[] = [];
  const writes: Written[] = [];
  let acts = false;
  return {
    expression(expression, known, frame) {
      if (expression.kind === 'binary' && (expression.operator === '==' || expression.operator === '!=')) {
        for (const [side, other] of [
          [expression.left, expression.right],
          [expression.right, expression.left],
        ] as const) {
          if (isZeroLiteral(other, frame)) zeroed.push({ side, frame });
          else compared.push({ side, other, frame });
        }
      }
      if (expression.kind === 'call' && expression.form === 'call' && VERIFIES.test(calledName(expression)))
        verified.push({ call: expression, known, frame });
    },
    write(write, known, frame) {
      acts = true;
      writes.push({ write, known, frame });
    },
    outsideCall(call) {
      if (!call.readsOnly) acts = true;
    },
    end() {
      for (const each of verified) zeroSigner(look, each, compared, zeroed);
      const isView = entry.mutability === 'view' || entry.mutability === 'pure';
      if (acts && !isView) replays(look, verified, writes);
    },
  };
}

/** SWC-117. */
function zeroSigner(
  look: Look,
  { call, known, frame }: Verified,
  compared: readonly Compared[],
  zeroed: readonly Pick<Compared, 'side' | 'frame'>[],
): void {
  const callee = bare(call.callee);
  if (callee.kind !== 'name' || callee.target !== null || callee.name !== 'ecrecover' || known.callerKnown)
    return;
  if (zeroed.some(({ side, frame: at }) => comesFrom(side, at, call, 0))) return;
  const against = compared.find(({ side, frame: at }) => comesFrom(side, at, call, 0));
  if (against === undefined) return;
  const part = keptPart(against.other, against.frame);
  const settable = part === null || !part.fixed;
  tell(look, 'zero-signer', call.place, frame, {
    severity: settable ? 'MEDIUM' : 'LOW',
    confidence: settable ? 'high' : 'low',
    detail: 'The answer of ecrecover is compared with a signer, and never with zero.',
  });
}

/** SWC-121. */
function replays(look: Look, verified: readonly Verified[], writes: readonly Written[]): void {
  const { entry } = look;
  const places: Place[] = [];
  for (const { call, known, frame } of verified) {
    // What a verifying function calls in turn is its own matter.
    if (frame.trail.some((at) => places.includes(at))) continue;
    places.push(call.place);
    if (known.callerKnown || isOwn(call, frame)) continue;
    const hash = givenTo(call).find((arg) => isDigest(arg, frame));
    if (hash === undefined) continue;
    const read = kept(hash, frame);
    const marks = writes.filter(({ write, known: at, frame: where }) =>
      marksUse(write, at, where, hash, frame, read),
    );
    if (marks.length > 0) {
      if (namesNoPlace(hash, frame))
        tell(look, 'signature-replay', call.place, frame, {
          severity: 'MEDIUM',
          confidence: 'low',
          detail: 'What is signed names neither this contract nor its chain: it counts on another one too.',
        });
      if (isRaw(call) && marks.every(({ write, frame: where }) => isOfSignature(write, where)))
        tell(look, 'signature-replay', call.place, frame, {
          severity: 'MEDIUM',
          confidence: 'medium',
          detail: `${entry.name || entry.role} remembers a signature by its bytes, and ecrecover takes a second form of each.`,
        });
      continue;
    }
    tell(look, 'signature-replay', call.place, frame, {
      severity: 'HIGH',
      confidence: 'medium',
      detail: `${entry.name || entry.role} acts on a signature, and changes nothing by which it would be known again.`,
    });
  }
}

/** A digest made here, into which neither the contract nor the chain goes, nor anything that is kept and may stand for them. */
function namesNoPlace(hash: Expression, frame: Frame): boolean {
  let made = false;
  for (const { expression: part } of deeply(hash, frame)) {
    if (isHash(part)) made = true;
    const target = part.kind === 'name' || part.kind === 'member' ? part.target : null;
    const name = part.kind === 'name' ? part.name : part.kind === 'member' ? part.member : '';
    if (/^this$|chain|domain|separator|address|contract|eip712|typed/i.test(name)) return false;
    // A function that nobody sent, or one in assembly, may add them.
    if (part.kind === 'call' && (part.inAssembly === true || /typed|domain|712/i.test(calledName(part))))
      return false;
    if (target?.kind === 'variable' && target.scope === 'state' && /^(bytes|address)/.test(target.type)) {
      if (target.initial === null || bare(target.initial).kind !== 'call' || !target.fixed) return false;
    }
  }
  return made;
}

/** `ecrecover` itself takes both forms of a signature; libraries refuse one. */
function isRaw(call: Call): boolean {
  return calledName(call) === 'ecrecover';
}

/** Marked under the bytes of a signature, or a hash of nothing else. */
function isOfSignature({ target }: Write, frame: Frame): boolean {
  const at = bare(target);
  if (at.kind !== 'index' || at.index === null) return false;
  const { expression } = meaning(at.index, frame);
  const hashed = expression.kind === 'call' && isHash(expression) ? expression.args[0] : expression;
  if (hashed === undefined) return false;
  const { expression: key } = meaning(hashed, frame);
  return key.kind === 'name' && /^bytes( |$)/.test(key.type) && argumentDecides(key, frame);
}

/** A signature of the caller's own consent adds nothing that they could not do again. */
function isOwn(call: Call, frame: Frame): boolean {
  return givenTo(call).some((arg) => isCaller(arg, frame));
}

function isDigest(arg: Expression, frame: Frame): boolean {
  const { expression } = meaning(arg, frame);
  return (
    /^bytes32/.test(arg.type) ||
    (expression.kind === 'call' && /^(keccak256|sha3)$/.test(calledName(expression)))
  );
}

/** Everything kept by the contract that goes into a value. */
function kept(expression: Expression, frame: Frame): Set<Variable> {
  const found = new Set<Variable>();
  for (const { expression: part, frame: at } of deeply(expression, frame)) {
    const variable =
      part.kind === 'name' || part.kind === 'index' || part.kind === 'member' ? keptPart(part, at) : null;
    if (variable !== null && !variable.fixed) found.add(variable);
  }
  return found;
}

/** Whether a write keeps that a signature was used: a counter in its digest, its own entry, or a step beyond a number of it. */
function marksUse(
  write: Write,
  known: Known,
  frame: Frame,
  hash: Expression,
  ofHash: Frame,
  read: ReadonlySet<Variable>,
): boolean {
  const part = keptPart(write.target, frame);
  if (part === null) return false;
  if (write.operator === '++' || write.operator === '--') return true;
  if (read.has(part)) return true;
  const target = bare(write.target);
  const asked = known.checks.some(({ condition, frame: at }) =>
    deeplyContains(condition, at, (one, where) => one.kind !== 'literal' && keptPart(one, where) === part),
  );
  if (target.kind === 'index' && target.index !== null) {
    const index = meaning(target.index, frame).expression;
    const digest = meaning(hash, ofHash).expression;
    if (index === digest || deeplyContains(target.index, frame, (one) => one === digest || isHash(one)))
      return true;
  }
  if (write.value === null) return asked;
  const literal = meaning(write.value, frame).expression;
  const isStep = literal.kind === 'literal' || (literal.kind === 'binary' && literal.operator === '|');
  if (write.operator === '|=' || write.operator === '^=') return true;
  if (write.operator === '+=' && literal.kind === 'literal' && literal.value === '1') return true;
  return write.operator === '=' && (isStep || asked);
}

function isHash(part: Expression): boolean {
  return part.kind === 'call' && /^(keccak256|sha3)$/.test(calledName(part));
}

/** Whether a value is what a call gave, through names and functions. */
function comesFrom(expression: Expression, frame: Frame, call: Call, depth: number): boolean {
  const { expression: meant, frame: at } = meaning(expression, frame);
  if (meant === call) return true;
  if (depth > 4 || meant.kind !== 'call' || meant.form !== 'call') return false;
  if (outsideCall(meant, at) !== null) return false;
  return returned(meant, at).some((each) => {
    const { expression: given } = each;
    const parts = bare(given).kind === 'tuple' ? [...within(given)] : [given];
    return parts.some(
      (part) => contains(part, (one) => one === call) || comesFrom(part, each.frame, call, depth + 1),
    );
  });
}
