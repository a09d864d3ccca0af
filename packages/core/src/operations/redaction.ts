import type { LoggerOptions } from 'pino';

const CENSORED = '[redacted]';

/**
 * The fields that never reach a log line, wherever it stands: keys, credentials, tokens. Our own lines do not carry such things
 * in the first place; this is for what a library or an error brings along.
 */
export const redaction: Pick<LoggerOptions, 'redact' | 'serializers'> = {
  redact: {
    paths: [
      ...[
        'authorization',
        '["x-api-key"]',
        '["x-payment"]',
        '["payment-signature"]',
        '["payment-receipt"]',
        '["sign-in-with-x"]',
        '["x-wallet-secret"]',
        'cookie',
      ],
      ...[
        'apiKey',
        'api_key',
        'token',
        'secret',
        'password',
        'privateKey',
        'walletSecret',
        'signature',
        'body',
        'parameters',
      ],
    ].flatMap((name) => {
      const member = name.startsWith('[') ? name : `.${name}`;
      return [name.startsWith('[') ? name : name, `*${member}`, `*.*${member}`, `*.*.*${member}`];
    }),
    censor: CENSORED,
  },
  serializers: {
    err(error: unknown) {
      if (!(error instanceof Error)) return { message: scrub(String(error)) };
      const { name, message, stack } = error;
      const code = 'code' in error ? error.code : undefined;
      return { type: name, message: scrub(message), code, stack: scrub(stack ?? '') };
    },
  },
};

/** Takes keys of ours, bearer tokens and passwords in addresses out of free text. */
export function scrub(text: string): string {
  return text
    .replace(/fbx_(live|wallet)_[0-9a-f]+/gi, CENSORED)
    .replace(/([?&](?:session|token)=)[^&\s]+/gi, `$1${CENSORED}`)
    .replace(/(Bearer|Payment)\s+[\w.~+/=-]{8,}/gi, `$1 ${CENSORED}`)
    .replace(/(:\/\/[^\s:/@]+:)[^\s@]+@/g, `$1${CENSORED}@`);
}
