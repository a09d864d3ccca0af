import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import {
  type Address,
  getAddressEncoder,
  getBase58Decoder,
  getProgramDerivedAddress,
  isOffCurveAddress,
} from '@solana/kit';
import { addressAt, bytesOf, isOnCurve, MOST_KEPT, tokenAccountOf } from './address-bytes.ts';
import { ATA_PROGRAM, COLLATERAL_MINT, TOKEN_PROGRAM, USDC_MINT } from './addresses.ts';

const newAddress = () => getBase58Decoder().decode(randomBytes(32)) as Address;

test('a token account is the one that kit derives, of each owner and each mint, however often it is asked for', async () => {
  const { encode } = getAddressEncoder();
  const derived = async (owner: Address, mint: Address) => {
    const seeds = [owner, TOKEN_PROGRAM, mint].map((each) => encode(each));
    return (await getProgramDerivedAddress({ programAddress: ATA_PROGRAM, seeds }))[0];
  };
  const owners = Array.from({ length: 50 }, newAddress);
  for (const owner of [...owners, ...owners])
    for (const mint of [USDC_MINT, COLLATERAL_MINT])
      assert.equal(tokenAccountOf(owner, mint), await derived(owner, mint));
});

test('an address is the same as bytes and as text, after more of them than are kept', () => {
  const first = newAddress();
  const asked = [first, ...Array.from({ length: MOST_KEPT + 1 }, newAddress), first, first];
  for (const address of asked) {
    const bytes = Buffer.from(getAddressEncoder().encode(address));
    assert.deepEqual(Buffer.from(bytesOf(address)), bytes);
    assert.equal(addressAt(Buffer.concat([Buffer.alloc(3), bytes, Buffer.alloc(1)]), 3), address);
  }
});

test('what is no address is none, each time it is asked for', () => {
  for (const text of ['', '1', 'O'.repeat(44), `${newAddress()}1111`, `${newAddress()} ${USDC_MINT}`])
    for (const _ of [1, 2]) {
      assert.throws(() => bytesOf(text));
      assert.throws(() => tokenAccountOf(text as Address, USDC_MINT));
    }
  assert.throws(() => addressAt(Buffer.alloc(31), 0));
});

test('an address on the curve is told from one that nobody can have a key for', () => {
  const asked = Array.from({ length: 40 }, newAddress);
  for (const address of [...asked, ...asked]) assert.equal(isOnCurve(address), !isOffCurveAddress(address));
  assert.equal(isOnCurve(tokenAccountOf(newAddress(), USDC_MINT)), false);
});
