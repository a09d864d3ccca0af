/** The part of autocannon that is used here; the package ships no types. */
declare module 'autocannon' {
  import type { EventEmitter } from 'node:events';

  interface Options {
    url: string;
    connections: number;
    /** Seconds. */
    duration?: number;
    /** Requests in all, instead of a duration. */
    amount?: number;
    /** Milliseconds between looks at the clock. */
    sampleInt?: number;
    requests: readonly Request[];
  }
  interface Request {
    method: string;
    path: string;
    headers: Record<string, string>;
    body: string;
    /** Called for every request with the request as configured here; its return value is sent. */
    setupRequest?: (request: Request) => Request;
  }
  /** Resolves at the end; emits `response` (client, status, bytes, milliseconds) and `reqError` (error). */
  function autocannon(options: Options): EventEmitter & PromiseLike<unknown>;
  export default autocannon;
}
