/** A wire to PostgreSQL that a test can cut. */
import { createServer, connect as dial, type Socket } from 'node:net';

/** Recognizes a statement on the wire by a value that it carries. */
export type Matching = (sent: string) => boolean;

/**
 * `statement lost`: cut before it reaches the database. `reply lost`: it has been carried out, and committed, when the
 * wire is cut before the first byte of its reply. `then silent`: it reaches the database, and the connection carries nothing
 * more and stays open.
 */
export type Cut = 'statement lost' | 'reply lost' | 'then silent';

export interface Wire {
  /** The database's address by way of this wire. */
  url: string;
  /** The next statements that match meet these, one each. */
  cutNext(matching: Matching, cuts: readonly Cut[]): void;
  /** How many of them have been met. */
  readonly met: number;
  /** How many connections are open. */
  readonly open: number;
  /** Cuts all connections now, and every new one until `mend`. @returns how many there were */
  cut(): number;
  mend(): void;
  /**
   * From now on the connections that are open carry nothing, in either direction, and stay open; new ones work.
   *
   * @param everybody new ones are taken, and carry nothing either
   */
  freeze(everybody?: 'new ones too'): void;
  /** Lets frozen connections go on where they stood. */
  thaw(): void;
  /** Takes connections again, and leaves what is planned as it is. */
  reconnect(): void;
  close(): Promise<void>;
}

/** The two ends of a connection that is carried. */
interface Pair {
  sockets: readonly [client: Socket, database: Socket];
  isFrozen: boolean;
  hasEnded: boolean;
  sever(): void;
}

export async function startWire(databaseUrl: string): Promise<Wire> {
  const target = new URL(databaseUrl);
  const open = new Set<() => void>();
  const pairs = new Set<Pair>();
  let isCut = false;
  let freezesNew = false;
  let met = 0;
  let planned: { matching: Matching; cut: Cut }[] = [];

  /** Freezes a connection by not reading it: both ends see a peer that is there and says nothing, not even that it has gone. */
  const freezeOne = (pair: Pair) => {
    pair.isFrozen = true;
    for (const socket of pair.sockets) socket.pause();
  };

  function carry(client: Socket): void {
    const database = dial(Number(target.port), target.hostname);
    const pair: Pair = {
      sockets: [client, database],
      isFrozen: false,
      hasEnded: false,
      sever: () => sever(),
    };
    pairs.add(pair);
    if (freezesNew) freezeOne(pair);
    const sever = () => {
      client.resetAndDestroy();
      database.destroy();
      open.delete(sever);
      pairs.delete(pair);
    };
    open.add(sever);
    let replyIsLost = false;
    client.on('data', (bytes) => {
      const sent = bytes.toString('latin1');
      const plan = planned[0]?.matching(sent) === true ? planned.shift() : undefined;
      if (plan !== undefined) met += 1;
      if (plan?.cut === 'statement lost') return sever();
      if (plan?.cut === 'reply lost') replyIsLost = true;
      database.write(bytes);
      if (plan?.cut === 'then silent') freezeOne(pair);
    });
    database.on('data', (bytes) => {
      if (replyIsLost) sever();
      else client.write(bytes);
    });
    const ended = () => {
      pair.hasEnded = true;
      if (!pair.isFrozen) sever();
    };
    for (const socket of pair.sockets) {
      socket.on('error', ended);
      socket.on('close', ended);
    }
  }

  const server = createServer((client) => {
    if (isCut) client.resetAndDestroy();
    else carry(client);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the wire has no port');
  const url = new URL(databaseUrl);
  url.hostname = '127.0.0.1';
  url.port = String(address.port);

  return {
    url: url.toString(),
    cutNext(matching, cuts) {
      planned = cuts.map((cut) => ({ matching, cut }));
      met = 0;
    },
    get met() {
      return met;
    },
    get open() {
      return open.size;
    },
    cut() {
      isCut = true;
      const connections = [...open];
      for (const sever of connections) sever();
      return connections.length;
    },
    mend() {
      isCut = false;
      planned = [];
    },
    freeze(everybody) {
      freezesNew = everybody !== undefined;
      for (const pair of pairs) freezeOne(pair);
    },
    thaw() {
      freezesNew = false;
      for (const pair of pairs) {
        pair.isFrozen = false;
        if (pair.hasEnded) pair.sever();
        else for (const socket of pair.sockets) socket.resume();
      }
    },
    reconnect() {
      isCut = false;
    },
    async close() {
      for (const sever of [...open]) sever();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
