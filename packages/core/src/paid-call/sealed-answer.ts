import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Secrets } from '../secrets/secrets.ts';

/** What a sealed answer begins with; the id of the secret's version and a colon follow. */
const PREFIX = 'sealed:2:';
/** The older form, from before versions had ids: only the sealed answer follows. */
const NAMELESS = 'sealed:1:';

/**
 * Encrypts answers that hold a secret, such as a private key, so that the copy stored for a replay is useless to a
 * reader of the database. AES-256-GCM with a key derived from the server's secret, bound to the call.
 */
export function createAnswerSeal({ current, all }: Secrets) {
  const keys = new Map(
    all.map(({ id, value }) => [id, Buffer.from(hkdfSync('sha256', value, 'farebox', 'stored answers', 32))]),
  );
  const keyOf = (id: string): Buffer => {
    const key = keys.get(id);
    if (key === undefined) throw new Error(`no secret that is given has the id ${id}`);
    return key;
  };

  function decrypt(key: Buffer, callId: string, base64: string): Buffer {
    const sealed = Buffer.from(base64, 'base64');
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12), { authTagLength: 16 })
      .setAAD(Buffer.from(callId))
      .setAuthTag(sealed.subarray(-16));
    return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]);
  }

  function opened(callId: string, body: string): Buffer | string {
    if (body.startsWith(PREFIX)) {
      const [id = '', base64 = ''] = body.slice(PREFIX.length).split(':');
      return decrypt(keyOf(id), callId, base64);
    }
    if (!body.startsWith(NAMELESS)) return body;
    let failure: unknown;
    for (const key of keys.values()) {
      try {
        return decrypt(key, callId, body.slice(NAMELESS.length));
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  return {
    seal(callId: string, body: string | Buffer): string {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', keyOf(current.id), nonce, { authTagLength: 16 }).setAAD(
        Buffer.from(callId),
      );
      const sealed = Buffer.concat([
        nonce,
        cipher.update(Buffer.from(body)),
        cipher.final(),
        cipher.getAuthTag(),
      ]);
      return `${PREFIX}${current.id}:${sealed.toString('base64')}`;
    },

    /** @throws when it was sealed with a secret that is not given or for another call, or was changed since */
    open: (callId: string, body: string): string => opened(callId, body).toString(),

    /** The same for an answer of bytes. @throws as `open` */
    openBytes: (callId: string, body: string): Buffer => Buffer.from(opened(callId, body)),
  };
}

export type AnswerSeal = ReturnType<typeof createAnswerSeal>;
