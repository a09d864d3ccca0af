/** The lending program's double on a chain without a node. The chain's clock stands still until a test moves it. */
import type { Address, Instruction, KeyPairSigner } from '@solana/kit';
import { generateKeyPairSigner } from '@solana/kit';
import { COLLATERAL_MINT, LENDING_MARKET, USDC_RESERVE } from '../../../../yield/src/solana/addresses.ts';
import {
  createTokenAccount,
  type OwnAccounts,
  ownAccountsOf,
} from '../../../../yield/src/solana/instructions.ts';
import {
  decodeMarket,
  decodeReserve,
  type Market,
  type Reserve,
} from '../../../../yield/src/solana/model/reserve.ts';
import { SEED, signerOf } from '../../accounts.fixture.ts';
import { type Bank, openBank } from '../bank.ts';
import { openFaucet } from '../faucet.ts';
import { bringIntoBeing } from '../genesis.ts';
import type { LandedTransaction } from '../history.ts';
import { signTransaction } from '../run-signed.ts';
import { newClockState } from '../slots.ts';
import { readToken } from '../token-state.ts';
import type { TransactionError } from '../transaction-error.ts';
import { LENDING_PROGRAM } from './addresses.ts';
import { placeReserve, type ReserveState } from './place.ts';
import { readProgram } from './program.ts';

export interface LendingWorld {
  bank: Bank;
  /** The market's owner, who borrows for all borrowers. It has no account for cTokens. */
  borrower: Wallet;
  reserve(): Reserve;
  market(): Market;
  /** A wallet with SOL, this much USDC and an account for cTokens. */
  wallet(usdcUnits: bigint): Promise<Wallet>;
  give(to: Address, usdcUnits: bigint): Promise<unknown>;
  /** The tokens in an account, in base units; 0 if there is no account. */
  heldBy(account: Address): bigint;
  /** Runs instructions in one transaction, which lands even if it fails. @throws Error if it does not land */
  run(
    by: KeyPairSigner | readonly [KeyPairSigner, ...KeyPairSigner[]],
    ...instructions: readonly Instruction[]
  ): Promise<LandedTransaction>;
  /** Like `run`. @returns the error of the instruction that failed, as its number if it has one; null if none failed */
  tried(...run: Parameters<LendingWorld['run']>): Promise<unknown>;
}

export interface Wallet extends OwnAccounts {
  signer: KeyPairSigner;
}

/** @param state the first state of the reserve; its slot is the current one */
export async function lendingWorld(state: Omit<ReserveState, 'slot'>): Promise<LendingWorld> {
  const atMs = Date.now();
  const bank = openBank({ clock: newClockState(), rest: null, nowMs: () => atMs });
  await bringIntoBeing(bank, SEED);
  const faucet = await openFaucet(bank, SEED);
  const owner = await signerOf('borrower');
  const borrower = { ...(await ownAccountsOf(owner.address)), signer: owner };
  bank.placeProgram(LENDING_PROGRAM, new Uint8Array(readProgram()));
  placeReserve(bank, owner.address, { ...state, slot: BigInt(bank.clock.slot()) });
  const account = (at: Address) => {
    const found = bank.account(at);
    if (found === null) throw new Error(`there is no account ${at}`);
    return { owner: found.programAddress, data: new Uint8Array(found.data) };
  };
  const give = (to: Address, usdcUnits: bigint) => faucet.give(to, { lamports: 10n ** 9n, usdcUnits });
  const run: LendingWorld['run'] = async (by, ...instructions) => {
    const landed = bank.land(await signTransaction(bank, 'address' in by ? [by] : by, 'test', instructions));
    if (landed === null) throw new Error('the transaction did not land');
    return landed;
  };
  return {
    bank,
    borrower,
    give,
    run,
    reserve: () => decodeReserve(account(USDC_RESERVE)),
    market: () => decodeMarket(account(LENDING_MARKET)),
    async wallet(usdcUnits) {
      const signer = await generateKeyPairSigner();
      await give(signer.address, usdcUnits);
      const own = await ownAccountsOf(signer.address);
      await run(
        signer,
        createTokenAccount(signer.address, {
          owner: signer.address,
          mint: COLLATERAL_MINT,
          account: own.collateral,
        }),
      );
      return { ...own, signer };
    },
    heldBy(at) {
      const found = bank.account(at);
      return (found && readToken(found)?.amount) ?? 0n;
    },
    tried: async (...args) => errorOf((await run(...args)).err),
  };
}

function errorOf(err: TransactionError | null): unknown {
  if (err === null || typeof err === 'string') return err;
  const [, error] = Object.values(err)[0] as [number, unknown];
  return typeof error === 'object' && error !== null && 'Custom' in error ? error.Custom : error;
}
