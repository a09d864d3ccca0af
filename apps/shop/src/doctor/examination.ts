/** Everything that `npm run doctor` looks at, in the order of docs/going-live.md, and how it is told. */
import { upstreamsOf } from '@farebox/catalogue/data-lists/part';
import type { Database } from '@farebox/core/db/connection';
import { nodesOf } from '@farebox/core/rails/x402/networks';
import { NO_LEGAL } from '@farebox/core/words/legal';
import type { createApp } from '../app.ts';
import { lookAtCards } from './cards.ts';
import { type ChainParts, lookAtFacilitators, lookAtKeys, lookAtNodes } from './chains.ts';
import { lookAtClocks } from './clocks.ts';
import { lookAtDatabase } from './database.ts';
import { type Finding, findingsOf, type Look, takeLooks } from './finding.ts';
import { lookAtMail } from './mail.ts';
import { lookAtDocuments, lookAtOperators } from './people.ts';
import { lookAtProxies } from './proxies.ts';
import {
  lookAtDomain,
  lookAtServer,
  lookAtTls,
  type Names,
  type PublicAddressParts,
} from './public-address.ts';
import { lookAtDisk, lookAtSale } from './sale.ts';

const WITHIN_MS = 15_000;
const MOST_WORDS = 200;

export interface ExaminationParts {
  config: Parameters<typeof createApp>[0]['config'];
  /** The configuration of the database, as the server opens it. */
  database: { databaseUrl: string | null; databaseMaxConnections: number; dataDir: string };
  /** Null: the embedded database does not run. */
  sql: Database | null;
  dkimSelector: string | null;
  names: Names;
  nowMs(): number;
  /** How long each look may take. */
  withinMs?: number;
}

/** Looks at everything. @returns what was found, in the order in which it is to be mended */
export function examine(parts: ExaminationParts): Promise<Finding[]> {
  const looks = looksOf(parts);
  return takeLooks(looks, { withinMs: parts.withinMs ?? WITHIN_MS, plain });
}

function looksOf({ config, database, sql, dkimSelector, names, nowMs }: ExaminationParts): Look[] {
  const { dataDir, databaseUrl, databaseMaxConnections } = database;
  const { host, port, publicUrl, proxyTrust } = config.house;
  const url = publicUrl ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const isEmbedded = databaseUrl === null;
  const outside: PublicAddressParts = {
    url,
    isPublic: publicUrl !== null,
    proxyHeader: proxyTrust.header,
    hasProxies: proxyTrust.proxies.length > 0,
    operatorToken: config.operator.secrets.reveal().tokens[0]?.token ?? null,
    names,
    nowMs,
  };
  const chains = chainsOf(config, nowMs);
  const cards = { providerUrl: config.cards.settings.url, key: config.cards.secrets.reveal().secretKey, url };
  const mail = {
    smtpUrl: config.mail.secrets.reveal().smtpUrl,
    from: config.mail.settings.from,
    dkimSelector,
    names,
  };
  return [
    lookAtDomain(outside),
    lookAtTls(outside),
    lookAtServer(outside),
    lookAtClocks({ sql, url, nowMs }),
    lookAtProxies(outside),
    lookAtDatabase({ sql, isEmbedded, maxConnections: databaseMaxConnections }),
    lookAtDisk({ folder: dataDir, isEmbedded }),
    ...lookAtNodes(chains),
    ...lookAtFacilitators(chains),
    ...lookAtKeys(chains),
    ...lookAtCards(cards),
    ...lookAtMail(mail),
    ...lookAtDocuments({
      legal: config.house.shop.legal ?? NO_LEGAL,
      needed: config.house.production && cards.key !== null,
    }),
    ...lookAtSale({ url, networks: chains.networks }),
    lookAtOperators({
      issuer: config.operator.settings.oidcIssuer,
      tokens: config.operator.secrets.reveal().tokens.length,
    }),
    lookAtWatching(config),
  ];
}

function chainsOf(config: ExaminationParts['config'], nowMs: () => number): ChainParts {
  const { settings, secrets } = config.x402;
  const { facilitatorToken, relayerKeys, relayerKeySolana, refundKeys } = secrets.reveal();
  const { methods, tempoRpcUrl } = config.mpp.settings;
  return {
    networks: settings.networks,
    nodes: nodesOf(upstreamsOf(config.sources, config.terms.settings.accepted)),
    tempoUrl: methods.includes('tempo') ? tempoRpcUrl : null,
    facilitatorUrls: settings.facilitatorUrls,
    facilitatorToken,
    relayerKeys,
    hasSolanaRelayer: relayerKeySolana !== null,
    refundKeys,
    nowMs,
  };
}

/** Whether somebody can watch the server: alarms need metrics. */
function lookAtWatching({ operations }: ExaminationParts['config']): Look {
  const says = findingsOf('alarms');
  return {
    step: 'alarms',
    look: async () =>
      operations.secrets.reveal().metricsToken === null
        ? says.note(
            'METRICS_TOKEN is not set: /metrics is for internal addresses, or for nobody',
            'Set it, and the alarms of docs/metrics.md.',
          )
        : says.fine('/metrics is open to whoever has the token'),
  };
}

/** An error in words without addresses: those of nodes and databases hold secrets. */
function plain(error: unknown): string {
  if (!(error instanceof Error)) return 'it failed';
  const cause = error.cause instanceof Error ? error.cause : error;
  const code = 'code' in cause && typeof cause.code === 'string' ? cause.code : null;
  return (code ?? error.message)
    .replaceAll(/\b[a-z][a-z0-9+.-]*:\/\/\S+/gi, '(an address)')
    .slice(0, MOST_WORDS);
}

const SHOWN: Readonly<Record<Finding['verdict'], string>> = {
  fine: 'fine  ',
  mend: 'MEND  ',
  note: 'note  ',
  off: 'off   ',
};

/** Writes the findings as lines for a person. */
export function asText(findings: readonly Finding[]): string {
  const lines = findings.flatMap(({ step, verdict, found, mend }) => [
    `${step.padEnd(14)}${SHOWN[verdict]}${found}`,
    ...(mend === null || verdict === 'fine' ? [] : [`${' '.repeat(20)}→ ${mend}`]),
  ]);
  const open = findings.filter(({ verdict }) => verdict === 'mend').length;
  return `${[...lines, '', open === 0 ? 'Nothing is to be mended.' : `${open} to be mended, in this order.`].join('\n')}\n`;
}
