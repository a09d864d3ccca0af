import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const PREFIX = 'sealed:1:';

/**
 * Encrypts answers that hold a secret, such as a private key, so that the copy that is kept for the same payment is
 * of no use to a reader of the database. AES-256-GCM under a key derived from the server's secret, bound to the call.
 */
export function createAnswerSeal(secret: string) {
  const key = Buffer.from(hkdfSync('sha256', secret, 'farebox', 'stored answers', 32));
  return {
    seal(callId: string, body: string): string {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: 16 }).setAAD(
        Buffer.from(callId),
      );
      const sealed = Buffer.concat([nonce, cipher.update(body, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      return PREFIX + sealed.toString('base64');
    },

    /** @throws when it was sealed with another secret, for another call, or changed since */
    open(callId: string, body: string): string {
      if (!body.startsWith(PREFIX)) return body;
      const sealed = Buffer.from(body.slice(PREFIX.length), 'base64');
      const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, 12), { authTagLength: 16 })
        .setAAD(Buffer.from(callId))
        .setAuthTag(sealed.subarray(-16));
      return Buffer.concat([decipher.update(sealed.subarray(12, -16)), decipher.final()]).toString('utf8');
    },
  };
}

export type AnswerSeal = ReturnType<typeof createAnswerSeal>;
