/** A call of a service that is named in a body, `{service, input}`: one form for every door that has one address for all. */
import { z } from 'zod';
import { nearest } from '../words/nearest.ts';
import type { Service } from './define.ts';
import { fittingBest } from './fitting.ts';
import { toolNameOf } from './tool-name.ts';

const MAX_SUGGESTED = 3;
const MAX_INPUT_CHARACTERS = 1_000_000;

/**
 * Strict: with a field of another name a call would be bought for less than was asked. Some models write an object as
 * text.
 */
const call = z.strictObject({
  service: z.string().min(1).max(100),
  input: z
    .union([z.record(z.string(), z.unknown()), z.string().max(MAX_INPUT_CHARACTERS).transform(objectIn)])
    .optional(),
});

/** The call that is meant: of a service and its input, or of one that is not there, or none that can be read. */
export type Named =
  | { service: Service; input: Record<string, unknown> | undefined; isGone: boolean }
  | { absent: string; near: readonly string[] }
  | { fields: readonly { field: string; message: string }[] };

/**
 * Reads what names a call. Nothing is bought unless it says no more than a service and its input.
 *
 * @param shelf.soldBefore what is sold no more, and was bought before
 */
export function namedCall(
  given: Record<string, unknown>,
  { services, soldBefore = [] }: { services: readonly Service[]; soldBefore?: readonly Service[] },
): Named {
  const parsed = call.safeParse(given);
  if (!parsed.success) {
    const fields = parsed.error.issues.map(({ path, message, code, ...issue }) =>
      code === 'unrecognized_keys'
        ? { field: (issue as { keys: string[] }).keys.join(', '), message: 'belongs into input' }
        : { field: path.join('.'), message },
    );
    return { fields };
  }
  const { service: asked, input } = parsed.data;
  const isAsked = (each: Service) => each.path === asked || toolNameOf(each) === asked;
  const service = services.find(isAsked);
  if (service !== undefined) return { service, input, isGone: false };
  const gone = soldBefore.find(isAsked);
  if (gone !== undefined) return { service: gone, input, isGone: true };
  const path = asked.replaceAll('_', '-');
  const about = fittingBest(asked, services, MAX_SUGGESTED).map((each) => each.path);
  const known = services.map((each) => each.path);
  return { absent: path, near: about.length > 0 ? about : nearest(path, known, MAX_SUGGESTED) };
}

function objectIn(text: string, context: z.RefinementCtx): Record<string, unknown> {
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text));
  } catch {
    context.addIssue('must be an object');
    return z.NEVER;
  }
}
