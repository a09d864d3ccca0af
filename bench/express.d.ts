/** The part of Express that is used here; the package ships no types. */
declare module 'express' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

  export interface Request extends IncomingMessage {
    body?: unknown;
  }
  export interface Response extends ServerResponse {
    json(body: unknown): this;
  }
  export type NextFunction = (error?: unknown) => void;
  type Handler = (request: Request, response: Response, next: NextFunction) => unknown;
  interface Express extends RequestListener {
    use(handler: Handler): this;
    post(path: string, handler: Handler): this;
  }
  function express(): Express;
  namespace express {
    function json(): Handler;
  }
  export default express;
}
