/** Bytes of EVM code as instructions. Opcodes by the Yellow Paper, appendix H, and the EIPs up to Osaka. */

export interface Instruction {
  /** Where it stands in the code, in bytes. */
  pc: number;
  opcode: number;
  /** The value that a PUSH puts on the stack; null for any other. Bytes missing at the end of the code are zeros. */
  pushed: bigint | null;
}

export interface Disassembly {
  instructions: Instruction[];
  /** Where a jump may lead: a JUMPDEST that is no data of a PUSH. */
  jumpDestinations: ReadonlySet<number>;
  /** Bytes of the code without the compiler's trailer. */
  codeBytes: number;
  /** The CBOR trailer of solc and Vyper; null without. */
  metadata: { bytes: number; compiler: string | null } | null;
}

export const OP = {
  STOP: 0x00,
  ADDRESS: 0x30,
  ORIGIN: 0x32,
  CALLER: 0x33,
  CALLDATALOAD: 0x35,
  MLOAD: 0x51,
  MSTORE: 0x52,
  SLOAD: 0x54,
  JUMP: 0x56,
  JUMPI: 0x57,
  JUMPDEST: 0x5b,
  PUSH0: 0x5f,
  PUSH32: 0x7f,
  CALLCODE: 0xf2,
  DELEGATECALL: 0xf4,
  CREATE2: 0xf5,
  SELFDESTRUCT: 0xff,
} as const;

/** Keys that compilers put into the map at the end: a trailer without one of them is no trailer. */
const METADATA_KEYS = ['ipfs', 'bzzr0', 'bzzr1', 'solc', 'experimental', 'vyper'];
const SHORTEST_TRAILER_BYTES = 8;

/**
 * Takes code apart, from its first byte on, without the trailer in which a compiler names itself: its bytes are no
 * instructions, though some of them look so.
 */
export function disassemble(code: Uint8Array): Disassembly {
  const metadata = metadataOf(code);
  const codeBytes = code.length - (metadata?.bytes ?? 0);
  const instructions: Instruction[] = [];
  const jumpDestinations = new Set<number>();
  for (let pc = 0; pc < codeBytes; pc++) {
    const opcode = code[pc] ?? OP.STOP;
    if (opcode === OP.JUMPDEST) jumpDestinations.add(pc);
    if (opcode < OP.PUSH0 || opcode > OP.PUSH32) {
      instructions.push({ pc, opcode, pushed: null });
      continue;
    }
    const length = opcode - OP.PUSH0;
    let pushed = 0n;
    for (let byte = 1; byte <= length; byte++) pushed = (pushed << 8n) | BigInt(code[pc + byte] ?? 0);
    instructions.push({ pc, opcode, pushed });
    pc += length;
  }
  return { instructions, jumpDestinations, codeBytes, metadata };
}

/** The trailer: a CBOR map, and its length in the last two bytes. https://docs.soliditylang.org/en/latest/metadata.html */
function metadataOf(code: Uint8Array): { bytes: number; compiler: string | null } | null {
  const length = ((code.at(-2) ?? 0) << 8) | (code.at(-1) ?? 0);
  const bytes = length + 2;
  if (bytes < SHORTEST_TRAILER_BYTES || bytes > code.length) return null;
  const trailer = code.subarray(code.length - bytes, code.length - 2);
  const text = Buffer.from(trailer).toString('latin1');
  // 0xa1 to 0xa4: a map of one to four entries.
  if (!/^[\xa1-\xa4]/.test(text) || !METADATA_KEYS.some((key) => text.includes(key))) return null;
  // `solc`, and a byte string of three: the version.
  const solc = /solcC([\s\S]{3})/.exec(text)?.[1];
  const version = solc === undefined ? null : [...solc].map((digit) => digit.charCodeAt(0)).join('.');
  return {
    bytes,
    compiler: version === null ? (text.includes('vyper') ? 'vyper' : null) : `solc ${version}`,
  };
}
