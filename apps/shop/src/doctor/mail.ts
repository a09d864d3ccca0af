/** Looks at mail: whether the mail server answers, and whether other servers may believe its mail. No mail is sent. */
import { once } from 'node:events';
import { connect as dial } from 'node:net';
import { connect as dialTls } from 'node:tls';
import { type Finding, findingsOf, type Look } from './finding.ts';
import { LOOPBACK, type Names } from './public-address.ts';

export function lookAtMail(parts: {
  smtpUrl: string | null;
  from: string | null;
  /** The selector of the DKIM key; null: not told, and it can be found nowhere. */
  dkimSelector: string | null;
  names: Names;
}): Look[] {
  const { smtpUrl, from, dkimSelector, names } = parts;
  const says = findingsOf('mail');
  if (smtpUrl === null || from === null)
    return [{ step: 'mail', look: async () => says.off('no mail is sent (SMTP_URL is not set)') }];
  const { hostname } = new URL(smtpUrl);
  const domain = from.slice(from.lastIndexOf('@') + 1);
  const record = (name: string, begins: RegExp, told: { kind: string; mend: string }): Look => ({
    step: 'mail',
    async look(): Promise<Finding> {
      const texts = await names.textsOf(name);
      return texts.some((text) => begins.test(text))
        ? says.fine(`${told.kind} of ${domain} is there`)
        : says.mend(`${name} has no ${told.kind} record, so mail from ${domain} may not arrive`, told.mend);
    },
  });
  const ofDomain: Look[] = LOOPBACK.test(hostname)
    ? [
        {
          step: 'mail',
          look: async () => says.off(`mail stays on this machine, so ${domain} needs no records`),
        },
      ]
    : [
        record(domain, /^v=spf1(\s|$)/i, {
          kind: 'SPF',
          mend: 'Add a TXT record with the senders of your mail service (RFC 7208).',
        }),
        record(`_dmarc.${domain}`, /^v=DMARC1\s*;/i, {
          kind: 'DMARC',
          mend: 'Add a TXT record that says what to do with forged mail (RFC 7489).',
        }),
        dkimSelector === null
          ? {
              step: 'mail',
              look: async () =>
                says.note(
                  'DKIM was not looked at',
                  'Run it with --dkim and the selector of your mail service.',
                ),
            }
          : record(`${dkimSelector}._domainkey.${domain}`, /(^|;)\s*p=\S/i, {
              kind: 'DKIM',
              mend: 'Add the TXT record that your mail service shows (RFC 6376).',
            }),
      ];
  return [{ step: 'mail', look: (signal) => greet(smtpUrl, signal) }, ...ofDomain];

  async function greet(address: string, signal: AbortSignal): Promise<Finding> {
    const { protocol, hostname: host, port } = new URL(address);
    const isTls = protocol === 'smtps:';
    const where = { host: host.replace(/^\[|\]$/g, ''), port: Number(port || (isTls ? 465 : 587)) };
    const socket = isTls ? dialTls({ ...where, servername: where.host }) : dial(where);
    try {
      const [bytes] = await once(socket, 'data', { signal });
      return bytes instanceof Buffer && bytes.toString('latin1').startsWith('220')
        ? says.fine('the mail server answers')
        : says.mend('the mail server refuses connections', 'Look at what it says, and at who may use it.');
    } finally {
      socket.destroy();
    }
  }
}
