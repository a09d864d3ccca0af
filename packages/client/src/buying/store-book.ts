/** Keeps a book in a store of texts: one text with what was spent and what is open, and one for each purchase. */
import { isRecord, parsed, recordOf } from '../json.ts';
import type { Store } from '../store.ts';
import type { Book, Purchase, Send } from './book.ts';

/** None makes room for another: the same request would be paid a second time. */
const MAX_OPEN = 1_000;
/** The time for which a server keeps an answer, from when it was asked for last. */
const OPEN_FOR_MS = 24 * 3_600_000;
/** As long whoever else sends a purchase that was paid may go on. */
const PAID_FOR_MS = 10 * 60_000;
const KEPT_DAYS = 31;
/** Beside these the services of a day are counted together. */
const MAX_SERVICES = 300;
/** Named purchases with a key that are remembered: the server knows the others too. */
const MAX_KEPT_OF_KEYS = 500;
/** Those of wallets, which nobody else remembers: beyond that nothing is bought under a name. */
const MAX_KEPT_OF_WALLETS = 5_000;
const BOOK = 'farebox-book';
const nameOf = (request: string) => `farebox-purchase-${request}`;

interface OpenEntry {
  /** Null once its payment is not sent again. */
  request: string | null;
  service: string;
  micros: string;
  /** When it was opened or sent last. */
  sentMs: number;
  /** Until when it may be on its way. */
  untilMs: number;
  /** Until when its payment is good; null while nobody knows what became of it. */
  heldUntilMs: number | null;
}

/** What is kept in the one text. */
interface Pages {
  /** Micro-USD by day and service. */
  spent: Record<string, Record<string, string>>;
  /** By the id of the purchase. */
  open: Record<string, OpenEntry>;
  /** When each was paid, by the id of the purchase. */
  paid: Record<string, number>;
  /** Purchases whose payments are kept after their answers, and since when, by the id of the purchase. */
  kept: Record<string, Kept>;
}

interface Kept {
  request: string;
  atMs: number;
  /** Whether the server remembers it by its name. */
  ofKey: boolean;
}

/** A purchase as it is stored; `sends` are the times that its payment left and nobody knows yet what came of it. */
interface Stored {
  id: string;
  request: string;
  payment: string;
  micros: string;
  service: string;
  kept: boolean;
  sends: { id: string; untilMs: number }[];
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

/** A book whose writes happen one after another, in this process and, with `exclusively`, in all that share the store. */
export function storeBook(store: Store, nowMs: () => number): Book {
  let turn: Promise<unknown> = Promise.resolve();
  const atOnce: AtOnce = (work) => {
    const run = async () => {
      const pages = await readPages(store);
      let written = JSON.stringify(pages);
      const save = async () => {
        const text = JSON.stringify(pages);
        if (text !== written) await store.set(BOOK, text);
        written = text;
      };
      await tidy(store, pages, nowMs(), save);
      const result = await work(pages, save);
      await save();
      return result;
    };
    const next = turn.then(() => (store.exclusively === undefined ? run() : store.exclusively(run)));
    turn = next.catch(() => undefined);
    return next;
  };

  return {
    todayMicros: (service) => atOnce(async (pages) => sumOf(pages, nowMs(), service ?? null)),
    openFor: (request) =>
      atOnce(async (pages) => {
        const stored = await readPurchase(store, request);
        if (stored === null) {
          dropUnsent(pages, request);
          return null;
        }
        // Whoever settled it died before it was struck off, and before its answer was told: it may be asked for again.
        if (pages.open[stored.id] === undefined) keep(pages, stored, nowMs());
        return purchaseOf(stored);
      }),
    open: (purchase, { dayMicros, serviceMicros }) =>
      atOnce(async (pages, save) => {
        const known = await readPurchase(store, purchase.request);
        if (known !== null) return purchaseOf(known);
        const { micros, service = '' } = purchase;
        const isAbove =
          (dayMicros !== null && sumOf(pages, nowMs(), null) + micros > dayMicros) ||
          (serviceMicros !== null && sumOf(pages, nowMs(), service) + micros > serviceMicros);
        if (isAbove) return 'above';
        if (Object.keys(pages.open).length >= MAX_OPEN || isFullOfNames(pages, purchase)) return 'full';
        pages.open[purchase.id] = {
          request: purchase.request,
          service,
          micros: String(micros),
          sentMs: nowMs(),
          untilMs: 0,
          heldUntilMs: null,
        };
        // Counted first: a crash between the two counts too much, and never too little.
        await save();
        const kept = purchase.kept === true;
        try {
          await writePurchase(store, { ...purchase, micros: String(micros), service, kept, sends: [] });
        } catch (error) {
          // It is not sent, so it need not count, as far as a full store lets that be written.
          await store.delete(nameOf(purchase.request));
          delete pages.open[purchase.id];
          await save();
          throw error;
        }
        return purchase;
      }),
    ...sendsOf(store, atOnce, nowMs),
    ...endsOf(store, atOnce, nowMs),
  };
}

/** Does work with what is kept, and writes it down: at its end, and before where the order counts. */
type AtOnce = <T>(work: (pages: Pages, save: () => Promise<void>) => Promise<T>) => Promise<T>;

/** The writes about payments that leave. */
function sendsOf(
  store: Store,
  atOnce: AtOnce,
  nowMs: () => number,
): Pick<Book, 'sending' | 'denied' | 'lost'> {
  /** Changes the purchase that a payment left for, if it is still open. */
  const change = (id: string, { open }: Pages, edit: (stored: Stored) => void) =>
    changePurchase(store, open[id]?.request ?? null, edit);
  return {
    sending: (id, forMs) =>
      atOnce(async (pages) => {
        const send: Send = { id: crypto.randomUUID(), purchase: id };
        const entry = pages.open[id];
        const untilMs = nowMs() + forMs;
        if (entry !== undefined && entry.request !== null) {
          pages.open[id] = { ...entry, sentMs: nowMs(), untilMs, heldUntilMs: null };
          await change(id, pages, ({ sends }) => sends.push({ id: `${send.id}`, untilMs }));
          return send;
        }
        return pages.paid[id] === undefined && pages.kept[id] === undefined ? null : send;
      }),
    denied: (send) =>
      atOnce((pages) =>
        change(send.purchase, pages, (stored) => {
          stored.sends = stored.sends.filter(({ id }) => id !== send.id);
        }),
      ),
    lost: (send) =>
      atOnce((pages) =>
        change(send.purchase, pages, (stored) => {
          // Of those that were lost the last says all.
          const now = nowMs();
          const others = stored.sends.filter(({ id, untilMs }) => id !== send.id && untilMs > now);
          stored.sends = [...others, { id: `${send.id}`, untilMs: 0 }];
        }),
      ),
  };
}

/** The writes about how a purchase ends. */
function endsOf(store: Store, atOnce: AtOnce, nowMs: () => number): Pick<Book, 'settle' | 'giveUp'> {
  return {
    settle: ({ id, micros, service = '', request, payment, kept = false }, again) =>
      atOnce(async (pages, save) => {
        // Somebody else who sent the same purchase may have struck it off: as paid, or as failed before it was paid.
        const isKnown = pages.open[id] !== undefined;
        if (isKnown || !again) addSpent(pages, dayOf(nowMs()), service, micros);
        delete pages.open[id];
        const stored = await readPurchase(store, request);
        // Others are sending it still: they get the answer that was sold.
        if ((stored?.sends.length ?? 0) > 1) pages.paid[id] = nowMs();
        if (kept) keep(pages, { id, request, payment }, nowMs());
        else delete pages.kept[id];
        await dropOldNames(store, pages);
        await save();
        // Last, for whoever dies before has not told the answer: the same request is then asked for by the same payment.
        if (!kept) await store.delete(nameOf(request));
        else if (stored !== null)
          await writePurchase(store, { ...stored, micros: String(micros), sends: [] });
      }),
    giveUp: ({ id, purchase }, { outcome, endsAtMs }) =>
      atOnce(async (pages) => {
        const entry = pages.open[purchase];
        const request = entry === undefined ? pages.kept[purchase]?.request : entry.request;
        const stored = typeof request === 'string' ? await readPurchase(store, request) : null;
        if (stored === null) return true;
        if (entry === undefined) {
          // Its name stays bought; one without a name was settled, and is not there any more.
          if (!stored.kept) await store.delete(nameOf(stored.request));
          return true;
        }
        stored.sends = stored.sends.filter((each) => each.id !== id);
        // Another time that its payment left may have been paid for, after this one was denied.
        const mayBePaid = stored.sends.some(({ untilMs }) => outcome === 'uncharged' || untilMs > nowMs());
        if (mayBePaid) {
          await writePurchase(store, stored);
          return false;
        }
        if (endsAtMs === null) delete pages.open[purchase];
        // One that failed is asked with the same payment again; one that was refused is bought anew.
        else {
          const sentAgain = outcome === 'uncharged' ? entry.request : null;
          pages.open[purchase] = { ...entry, request: sentAgain, untilMs: 0, heldUntilMs: endsAtMs };
        }
        if (endsAtMs !== null && outcome === 'uncharged')
          await writePurchase(store, { ...stored, sends: [] });
        else await store.delete(nameOf(stored.request));
        return true;
      }),
  };
}

/** Strikes off what was counted by somebody who died before they wrote its payment down: it has never left. */
function dropUnsent({ open }: Pages, request: string): void {
  for (const [id, entry] of Object.entries(open))
    if (entry.request === request && entry.untilMs === 0 && entry.heldUntilMs === null) delete open[id];
}

const isOfKey = ({ payment }: Pick<Purchase, 'payment'>) => payment.includes('"farebox/idempotencyKey"');

function keep(pages: Pages, purchase: Pick<Purchase, 'id' | 'request' | 'payment'>, atMs: number): void {
  pages.kept[purchase.id] = { request: purchase.request, atMs, ofKey: isOfKey(purchase) };
}

function isFullOfNames({ kept }: Pages, purchase: Purchase): boolean {
  if (purchase.kept !== true || isOfKey(purchase)) return false;
  return Object.values(kept).filter(({ ofKey }) => !ofKey).length >= MAX_KEPT_OF_WALLETS;
}

async function dropOldNames(store: Store, { kept }: Pages): Promise<void> {
  const ofKeys = Object.entries(kept).filter(([, { ofKey }]) => ofKey);
  const old = ofKeys.sort(([, a], [, b]) => a.atMs - b.atMs).slice(0, -MAX_KEPT_OF_KEYS);
  for (const [id, { request }] of old) {
    delete kept[id];
    await store.delete(nameOf(request));
  }
}

/** Strikes off what is sent no more. It counts as spent on its last day: nobody but the server knows whether it was. */
async function tidy(store: Store, pages: Pages, now: number, save: () => Promise<void>): Promise<void> {
  for (const [id, { request, service, micros, sentMs, untilMs, heldUntilMs }] of Object.entries(pages.open)) {
    const isOver = heldUntilMs === null ? sentMs < now - OPEN_FOR_MS : heldUntilMs < now;
    if (!isOver || untilMs > now) continue;
    addSpent(pages, dayOf(heldUntilMs ?? sentMs), service, BigInt(micros));
    delete pages.open[id];
    await save();
    if (request !== null) await store.delete(nameOf(request));
  }
  for (const [id, atMs] of Object.entries(pages.paid)) if (atMs < now - PAID_FOR_MS) delete pages.paid[id];
  for (const [id, { request, atMs }] of Object.entries(pages.kept))
    if (atMs < now - OPEN_FOR_MS) {
      delete pages.kept[id];
      await store.delete(nameOf(request));
    }
  // Counted in days that have something, and never today's: a clock that is put right must not lose what was spent.
  const old = Object.keys(pages.spent).sort().slice(0, -KEPT_DAYS);
  for (const day of old) if (day !== dayOf(now)) delete pages.spent[day];
}

function sumOf({ spent, open }: Pages, now: number, service: string | null): bigint {
  const today = Object.entries(spent[dayOf(now)] ?? {}).map(([of, micros]) => ({ service: of, micros }));
  return [...today, ...Object.values(open)]
    .filter((each) => service === null || each.service === service)
    .reduce((sum, { micros }) => sum + BigInt(micros), 0n);
}

function addSpent({ spent }: Pages, day: string, service: string, micros: bigint): void {
  const ofDay = spent[day] ?? {};
  const name = Object.hasOwn(ofDay, service) || Object.keys(ofDay).length < MAX_SERVICES ? service : '';
  ofDay[name] = String(BigInt(ofDay[name] ?? '0') + micros);
  spent[day] = ofDay;
}

/** @throws Error when the store holds something else: what was spent is not forgotten for it */
async function readPages(store: Store): Promise<Pages> {
  const text = await store.get(BOOK);
  if (text === null || text === undefined) return { spent: {}, open: {}, paid: {}, kept: {} };
  const read = parsed(text);
  if (!isRecord(read) || ![read.spent, read.open, read.paid, read.kept].every(isRecord))
    throw new Error(`the store's ${BOOK} is damaged: nothing is bought with it`);
  return read as unknown as Pages;
}

async function readPurchase(store: Store, request: string): Promise<Stored | null> {
  const text = await store.get(nameOf(request));
  if (text === null || text === undefined) return null;
  const read = recordOf(parsed(text));
  if (read.request !== request || typeof read.payment !== 'string' || !Array.isArray(read.sends))
    throw new Error(`the store's ${nameOf(request)} is damaged: it may be paid for, and is not bought again`);
  return read as unknown as Stored;
}

async function writePurchase(store: Store, stored: Stored): Promise<void> {
  await store.set(nameOf(stored.request), JSON.stringify(stored));
}

async function changePurchase(
  store: Store,
  request: string | null,
  edit: (stored: Stored) => void,
): Promise<void> {
  const stored = request === null ? null : await readPurchase(store, request);
  if (stored === null) return;
  edit(stored);
  await writePurchase(store, stored);
}

const purchaseOf = ({ id, request, payment, micros, service, kept }: Stored): Purchase => ({
  id,
  request,
  payment,
  micros: BigInt(micros),
  service,
  kept,
});
