/** Accounts as JSON-RPC shows them. */
import { zstdCompressSync } from 'node:zlib';
import { type EncodedAccount, getBase58Decoder, isSome, type Option } from '@solana/kit';
import type { Bank } from './bank.ts';
import { type Config, choiceOf, integerOf, invalid } from './params.ts';
import { TOKEN_PROGRAM } from './programs.ts';
import { readMint, readToken, uiTokenAmount } from './token-state.ts';

const ACCOUNT_ENCODINGS = ['base58', 'base64', 'base64+zstd', 'jsonParsed', 'binary'] as const;
const MAX_BASE58_BYTES = 128;
/** The rent epoch that nodes report for accounts that pay no rent. No account pays rent any more. */
const RENT_EPOCH = 18_446_744_073_709_551_615n;

/** How the caller wants to see accounts. */
export interface AccountFormat {
  encoding: (typeof ACCOUNT_ENCODINGS)[number];
  /** The part of the data that is wanted; null for all of it. */
  slice: { offset: number; length: number } | null;
}

/** Reads `encoding` and `dataSlice` of a call's options. */
export function accountFormatOf(config: Config, fallback: AccountFormat['encoding']): AccountFormat {
  const encoding = choiceOf(config, 'encoding', ACCOUNT_ENCODINGS, fallback);
  const { dataSlice } = config;
  if (dataSlice === undefined || dataSlice === null) return { encoding, slice: null };
  if (typeof dataSlice !== 'object') throw invalid('Invalid params: dataSlice must be an object.');
  const bounds = { ...dataSlice };
  const maximum = Number.MAX_SAFE_INTEGER;
  return {
    encoding,
    slice: {
      offset: integerOf(bounds, 'offset', 0, maximum),
      length: integerOf(bounds, 'length', 0, maximum),
    },
  };
}

/** The account as the value of `getAccountInfo`; null if there is none. */
export function accountView(bank: Bank, account: EncodedAccount | null, format: AccountFormat): unknown {
  if (account === null) return null;
  return {
    lamports: account.lamports,
    owner: account.programAddress,
    executable: account.executable,
    rentEpoch: RENT_EPOCH,
    space: account.data.length,
    data: dataView(bank, account, format),
  };
}

function dataView(bank: Bank, account: EncodedAccount, { encoding, slice }: AccountFormat): unknown {
  const whole = new Uint8Array(account.data);
  const parsed = encoding === 'jsonParsed' ? parsedData(bank, account) : null;
  if (parsed !== null) return parsed;
  const data = slice === null ? whole : whole.subarray(slice.offset, slice.offset + slice.length);
  switch (encoding) {
    case 'base58':
    case 'binary': {
      if (data.length > MAX_BASE58_BYTES)
        throw invalid(
          'Encoded binary (base 58) data should be less than 128 bytes, please use Base64 encoding.',
        );
      const text = getBase58Decoder().decode(data);
      return encoding === 'binary' ? text : [text, 'base58'];
    }
    case 'base64+zstd':
      return [zstdCompressSync(data).toString('base64'), encoding];
    default:
      // Like a node, shows data that cannot be parsed as base64.
      return [Buffer.from(data).toString('base64'), 'base64'];
  }
}

function parsedData(bank: Bank, account: EncodedAccount): unknown {
  const program = account.programAddress === TOKEN_PROGRAM ? 'spl-token' : 'spl-token-2022';
  const space = account.data.length;
  const mint = readMint(account);
  if (mint !== null) {
    const info = {
      mintAuthority: orNull(mint.mintAuthority),
      supply: mint.supply.toString(),
      decimals: mint.decimals,
      isInitialized: mint.isInitialized,
      freezeAuthority: orNull(mint.freezeAuthority),
    };
    return { program, parsed: { type: 'mint', info }, space };
  }
  const token = readToken(account);
  const mintAccount = token === null ? null : bank.account(token.mint);
  const itsMint = mintAccount === null ? null : readMint(mintAccount);
  if (token === null || itsMint === null) return null;
  const reserve = orNull(token.isNative);
  const delegate = orNull(token.delegate);
  const closeAuthority = orNull(token.closeAuthority);
  const info = {
    mint: token.mint,
    owner: token.owner,
    tokenAmount: uiTokenAmount(token.amount, itsMint.decimals),
    ...(delegate === null
      ? {}
      : { delegate, delegatedAmount: uiTokenAmount(token.delegatedAmount, itsMint.decimals) }),
    state: token.state === 2 ? 'frozen' : 'initialized',
    isNative: reserve !== null,
    ...(reserve === null ? {} : { rentExemptReserve: uiTokenAmount(reserve, itsMint.decimals) }),
    ...(closeAuthority === null ? {} : { closeAuthority }),
  };
  return { program, parsed: { type: 'account', info }, space };
}

function orNull<T>(option: Option<T>): T | null {
  return isSome(option) ? option.value : null;
}
