/** The websocket side of the node: notifies subscribers of slots that pass and of transactions that land. */
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Bank } from './bank.ts';
import type { LandedTransaction } from './history.ts';
import { answerText, methodNotFound, type RpcCall, RpcError, toJson } from './json-rpc.ts';
import { type Commitment, commitmentOf, configAt, integerAt, invalid } from './params.ts';
import { slotAt, withContext } from './rpc/method.ts';
import { toSignature } from './rpc/transactions.ts';
import { FINAL_AFTER_SLOTS, SLOT_MS } from './slots.ts';

const MAX_CONNECTIONS = 256;
const MAX_SUBSCRIPTIONS = 256;
const MAX_MESSAGE_BYTES = 256 * 1024;
/** A client that does not read its messages is disconnected. */
const MAX_UNREAD_BYTES = 1024 * 1024;
const TRY_AGAIN_LATER = 1013;

interface SignatureSubscription {
  signature: string;
  commitment: Commitment;
}

interface Connection {
  socket: WebSocket;
  slots: Set<number>;
  signatures: Map<number, SignatureSubscription>;
}

export interface Subscriptions {
  stop(): void;
}

/** Serves websockets on the port of this server. */
export function serveSubscriptions(server: Server, bank: Bank): Subscriptions {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
  });
  const connections = new Set<Connection>();
  let lastId = 0;
  let toldSlot = bank.clock.slot();
  let timer: NodeJS.Timeout | null = null;

  server.on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    stream.on('error', () => stream.destroy());
    sockets.handleUpgrade(request, stream, head, open);
  });
  bank.onChange(tell);

  function open(socket: WebSocket): void {
    const connection: Connection = { socket, slots: new Set(), signatures: new Map() };
    // A frame that breaks the protocol closes the connection; nothing else has to be done.
    socket.on('error', () => socket.terminate());
    if (connections.size >= MAX_CONNECTIONS) {
      socket.close(TRY_AGAIN_LATER, 'too many connections');
      return;
    }
    connections.add(connection);
    socket.on('close', () => {
      connections.delete(connection);
      runTimerIfNeeded();
    });
    socket.on('message', (data) => void answer(connection, data.toString('utf8')));
  }

  async function answer(connection: Connection, text: string): Promise<void> {
    const reply = await answerText(text, (call) => subscribe(connection, call));
    if (reply !== null) send(connection, reply);
    // Notifications come after the reply: a client cannot assign one before it knows the subscription's number.
    tell();
    runTimerIfNeeded();
  }

  function subscribe(connection: Connection, { method, params }: RpcCall): unknown {
    const { slots, signatures } = connection;
    switch (method) {
      case 'slotSubscribe': {
        const id = nextId(connection);
        slots.add(id);
        return id;
      }
      case 'signatureSubscribe': {
        const subscription = {
          signature: toSignature(params[0]),
          commitment: commitmentOf(configAt(params, 1)),
        };
        const id = nextId(connection);
        signatures.set(id, subscription);
        return id;
      }
      case 'slotUnsubscribe':
        return removed(slots.delete(integerAt(params, 0, Number.MAX_SAFE_INTEGER)));
      case 'signatureUnsubscribe': {
        const id = integerAt(params, 0, Number.MAX_SAFE_INTEGER);
        // A subscription ends with its only notification. To unsubscribe after that is no error.
        return removed(signatures.delete(id) || id <= lastId);
      }
      default:
        throw methodNotFound();
    }
  }

  function nextId({ slots, signatures }: Connection): number {
    if (slots.size + signatures.size >= MAX_SUBSCRIPTIONS)
      throw new RpcError(-32604, `at most ${MAX_SUBSCRIPTIONS} subscriptions on a connection`);
    lastId += 1;
    return lastId;
  }

  /** Sends every notification that is due. */
  function tell(): void {
    const slot = bank.clock.slot();
    const isNew = slot > toldSlot;
    toldSlot = slot;
    for (const connection of connections) {
      if (isNew)
        for (const id of connection.slots)
          notify(connection, 'slotNotification', id, {
            parent: slot - 1,
            root: slot - FINAL_AFTER_SLOTS,
            slot,
          });
      for (const [id, { signature, commitment }] of connection.signatures) {
        const landed: LandedTransaction | undefined = bank.history.bySignature(signature);
        if (landed === undefined || landed.slot > slotAt(bank, commitment)) continue;
        connection.signatures.delete(id);
        notify(connection, 'signatureNotification', id, withContext(landed.slot, { err: landed.err }));
      }
    }
  }

  /** A timer runs only while a client waits for a notification. */
  function runTimerIfNeeded(): void {
    const isNeeded = [...connections].some(({ slots, signatures }) => slots.size + signatures.size > 0);
    if (isNeeded && timer === null) timer = setInterval(tell, SLOT_MS).unref();
    if (!isNeeded && timer !== null) {
      clearInterval(timer);
      timer = null;
    }
  }

  return {
    stop() {
      if (timer !== null) clearInterval(timer);
      for (const { socket } of connections) socket.terminate();
      sockets.close();
    },
  };
}

function notify(connection: Connection, method: string, subscription: number, result: unknown): void {
  send(connection, toJson({ jsonrpc: '2.0', method, params: { subscription, result } }));
}

function send({ socket }: Connection, text: string): void {
  if (socket.bufferedAmount > MAX_UNREAD_BYTES) socket.terminate();
  else socket.send(text);
}

function removed(wasThere: boolean): true {
  if (!wasThere) throw invalid('Invalid subscription id.');
  return true;
}
