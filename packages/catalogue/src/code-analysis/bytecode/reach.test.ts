import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { hexToBytes, toFunctionSelector } from 'viem';
import { disassemble } from './disassembly.ts';
import { readCode } from './reach.ts';
import { scannedContracts } from './scanned-contracts.fixture.ts';

const bytes = (hex: string) => hexToBytes(`0x${hex.replaceAll(' ', '')}`);

describe('a disassembly', () => {
  it('takes what a PUSH carries as data, and no jump target from it', () => {
    const { instructions, jumpDestinations } = disassemble(bytes('61 5bff 5b 7f ff'));
    assert.deepEqual(instructions, [
      { pc: 0, opcode: 0x61, pushed: 0x5bffn },
      { pc: 3, opcode: 0x5b, pushed: null },
      // The code ends within: the bytes that are missing are zeros.
      { pc: 4, opcode: 0x7f, pushed: 0xffn << 248n },
    ]);
    assert.deepEqual([...jumpDestinations], [3]);
  });

  it('leaves out the trailer of a compiler, and nothing that only looks like one', () => {
    const trailer = `a264697066735822${'ff'.repeat(34)}64736f6c63430008250033`;
    assert.deepEqual(disassemble(bytes(`00${trailer}`)).metadata, { bytes: 53, compiler: 'solc 0.8.37' });
    assert.equal(disassemble(bytes(`00${trailer}`)).codeBytes, 1);
    const other = disassemble(bytes('00 ff ff ff ff ff ff ff ff 0008'));
    assert.deepEqual([other.metadata, other.codeBytes], [null, 11]);
    assert.deepEqual(disassemble(new Uint8Array()).instructions, []);
  });
});

describe('a walk of the code', () => {
  const kinds: [string, Record<string, unknown>][] = [
    ['optimized', { optimizer: { enabled: true, runs: 200 } }],
    ['not optimized', { optimizer: { enabled: false } }],
    ['made by way of Yul', { optimizer: { enabled: true, runs: 200 }, viaIR: true }],
  ];
  for (const [kind, settings] of kinds) {
    const contracts = scannedContracts(settings);

    it(`finds each danger in its function, of code ${kind}`, () => {
      const reading = readCode(hexToBytes(contracts.runtime('Dangers')));
      assert.equal(reading.complete, true);
      const seen = (signature: string) =>
        reading.sightings
          .filter(({ selector }) => selector === toFunctionSelector(signature))
          .map(({ instruction, callerUnchecked, target }) => [instruction, callerUnchecked, target]);
      assert.deepEqual(seen('anybodyKills(address)'), [['SELFDESTRUCT', true, 'calldata']]);
      assert.deepEqual(seen('keeperKills(address)'), [['SELFDESTRUCT', false, 'calldata']]);
      assert.deepEqual(seen('anybodyRuns(address,bytes)'), [['DELEGATECALL', true, 'calldata']]);
      assert.deepEqual(seen('keeperRuns(address,bytes)'), [['DELEGATECALL', false, 'calldata']]);
      assert.deepEqual(seen('stored(bytes)'), [['DELEGATECALL', true, 'storage']]);
      assert.deepEqual(seen('itself(bytes)'), [['DELEGATECALL', true, 'self']]);
      assert.deepEqual(seen('byOrigin()'), [['ORIGIN', true, null]]);
      assert.deepEqual(seen('makes()'), [['CREATE2', true, null]]);
      assert.equal(reading.selectors.length, 8);
    });

    it(`ends in loops, and takes data for no instruction, of code ${kind}`, () => {
      const reading = readCode(hexToBytes(contracts.runtime('Loops')));
      assert.deepEqual([reading.sightings, reading.complete, reading.selectors.length], [[], true, 3]);
    });
  }

  it('tells what stands in the code and is not reached', () => {
    const reading = readCode(bytes('00 5b 33 ff'));
    assert.deepEqual([reading.sightings, reading.unreached, reading.complete], [[], ['SELFDESTRUCT'], true]);
  });

  it('owns up to a jump that it cannot follow, and to code made to keep it busy', () => {
    // JUMP to what the caller names.
    assert.equal(readCode(bytes('5f 35 56 5b ff')).complete, false);
    // Each round pushes one word more.
    assert.equal(readCode(bytes('5b 34 5f 56')).complete, false);
    // Jumps to each other on conditions that nobody knows, over a whole contract's size.
    const maze = Array.from(
      { length: 3_000 },
      (_, i) => `5b 34 61 ${(((i * 7_919) % 3_000) * 8).toString(16).padStart(4, '0')} 57 34 50`,
    );
    const lost = readCode(bytes(maze.map((each) => each.replaceAll(' ', '').padEnd(16, '0')).join('')));
    assert.equal(lost.codeBytes, 24_000);
  });
});
