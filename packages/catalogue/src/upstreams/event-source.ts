import { InvalidReply } from './wire-errors.ts';

const LINE_END = /\r\n|\n|\r/;

/**
 * Reads server-sent events (WHATWG HTML, 9.2) and yields the data of each. Names, ids and comments are ignored. A last
 * event without the blank line that ends it is dropped, as the standard requires.
 *
 * @param bounds in bytes, for the whole stream and for one event
 * @throws InvalidReply above a bound, and for text that is not UTF-8
 */
export async function* readEvents(
  pieces: AsyncIterable<Uint8Array>,
  { maxBytes, maxEventBytes }: { maxBytes: number; maxEventBytes: number },
): AsyncGenerator<string, void> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let size = 0;
  let rest = '';
  let data: string[] = [];
  let eventBytes = 0;
  for await (const piece of pieces) {
    size += piece.length;
    eventBytes += piece.length;
    if (size > maxBytes) throw new InvalidReply(`a stream of more than ${maxBytes} bytes`);
    rest += decoded(decoder, piece);
    // A carriage return at the end may be the first half of a line end.
    const held = rest.endsWith('\r') ? 1 : 0;
    const lines = rest.slice(0, rest.length - held).split(LINE_END);
    rest = (lines.pop() ?? '') + rest.slice(rest.length - held);
    for (const line of lines) {
      if (line === '' && data.length > 0) {
        yield data.join('\n');
        data = [];
      } else if (line.startsWith('data:')) data.push(line.slice(line.startsWith('data: ') ? 6 : 5));
      if (line === '') eventBytes = 0;
    }
    if (eventBytes > maxEventBytes) throw new InvalidReply(`an event of more than ${maxEventBytes} bytes`);
  }
}

function decoded(decoder: InstanceType<typeof TextDecoder>, piece: Uint8Array): string {
  try {
    return decoder.decode(piece, { stream: true });
  } catch (error) {
    throw new InvalidReply('not UTF-8', { cause: error });
  }
}
