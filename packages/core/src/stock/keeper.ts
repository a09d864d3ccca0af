/**
 * Keeps what is sold at the newest version that this process accepts: a version is made whole and checked, and only then put in force,
 * in one step. What is refused changes nothing, and says why.
 */
import type { FastifyBaseLogger } from 'fastify';
import type { Service } from '../service/define.ts';
import type { Shelf } from '../service/shelf.ts';
import { readRules, type ServiceRules } from './service-rule.ts';
import { type MadeStock, StockRefused, type StockSource } from './source.ts';
import type { Newest, Version, VersionStore } from './version-store.ts';

/** Older versions of the file that are tried when the newest one is refused. */
const MOST_OLDER_TRIED = 5;
/** Tables that were in force before the start and still count: prices that were named, and answers that were bought. */
const MOST_REPLAYED = 5;
const REPLAYED_MS = 86_400_000;

export interface KeeperParts {
  shelf: Shelf;
  source: StockSource;
  store: Pick<VersionStore, 'newest' | 'byNumber' | 'between' | 'list' | 'hasContent' | 'addFile'>;
  /** Why some part cannot sell these services; null: all can. */
  refuses(services: readonly Service[]): string | null;
  /** The name of this machine, which versions of its file are written down with. */
  host: string;
  logger: Pick<FastifyBaseLogger, 'info' | 'warn' | 'error'>;
  nowMs(): number;
}

/** A version that is not in force here, and why. */
export interface Refusal {
  /** Null: the file beside this process, which is no version. */
  readonly version: bigint | null;
  readonly reason: string;
  readonly atMs: number;
}

/** The contents that a table is made of. */
interface Contents {
  file: Version | null;
  rules: Version | null;
}

export class StockKeeper {
  readonly #parts: KeeperParts;
  #served: Contents = { file: null, rules: null };
  #made: Pick<MadeStock, 'fileRules'>;
  /** What the table in force is made of: at first of the file at the start. */
  #inForce: { file: string | null; rules: string | null };
  #refusedFile: Refusal | null = null;
  #refusedVersion: Refusal | null = null;
  /** The newest versions that were looked at last, whatever came of it. */
  #seen: Newest = { file: null, rules: null };
  #turn: Promise<unknown> = Promise.resolve();
  #waiting: Promise<void> | null = null;
  #fileState: string | null = null;
  #changingState: string | null = null;

  constructor(parts: KeeperParts) {
    this.#parts = parts;
    this.#made = parts.source;
    this.#inForce = { file: parts.source.file?.atStart ?? null, rules: null };
  }

  /** The versions in force here. */
  get served(): Newest {
    const { file, rules } = this.#served;
    return { file: file?.number ?? null, rules: rules?.number ?? null };
  }

  /** The newest versions, as they were seen last. */
  get newest(): Newest {
    return this.#seen;
  }

  /** What is refused here; null: nothing is. */
  get refusal(): Refusal | null {
    return this.#refusedFile ?? this.#refusedVersion;
  }

  /** The rules of the file that are in force. */
  get fileRules(): ServiceRules {
    return this.#made.fileRules;
  }

  /** The operators' rules that are in force. */
  get rules(): ServiceRules {
    return readRules(this.#inForce.rules);
  }

  /**
   * Begins: what was in force lately counts as it did, the file at the start becomes a version if it is news, and the newest versions
   * come in force.
   */
  start(): Promise<void> {
    return this.#inTurn(async () => {
      const { source } = this.#parts;
      this.#fileState = source.file?.stateAtStart ?? null;
      await this.#replay();
      if (source.file !== null) await this.#beginWith(source.file.atStart);
      await this.#follow();
    });
  }

  /** Reads the file anew, and has its content in force everywhere if it is accepted. Never throws: a refusal is written down. */
  reload(why: string): Promise<void> {
    // One that waits reads the file as it is then, for all who asked meanwhile.
    this.#waiting ??= this.#inTurn(() => {
      this.#waiting = null;
      return this.#reload(why);
    });
    return this.#waiting;
  }

  /** Looks whether there is a newer version, and puts it in force. */
  follow(): Promise<void> {
    return this.#inTurn(() => this.#follow());
  }

  /** Reads the file anew when it has changed, and has not changed again since the look before. */
  async watch(): Promise<void> {
    const state = (await this.#parts.source.file?.state()) ?? null;
    const isSettled = state !== null && state === this.#changingState;
    this.#changingState = state;
    if (isSettled && state !== this.#fileState) await this.reload('a change of the file');
  }

  /** @throws StockRefused when these rules could not come in force here */
  assertAcceptable(rules: ServiceRules): void {
    this.#make(this.#inForce.file, rules);
  }

  /** One at a time, in the order of being asked. */
  #inTurn(work: () => Promise<void>): Promise<void> {
    const run = this.#turn.then(work);
    this.#turn = run.catch(() => {});
    return run;
  }

  async #reload(why: string): Promise<void> {
    const { source, store, host, logger } = this.#parts;
    const { file } = source;
    if (file === null) return;
    try {
      const state = await file.state();
      const content = await file.read();
      this.#fileState = state;
      this.#make(content, this.rules);
      const isNews = content !== this.#inForce.file;
      await store.addFile(content, `${why} on ${host}`);
      this.#refusedFile = null;
      if (!isNews) logger.info({ file: file.name }, 'the configuration is as it was');
      await this.#follow();
    } catch (error) {
      this.#refusedFile = this.#refuse(null, error);
    }
  }

  async #beginWith(content: string): Promise<void> {
    const { source, store, host, logger } = this.#parts;
    const newest = await store.newest();
    const last = newest.file === null ? null : await store.byNumber(newest.file);
    const isNews = last === null || !(await store.hasContent('file', content));
    // A file that was changed since is meant, also when an earlier version was the same. One that is older was left behind.
    const changedAtMs = (await source.file?.changedAtMs()) ?? null;
    if (isNews || (changedAtMs !== null && changedAtMs > last.madeAtMs)) {
      await store.addFile(content, `a start on ${host}`);
      return;
    }
    if (last.content !== content)
      logger.warn(
        { version: String(last.number) },
        'the configuration file is an older version: the newest one is served. Change the file, or send SIGHUP, to have it served',
      );
  }

  async #follow(): Promise<void> {
    const { store, source } = this.#parts;
    const found = await store.newest();
    const newest: Newest = source.file === null ? { ...found, file: null } : found;
    if (newest.file === this.#seen.file && newest.rules === this.#seen.rules) return;
    const file = newest.file === null ? null : await store.byNumber(newest.file);
    const rules = newest.rules === null ? null : await store.byNumber(newest.rules);
    const error = this.#attempt({ file, rules });
    if (error === null) {
      this.#refusedVersion = null;
      // A version that came after it is in force. The file beside this process says what is wrong with it when it is read again.
      if (newest.file !== this.#seen.file) this.#refusedFile = null;
    } else {
      const isFileNews = file !== null && file.number !== this.#served.file?.number;
      this.#refusedVersion = this.#refuse((isFileNews ? file : rules)?.number ?? null, error);
      if (isFileNews) await this.#fallBack(file, rules);
    }
    this.#seen = newest;
  }

  /** Puts the newest table in force that is accepted, where the newest version of the file is not. */
  async #fallBack(refused: Version, rules: Version | null): Promise<void> {
    const { store } = this.#parts;
    const above = this.#served.file?.number ?? null;
    for (const { number } of await store.between(above, refused.number, MOST_OLDER_TRIED)) {
      const older = await store.byNumber(number);
      if (older !== null && this.#attempt({ file: older, rules }) === null) return;
    }
    if (this.#served.file === null) return;
    const error = this.#attempt({ file: this.#served.file, rules });
    if (error === null) return;
    if (rules !== null && rules.number !== this.#served.rules?.number)
      this.#refusedVersion = this.#refuse(rules.number, error);
    this.#attempt({ file: refused, rules: this.#served.rules });
  }

  /** @returns why it is refused; null: it is in force */
  #attempt(contents: Contents): unknown {
    const { logger, source } = this.#parts;
    const file = contents.file?.content ?? source.file?.atStart ?? null;
    const rules = contents.rules?.content ?? null;
    try {
      if (file !== this.#inForce.file || rules !== this.#inForce.rules) this.#enter({ file, rules });
    } catch (error) {
      return error;
    }
    this.#served = contents;
    const { served } = this;
    const shown = (number: bigint | null) => (number === null ? null : String(number));
    logger.info(
      { file: shown(served.file), rules: shown(served.rules) },
      'this version of what is sold is in force',
    );
    return null;
  }

  /** @throws StockRefused */
  #enter({ file, rules }: { file: string | null; rules: string | null }, replacedAtMs?: number): void {
    const made = this.#make(file, readRules(rules));
    made.enter();
    this.#parts.shelf.put(made.stock, replacedAtMs);
    this.#made = made;
    this.#inForce = { file, rules };
  }

  #make(file: string | null, rules: ServiceRules): MadeStock {
    const { source, refuses } = this.#parts;
    const made = source.make(file, rules);
    const refused = refuses(made.stock.services);
    if (refused !== null) throw new StockRefused(refused);
    return made;
  }

  #refuse(version: bigint | null, error: unknown): Refusal {
    const { logger, nowMs, source } = this.#parts;
    const isKnown = error instanceof StockRefused;
    const reason = isKnown ? error.message : 'an unexpected fault, which the log tells';
    const named = version === null ? { file: source.file?.name } : { version: String(version) };
    logger.error(
      { ...named, ...(isKnown ? { problems: reason.split('\n') } : { err: error }) },
      'a configuration is refused: what was sold before is still sold',
    );
    return { version, reason, atMs: nowMs() };
  }

  /** Has tables count that were in force within the last day: their prices were named, and their answers bought. */
  async #replay(): Promise<void> {
    const { store, source, nowMs } = this.#parts;
    const lately = (await store.list(null)).filter(({ kind }) => kind === 'rules' || source.file !== null);
    const stood = lately.filter((_each, index) => {
      const replaced = lately[index - 1];
      return replaced === undefined || replaced.madeAtMs > nowMs() - REPLAYED_MS;
    });
    if (stood.length < 2) return;
    const contentOf = async (kind: Version['kind'], upTo: bigint) => {
      const head = lately.find((each) => each.kind === kind && each.number <= upTo);
      return head === undefined ? null : ((await store.byNumber(head.number))?.content ?? null);
    };
    // The table at the start stands in front of the oldest one, and was not sold then.
    let replacedAtMs = 0;
    for (const { number, madeAtMs } of stood.slice(0, MOST_REPLAYED).reverse()) {
      const file = (await contentOf('file', number)) ?? source.file?.atStart ?? null;
      const rules = await contentOf('rules', number);
      try {
        this.#enter({ file, rules }, replacedAtMs === 0 ? 0 : madeAtMs);
        replacedAtMs = madeAtMs;
      } catch {
        // What was sold then cannot be made any more. What is sold now does not depend on it.
      }
    }
  }
}
