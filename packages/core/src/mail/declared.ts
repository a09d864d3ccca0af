import { z } from 'zod';
import { declare, whole } from '../declared.ts';
import { MAIL_PEOPLE } from './personal-data.ts';

export const MAIL = declare({
  name: 'mail',
  people: MAIL_PEOPLE,
  variables: {
    retentionDays: {
      name: 'MAIL_RETENTION_DAYS',
      describe: 'How many days a mail is kept, sent or not',
      shape: whole(2, 3_650),
      fallback: '30',
    },
    /** Null: no mail is sent. */
    smtpUrl: {
      name: 'SMTP_URL',
      describe:
        'Mail server, such as `smtp://user:password@host:587` or `smtps://…`. Without it no mail is sent',
      shape: z.url({ protocol: /^smtps?$/ }),
      fallback: null,
      secret: true,
      renewed: true,
    },
    from: {
      name: 'MAIL_FROM',
      describe: 'Sender address of mail. Required with `SMTP_URL`',
      shape: z.email(),
      fallback: null,
    },
  },
  problems: ({ smtpUrl, from }) =>
    typeof smtpUrl === 'string' && from === null ? ['MAIL_FROM: must be set with SMTP_URL'] : [],
});
