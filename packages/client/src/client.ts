/** A client of a Farebox: it asks, pays and gets the answer, and buys nothing twice. */
import { addressIn, addressOf } from './address.ts';
import { type Bought, type Buyer, createBuyer } from './buying/buyer.ts';
import { AnswerLost, type Door, Refused } from './buying/door.ts';
import { storeBook } from './buying/store-book.ts';
import { FareboxError } from './errors.ts';
import { addressBelow, ask, type HttpAnswer, type HttpCall, httpDoor } from './http.ts';
import { recordOf, textOf } from './json.ts';
import { inUsd } from './money.ts';
import { keyPayer, type Payer, type Wallet, walletPayer } from './payer.ts';
import { type Receipt, readReceipts, receiptKeeper, receiptOf } from './receipt.ts';
import type { Services } from './services.ts';
import { shownText } from './shown-text.ts';
import { memoryStore, type Store } from './store.ts';
import { thrownFor } from './thrown.ts';

const READ_TIMEOUT_MS = 20_000;
/** A wallet pays no more than this without being told to. */
const USUAL_WALLET_LIMITS = { maxCallMicros: 1_000_000n, maxDayMicros: 10_000_000n };
const LIMITS_WORDS = 'Raise the limits of the client, or give it an approve callback.';
/** The refusals of a key after which a wallet may pay: nothing was charged, and the key cannot pay. */
const KEY_CANNOT_PAY: ReadonlySet<string> = new Set([
  'API_KEY_EXPIRED',
  'API_KEY_INVALID',
  'API_KEY_REVOKED',
  'INSUFFICIENT_CREDITS',
]);

/** The question of the client before a call that is above a limit. */
export interface Approval {
  service: string;
  input: Record<string, unknown>;
  micros: bigint;
  /** The price and the limit in words. */
  question: string;
}

/** The most that calls may cost without asking, in micro-USD (1 USD = 1,000,000). */
export interface SpendingLimits {
  maxCallMicros?: bigint;
  /** For all calls of a day (UTC). */
  maxDayMicros?: bigint;
  /** For the calls of one service in a day, by the service's name. */
  maxServiceMicros?: Readonly<Record<string, bigint>>;
}

export interface FareboxOptions {
  /** The address of the Farebox; that of `FAREBOX_URL` of the environment unless given, or the one of this machine at `PORT`. */
  url?: string | undefined;
  /** Pays first. */
  apiKey?: string | undefined;
  /** Pay where there is no key, or where it has too little credit: from `farebox/x402` and `farebox/mpp`. */
  wallets?: readonly Wallet[];
  /** Where purchases are kept until they are answered; they are forgotten with the process unless given. */
  store?: Store;
  /** 1 USD for a call and 10 USD for a day where wallets pay; none where a key pays, unless given. */
  limits?: SpendingLimits;
  /** Decides about a call that is above a limit; without it such a call is refused. */
  approve?(asked: Approval): boolean | Promise<boolean>;
  /** Told of each purchase, and of each time that a payment is sent again. */
  log?(line: string): void;
  fetch?: typeof fetch;
  nowMs?(): number;
}

export interface CallOptions {
  /**
   * The caller's own name for the purchase: 1 to 255 printable characters without spaces. The same name is the same purchase, also after
   * its answer. Without it the same question is one purchase until it is answered.
   */
  id?: string;
  signal?: AbortSignal;
}

export interface Purchased<Output> {
  output: Output;
  /** Null for a call that was free. */
  receipt: Receipt | null;
}

/** The inputs and answers of services by their names: those that Farebox ships with, unless another type is given. */
export type ServiceTypes = { [name: string]: { in: object; out: unknown } };

export interface Farebox<Known = Services> {
  /** The address that it buys from. */
  readonly url: string;
  /**
   * Buys one call.
   *
   * @returns its answer
   * @throws FareboxError
   */
  call<Name extends keyof Known & string>(
    service: Name,
    ...rest: Arguments<Known[Name]>
  ): Promise<Known[Name] extends { out: infer Output } ? Output : unknown>;
  /** The same, with its receipt. */
  buy<Name extends keyof Known & string>(
    service: Name,
    ...rest: Arguments<Known[Name]>
  ): Promise<Purchased<Known[Name] extends { out: infer Output } ? Output : unknown>>;
  /** Buys from a route by its method and path, such as one of a shop's own. */
  request(
    route: { method?: string; path: string },
    input?: Record<string, unknown>,
    options?: CallOptions,
  ): Promise<Purchased<unknown>>;
  /** Tells the price of a call with this input, which costs nothing. */
  price(
    service: string,
    input?: Record<string, unknown>,
    options?: CallOptions,
  ): Promise<{ micros: bigint; usd: string }>;
  /** Finds services by words; all of them without words. */
  search(
    words?: string,
    options?: { limit?: number; signal?: AbortSignal },
  ): Promise<Record<string, unknown>[]>;
  /** Reads a free address of the server, such as `/api/keys/me`. */
  read(path: string, options?: { signal?: AbortSignal }): Promise<unknown>;
  /** The newest receipts of this store, the newest first. */
  receipts(): Promise<Receipt[]>;
  /** Asks the server what became of a wallet's payment. @returns the receipt with what does not agree */
  check(receipt: Receipt): Promise<Receipt>;
  /** The cost of today's answers (UTC) in micro-USD, and what open purchases may still cost. */
  spentToday(service?: string): Promise<bigint>;
}

/** An input may be left out where none of its fields is required. */
type Arguments<Service> = Service extends { in: infer Input }
  ? object extends Input
    ? [input?: Input, options?: CallOptions]
    : [input: Input, options?: CallOptions]
  : [input?: Record<string, unknown>, options?: CallOptions];

/** A client as all its methods know it. */
interface Till {
  url: string;
  door: Door<HttpCall, HttpAnswer>;
  store: Store;
  fetch: typeof fetch;
  apiKey: string | null;
  nowMs(): number;
  /** Those that pay, the first one first. */
  buyers(): Promise<Buyer<HttpCall, HttpAnswer>[]>;
  book: ReturnType<typeof storeBook>;
  /** The receipt of an answer, which is the same one however often it is asked for. */
  receiptFor(call: HttpCall, answer: HttpAnswer, micros: bigint): Receipt | null;
  approve: FareboxOptions['approve'];
  log(line: string): void;
}

/**
 * Opens a client.
 *
 * @throws TypeError when something would be paid to an address that others can read along, or by a page that is not secure
 */
export function createFarebox<Known = Services>(options: FareboxOptions = {}): Farebox<Known> {
  const till = tillOf(options);
  const buy = async (route: HttpCall['route'], service: string, input: object = {}, call: CallOptions = {}) =>
    buyOne(till, callOf(till, { route, service, input, options: call }));
  return {
    url: till.url,
    call: async (service, ...[input, call]) =>
      (await buy(null, service, input as object | undefined, call)).output as never,
    buy: (service, ...[input, call]) => buy(null, service, input as object | undefined, call) as never,
    request: ({ method = 'POST', path }, input, call) =>
      buy({ method: method.toUpperCase(), path }, `${method.toUpperCase()} ${path}`, input, call),
    price: async (service, input = {}, call = {}) =>
      priceOf(till, callOf(till, { route: null, service, input, options: call })),
    search: (words = '', { limit = 20, signal } = {}) => search(till, { words, limit, signal }),
    read: (path, { signal } = {}) => read(till, path, signal),
    receipts: () => readReceipts(till.store),
    check: (receipt) => check(till, receipt),
    spentToday: async (service) => till.book.todayMicros(service),
  };
}

function tillOf(options: FareboxOptions): Till {
  const { wallets = [], store = memoryStore(), log = () => {}, nowMs = Date.now } = options;
  const apiKey = options.apiKey === undefined ? null : keyIn(options.apiKey);
  const pays = apiKey !== null || wallets.length > 0;
  const url = addressOf(options.url || addressIn(environment()), pays);
  // Browsers keep it from pages that others on the way could have changed.
  if (pays && globalThis.crypto?.subtle === undefined)
    throw new TypeError('a browser buys from a secure page alone: one of https, or of this machine');
  const fetches = options.fetch ?? ((input, init) => fetch(input, init));
  const door = httpDoor({ url, apiKey, ways: wallets.map(({ way }) => way), fetch: fetches });
  const book = storeBook(store, nowMs);
  let opened: Promise<Buyer<HttpCall, HttpAnswer>[]> | null = null;
  const keepReceipt = receiptKeeper(store);
  const receipts = new WeakMap<HttpAnswer, Receipt | null>();
  const receiptFor: Till['receiptFor'] = ({ service }, answer, micros) => {
    const receipt = receipts.get(answer) ?? receiptOf(answer, { service, url, nowMs: nowMs(), micros });
    receipts.set(answer, receipt);
    return receipt;
  };
  const answered = async (call: HttpCall, answer: HttpAnswer, micros: bigint) => {
    const receipt = receiptFor(call, answer, micros);
    if (receipt !== null) await keepReceipt(receipt).catch(() => log('the receipt could not be kept'));
  };
  const common = { door, book: () => book, limitsWords: LIMITS_WORDS, url, nowMs, log, answered };
  const open = async () => {
    const payers: Payer[] = [
      ...(apiKey === null ? [] : [await keyPayer(apiKey)]),
      ...(wallets.length === 0 ? [] : [walletPayer(wallets)]),
    ];
    return payers.map((payer) => {
      const usual = payer.apiKey === null ? USUAL_WALLET_LIMITS : { maxCallMicros: null, maxDayMicros: null };
      const limits = { ...usual, ...options.limits };
      return createBuyer({ ...common, payer, limits, asksPrice: options.limits !== undefined });
    });
  };
  return {
    url,
    door,
    store,
    fetch: fetches,
    apiKey,
    book,
    receiptFor,
    approve: options.approve,
    nowMs,
    log,
    buyers: () => (opened ??= open()),
  };
}

/** Reads a key, which may be a line of a file. @throws TypeError without the key, when no header can carry it */
function keyIn(text: string): string {
  const key = text.trim();
  if (!/^[\x21-\x7e]{1,400}$/.test(key))
    throw new TypeError('the apiKey must be an API key: printable characters without spaces');
  return key;
}

/** Empty in a browser. */
function environment(): Readonly<Record<string, string | undefined>> {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env ?? {};
}

interface Asked {
  route: HttpCall['route'];
  service: string;
  input: object;
  options: CallOptions;
}

/** @throws TypeError for what is no name of a service, no method, no path, or no input */
function callOf({ approve, url }: Till, { route, service, input, options }: Asked): HttpCall {
  const { id = null, signal = new AbortController().signal } = options;
  if (id !== null && !/^[\x21-\x7e]{1,255}$/.test(id))
    throw new TypeError('the id of a purchase has 1 to 255 printable characters without spaces');
  if (route === null && !/^[A-Za-z0-9][\w-]{0,99}$/.test(service))
    throw new TypeError('the name of a service has letters, digits, - and _');
  if (route !== null && !/^[A-Z]{1,20}$/.test(route.method)) throw new TypeError('a method has letters');
  if (route !== null) addressBelow(url, route.path);
  // As it is sent: a field that is undefined is left out, and a Date is its text.
  const sent = recordOf(JSON.parse(JSON.stringify(input)));
  return {
    route,
    service,
    input: sent,
    named: id,
    signal,
    confirm: async (question, micros) => {
      if (approve === undefined) return 'cannot';
      const said = await untilLeft(signal, approve({ service, input: sent, micros, question }));
      return said === true ? 'yes' : 'no';
    },
  };
}

/** Waits for somebody who may never answer, and no longer than the caller does. @throws the signal's reason */
async function untilLeft<T>(signal: AbortSignal, answer: T | Promise<T>): Promise<T> {
  let leave = () => {};
  const left = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason);
    signal.addEventListener('abort', leave);
  });
  try {
    return await Promise.race([answer, left]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

async function buyOne(till: Till, call: HttpCall): Promise<Purchased<unknown>> {
  call.signal.throwIfAborted();
  const [first, ...others] = await till.buyers();
  if (first === undefined) return soldTo(till, call, await unpaid(till, call));
  let bought = await tried(till, call, first);
  for (const buyer of others) {
    if (!cannotPay(bought)) break;
    till.log(`the key cannot pay for ${call.service}: a wallet does`);
    bought = await tried(till, call, buyer);
  }
  return soldTo(till, call, bought);
}

/** Whether the server has said for good that the key cannot pay. A key that was sent before, and not heard of, may have paid. */
function cannotPay(bought: Bought<HttpAnswer>): boolean {
  if (bought.kind !== 'answer' || bought.answer.status !== 402 || !bought.isFirst) return false;
  return KEY_CANNOT_PAY.has(thrownFor(bought, null).code);
}

/** @throws FareboxError the signal's reason */
async function tried(
  till: Till,
  call: HttpCall,
  buyer: Buyer<HttpCall, HttpAnswer>,
): Promise<Bought<HttpAnswer>> {
  try {
    return await buyer.buy(call);
  } catch (error) {
    call.signal.throwIfAborted();
    if (error instanceof AnswerLost || error instanceof Refused)
      throw new FareboxError({ code: 'SERVER_AWAY', message: error.message, charged: false, cause: error });
    throw new FareboxError({
      code: 'CANNOT_BUY',
      message: `${call.service} could not be bought: ${error instanceof Error ? error.message : 'it failed'}`,
      charged: (await isOpenOrUnknown(buyer, call)) ? 'unknown' : false,
      docUrl: docUrlOf(till, call),
      cause: error,
    });
  }
}

const isOpenOrUnknown = (buyer: Buyer<HttpCall, HttpAnswer>, call: HttpCall) =>
  buyer.isOpen(call).catch(() => true);

async function unpaid({ door }: Till, call: HttpCall): Promise<Bought<HttpAnswer>> {
  try {
    return { kind: 'answer', answer: await door.askPrice(call), isFirst: true, micros: 0n };
  } catch (error) {
    call.signal.throwIfAborted();
    const message = `The server does not answer: ${error instanceof Error ? error.message : 'it failed'}`;
    return { kind: 'refusal', code: 'SERVER_AWAY', message, charged: false };
  }
}

/** @throws FareboxError for anything but an answer */
function soldTo(till: Till, call: HttpCall, bought: Bought<HttpAnswer>): Purchased<unknown> {
  if (bought.kind !== 'answer' || bought.answer.status < 200 || bought.answer.status >= 300)
    throw thrownFor(bought, docUrlOf(till, call));
  const { answer } = bought;
  return { output: answer.body, receipt: till.receiptFor(call, answer, bought.micros) };
}

const docUrlOf = ({ url }: Till, { route, service }: HttpCall): string =>
  route === null ? `${url}/docs/${encodeURIComponent(service)}` : `${url}/docs`;

async function priceOf(till: Till, call: HttpCall): Promise<{ micros: bigint; usd: string }> {
  const asked = await unpaid(till, call);
  const micros = asked.kind === 'answer' ? (asked.answer.terms?.priceMicros ?? null) : null;
  if (micros !== null) return { micros, usd: inUsd(micros) };
  if (asked.kind === 'answer' && asked.answer.status < 300) return { micros: 0n, usd: '0.00' };
  throw thrownFor(asked, docUrlOf(till, call));
}

async function search(
  till: Till,
  { words, limit, signal }: { words: string; limit: number; signal: AbortSignal | undefined },
): Promise<Record<string, unknown>[]> {
  const query = new URLSearchParams(words === '' ? {} : { q: words, limit: String(limit) });
  const { services } = recordOf(await read(till, `/x402/catalog?${query}`, signal));
  return Array.isArray(services) ? services.map(recordOf) : [];
}

async function read(till: Till, path: string, signal = new AbortController().signal): Promise<unknown> {
  addressBelow(till.url, path);
  const headers: Record<string, string> = till.apiKey === null ? {} : { 'x-api-key': till.apiKey };
  const question = { method: 'GET', path, headers, timeoutMs: READ_TIMEOUT_MS, signal };
  const answer = await ask(till, question).catch((error: Error) => {
    signal.throwIfAborted();
    const message = `The server does not answer: ${error.message}`;
    throw new FareboxError({ code: 'SERVER_AWAY', message, charged: false, cause: error });
  });
  if (answer.status < 200 || answer.status >= 300)
    throw thrownFor({ kind: 'answer', answer, isFirst: true, micros: 0n }, null);
  return answer.body;
}

async function check(till: Till, receipt: Receipt): Promise<Receipt> {
  if (receipt.paidBy === 'key' || receipt.callId === null) return receipt;
  const said = recordOf(await read(till, `/x402/receipts/${encodeURIComponent(receipt.callId)}`));
  const doubts = [...receipt.doubts];
  if (said.id !== receipt.callId) doubts.push('the server tells of another call');
  if (said.status !== 'delivered')
    doubts.push(`the server says ${shownText(textOf(said.status)).slice(0, 40)}`);
  const units = textOf(said.amountUnits);
  if (!/^\d{1,15}$/.test(units) || inUsd(BigInt(units)) !== receipt.amountUsd)
    doubts.push('the server names another amount');
  if (receipt.transaction !== null && said.transaction !== receipt.transaction)
    doubts.push('the server names another transaction');
  if (receipt.network !== null && said.network !== receipt.network)
    doubts.push('the server names another network');
  return { ...receipt, doubts };
}
