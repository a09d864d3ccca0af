/** Events of an answer in pieces, as the paid call writes and keeps them. */

export interface SentEvent {
  event: string;
  data: unknown;
}

/**
 * The events of a stream, in order. Lines end with a line feed alone: JSON may hold the other characters that some believe to
 * end a line, such as U+2028.
 */
export function eventsOf(stream: string): SentEvent[] {
  return stream.split('\n\n').flatMap((block): SentEvent[] => {
    const lines = block.split('\n');
    const after = (start: string) => lines.find((line) => line.startsWith(start))?.slice(start.length);
    const data = after('data: ');
    return data === undefined ? [] : [{ event: after('event: ') ?? 'message', data: JSON.parse(data) }];
  });
}
