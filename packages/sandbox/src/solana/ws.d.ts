/** The part of `ws` that is used here: the package brings no types of its own. */
declare module 'ws' {
  import type { EventEmitter } from 'node:events';
  import type { IncomingMessage } from 'node:http';
  import type { Duplex } from 'node:stream';

  export class WebSocket extends EventEmitter {
    readonly bufferedAmount: number;
    readonly readyState: number;
    send(text: string): void;
    close(code: number, reason: string): void;
    terminate(): void;
    on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): this;
    on(event: 'close', listener: () => void): this;
    on(event: 'error', listener: (error: Error) => void): this;
  }

  export class WebSocketServer extends EventEmitter {
    readonly clients: ReadonlySet<WebSocket>;
    constructor(options: { noServer: true; maxPayload: number; perMessageDeflate: false });
    handleUpgrade(
      request: IncomingMessage,
      socket: Duplex,
      head: Buffer,
      accepted: (socket: WebSocket) => void,
    ): void;
    close(): void;
  }
}
