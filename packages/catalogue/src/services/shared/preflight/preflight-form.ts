/** The forms of a check before signing: its request and its answer. */
import { chainName, outsiderText } from '@farebox/core/service/fields';
import { CHAINS } from '@farebox/core/words/chain-names';
import { z } from 'zod';
import { VERDICTS } from '../../../preflight/finding.ts';
import { typedDataForm } from '../../../preflight/typed-data.ts';
import { walletAddress } from '../wallet/wallet-address.ts';
import { CHECKS } from './coverage.ts';
import { findingForm } from './finding-form.ts';

/** The body of a request is bounded too; a chain accepts less in one transaction. */
const MOST_DIGITS = 250_000;
const MOST_AUTHORIZATIONS = 8;
const HEX = /^0x([0-9a-fA-F]{2})*$/;
const EVM = /^0x[0-9a-fA-F]{40}$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
const WHOLE = /^(\d{1,78}|0x[0-9a-fA-F]{1,64})$/;

const asText = (value: unknown) =>
  typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
const whole = z.preprocess(
  asText,
  z.string().regex(WHOLE, 'must be a whole number, in decimal or as 0x hex'),
);
const bytes = z.string().max(MOST_DIGITS).regex(HEX, 'must be 0x and an even number of hex digits');

const evmTransaction = z.object({
  from: z
    .string()
    .regex(EVM, 'must be 0x and 40 hex digits')
    .optional()
    .describe('The same as the from beside it'),
  // Wallets write null for the creation of a contract; a tool's field has one type.
  to: z
    .preprocess(
      (value) => value ?? undefined,
      z.string().regex(EVM, 'must be 0x and 40 hex digits').optional(),
    )
    .optional()
    .describe('Whom it goes to or calls; none creates a contract'),
  value: whole.default('0').describe('Wei, in decimal or as 0x hex'),
  data: bytes.optional().describe('Call data in hex'),
  input: bytes.optional().describe('Another name of data'),
  chainId: z
    .preprocess(asText, z.string().regex(WHOLE, 'must be a whole number'))
    .optional()
    .describe('EIP-155 id; must be that of chain'),
  authorizationList: z
    .array(
      z.object({
        chainId: whole.describe('EIP-155 id; 0 for every chain'),
        address: z
          .string()
          .regex(EVM, 'must be 0x and 40 hex digits')
          .describe('The contract whose code is to act'),
      }),
    )
    .max(MOST_AUTHORIZATIONS)
    .default([])
    .describe('Authorizations of EIP-7702 that the signer is to give'),
});

const json = (value: unknown) => {
  if (typeof value !== 'string') return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
};

export const preflightInput = z
  .object({
    chain: chainName,
    from: walletAddress('Who is asked to sign; on solana the payer of the fee unless given').optional(),
    transaction: z
      .union([
        z
          .string()
          .max(MOST_DIGITS)
          .refine((text) => HEX.test(text) || BASE64.test(text), 'must be 0x hex (EVM) or base64 (solana)'),
        evmTransaction,
      ])
      .optional()
      .describe(
        'The unsigned transaction: {to, value, data} or serialized as 0x hex, and on solana in base64',
      ),
    typedData: z
      .preprocess(json, typedDataForm)
      .optional()
      .describe('In place of a transaction: EIP-712 data to sign, {types, primaryType, domain, message}'),
  })
  .refine(({ transaction, typedData }) => (transaction === undefined) !== (typedData === undefined), {
    path: ['transaction'],
    message: 'is required, or typedData in its place, and not both',
  })
  .refine(({ chain, from }) => chain === 'solana' || from !== undefined, {
    path: ['from'],
    message: 'is required on this chain: what a transaction does depends on who signs it',
  })
  .refine(({ chain, from }) => from === undefined || (chain === 'solana') !== EVM.test(from), {
    path: ['from'],
    message: 'is not an address of this chain',
  })
  .refine(({ chain, typedData }) => chain !== 'solana' || typedData === undefined, {
    path: ['typedData'],
    message: 'is of EVM chains',
  })
  .refine(
    ({ chain, transaction }) =>
      transaction === undefined ||
      (chain === 'solana') === (typeof transaction === 'string' && !transaction.startsWith('0x')),
    {
      path: ['transaction'],
      message: 'must be base64 on solana, and an object or 0x hex on other chains',
    },
  )
  .meta({ anyOf: [{ required: ['transaction'] }, { required: ['typedData'] }] });

const anAddress = z.string().regex(/^(0x[0-9a-fA-F]{40}|[1-9A-HJ-NP-Za-km-z]{32,44})$/);
const aPlace = z.string().regex(/^[A-Za-z0-9_$.]{1,500}$/);
const anAmount = z.string().regex(/^-?\d{1,90}$/);

export const preflightOutput = z.object({
  verdict: z
    .enum(VERDICTS)
    .describe(
      'danger: do not sign. unknown: a part was not read or simulated. caution: read the findings. safe: nothing was found',
    ),
  chain: z.enum(CHAINS).describe('The chain, by name'),
  kind: z.enum(['evm-transaction', 'evm-typed-data', 'solana-transaction']).describe('What was checked'),
  signer: anAddress.describe('Who is asked to sign'),
  findings: z
    .array(
      findingForm(anAddress).extend({
        at: aPlace.describe('Where it stands in what was sent'),
        detail: z.string().describe('What it means, in a sentence'),
      }),
    )
    .describe('What was found, the worst first'),
  approvals: z
    .array(
      z.object({
        owner: anAddress.describe('Whose tokens'),
        token: anAddress.describe('The token or collection'),
        spender: anAddress.describe('Who may take them'),
        amountRaw: anAmount.nullable().describe('In the smallest unit; null: all'),
        isUnlimited: z.boolean().describe('Whether it is more than there can be'),
        expiresAtUnixS: anAmount.nullable().describe('Unix seconds; null: it does not end by itself'),
        by: z.enum(['call', 'signature', 'simulation']).describe('How it is known'),
        at: aPlace.describe('Where it stands'),
      }),
    )
    .describe('Who may take what afterwards, or with this signature'),
  transfers: z
    .array(
      z.object({
        token: anAddress.nullable().describe("The token; null: the chain's own coin"),
        from: anAddress.describe('Who gives'),
        to: anAddress.describe('Who gets'),
        amountRaw: anAmount.describe('In the smallest unit'),
        by: z.enum(['call', 'signature', 'simulation']).describe('How it is known'),
        at: aPlace.describe('Where it stands'),
      }),
    )
    .describe('What the data itself moves'),
  orders: z
    .array(
      z.object({
        gives: z.array(goods('What is offered')).describe('What the signer gives'),
        gets: z.array(goods('What is asked')).describe('What the signer gets'),
        expiresAtUnixS: anAmount.nullable().describe('Unix seconds; null: it does not end by itself'),
      }),
    )
    .describe('Orders of marketplaces that the signature places'),
  balanceChanges: z
    .array(
      z.object({
        address: anAddress.describe('Whose balance'),
        isSigner: z.boolean().describe('Whether that is the signer, or an account that the signer rules'),
        token: anAddress.nullable().describe("The token; null: the chain's own coin"),
        symbol: outsiderText(30).nullable().describe('As the token calls itself; null where it does not say'),
        decimals: z.number().int().nullable().describe('Decimal places; null where the token does not say'),
        changeRaw: anAmount.describe('In the smallest unit, with its sign, without the fee'),
        change: z
          .string()
          .regex(/^-?\d+(\.\d+)?$/)
          .nullable()
          .describe('In whole tokens; null without decimals'),
        measured: z.boolean().describe('True: read before and after. False: as a log of the token tells it'),
      }),
    )
    .nullable()
    .describe('By the simulation; null where nothing was simulated'),
  simulation: z
    .object({
      method: z
        .enum(['eth_simulateV1', 'debug_traceCall', 'eth_call', 'simulateTransaction'])
        .describe('How it was simulated'),
      success: z.boolean().describe('Whether it went through'),
      revertReason: outsiderText(300).nullable().describe('Why it would fail; null where it went through'),
      gasUsed: z
        .string()
        .regex(/^\d+$/)
        .nullable()
        .describe('Gas or compute units; null where it was not measured'),
    })
    .nullable()
    .describe('Null where nothing was simulated'),
  calls: z
    .array(
      z.object({
        at: aPlace.describe('Its place: call.0.1 is the second call in the first call in the transaction'),
        to: anAddress.describe('The contract or program'),
        valueWei: anAmount.describe('Coin sent along, in the smallest unit'),
        selector: z.string().nullable().describe('The four bytes that name the function; null without'),
        function: z.string().nullable().describe('By its published signature; null where it is not known'),
      }),
    )
    .describe('The calls that were read, at most 50 of them'),
  counterparties: z
    .array(
      z.object({
        address: anAddress.describe('Who takes part'),
        account: z
          .enum(['none', 'contract', 'delegated'])
          .nullable()
          .describe('none: a key, no code. delegated: a key that runs code (EIP-7702). Null: not asked'),
        known: z.string().nullable().describe('A well-known contract by its address; null for others'),
        sourceIsPublished: z
          .boolean()
          .nullable()
          .describe('Whether Sourcify has the source; null: it was not asked'),
        sanctioned: z.boolean().nullable().describe('By an oracle or a list; null: nobody could be asked'),
        mixer: z
          .boolean()
          .nullable()
          .describe('Whether a list of mixing services has it; null: there is none'),
      }),
    )
    .describe('Who takes part, and what is known of them'),
  typedData: z
    .object({
      form: z.string().nullable().describe('The known form of its types; null for none'),
      primaryType: outsiderText(100).describe('As the data calls itself, which proves nothing'),
      digest: z
        .string()
        .regex(/^0x[0-9a-f]{64}$/)
        .describe('What is signed (EIP-712), to compare with the wallet'),
    })
    .nullable()
    .describe('Null for a transaction'),
  coverage: z
    .array(
      z.object({
        check: z.enum(CHECKS).describe('What is looked at'),
        done: z.boolean().describe('Whether it was done in full'),
        why: z.string().nullable().describe('Why not; null where it was'),
      }),
    )
    .describe('What was checked, and what was not and why'),
  atHeight: z.number().int().describe('The block, or on solana the slot, that it was read at'),
  disclaimer: z.string().describe('What the answer is not, in a sentence'),
});

function goods(description: string) {
  return z
    .object({
      token: anAddress.nullable().describe("The token; null: the chain's own coin"),
      amountRaw: anAmount.describe('In the smallest unit'),
      isNft: z.boolean().describe('Whether it is of a collection'),
    })
    .describe(description);
}
