import type { Job } from '@farebox/core/jobs/schedule';
import type { House, Part, PartCapability } from '@farebox/core/part';
import type { MeasuredCost, SourceHealth } from '@farebox/core/service/sources';
import { tracedBefore } from '@farebox/core/tracing/traced';
import { followedPage } from '../compliance/rule.ts';
import { RULES, RULES_AS_OF } from '../compliance/rules.ts';
import { createLawPages, type LawPages } from '../law-pages/law-pages.ts';
import { lawPagesAt, SOURCES, TERMS, termsOfSources, upstreamsOf } from '../upstreams/declared.ts';
import type { UpstreamConfig, UpstreamParts } from '../upstreams/http.ts';
import {
  type ConnectedUpstreams,
  connectUpstreams,
  UPSTREAM_NAMES,
  type UpstreamName,
} from '../upstreams/index.ts';
import { createKeptBudgets, type KeptBudgets } from '../upstreams/kept-budgets.ts';
import { createSourceCosts, type SourceCosts } from '../upstreams/source-costs.ts';
import { createDataLists, type DataLists } from './data-lists.ts';
import { createSourceMetrics } from './metrics.ts';

export { SOURCES, TERMS, upstreamsOf };

/** The parts of the sources' state that stand on the operator's page. */
export interface ShownToOperator {
  upstreamHealth(): SourceHealth[];
  dataLists: DataLists['states'];
  lawPages: Pick<LawPages, 'states' | 'summary'>;
  sourceTerms(): readonly object[];
  sourceCosts(): Promise<readonly MeasuredCost[]>;
  sourceCostsOn(day: string): Promise<readonly MeasuredCost[]>;
}

/** The outside's data: sources that are asked with a call, and lists that are fetched by a job. */
export function openSources(
  house: House,
  settings: {
    upstreams: Readonly<Record<UpstreamName, UpstreamConfig>>;
    /** False in production: a reply of a sandbox part is then a failure. */
    acceptSandbox: boolean;
  },
  configured: Parameters<typeof lawPagesAt>[0],
): Part & {
  upstreams: ConnectedUpstreams;
  nowMs(): number;
  dataLists: DataLists;
  lawPages: LawPages;
  forOperator: ShownToOperator;
} {
  const { pools, logger, nowMs } = house;
  const costs = createSourceCosts(pools.sql, { nowMs });
  const asking = askingOf(house, settings.acceptSandbox, {
    onCost: costs.spent,
    onRequest: (...request) => metrics.upstreamRequest(...request),
  });
  const upstreams = connectUpstreams(settings.upstreams, asking);
  const lawPages = openLawPages(house, lawPagesAt(configured), asking);
  const dataLists = createDataLists(pools.sql, {
    upstreams: upstreams.apis,
    isConfigured: (name) => upstreams.health(name).state !== 'not_configured',
    nowMs,
    report({ list, outcome, reason }) {
      if (reason === undefined) logger.info({ list, outcome }, 'data list');
      else logger.warn({ list, outcome, reason }, 'data list');
    },
  });
  const kept = createKeptBudgets(pools.sql, { budgets: upstreams.budgets, nowMs });
  const terms = termsOfSources((name) => settings.upstreams[name].isTermsOpen === true);
  const open = terms.filter(({ isAgreedTo }) => isAgreedTo === false).map(({ name }) => name);
  if (open.length > 0)
    logger.info(
      { sources: open },
      'not used until SOURCE_TERMS_ACCEPTED names them: docs/sources.md says why',
    );
  const health = () => UPSTREAM_NAMES.map(upstreams.health);
  const metrics = createSourceMetrics({ health, lists: dataLists.states, nowMs });
  return {
    name: 'sources',
    upstreams,
    nowMs,
    dataLists,
    lawPages,
    forOperator: {
      upstreamHealth: health,
      dataLists: dataLists.states,
      lawPages,
      sourceTerms: () => terms,
      sourceCosts: costs.recent,
      sourceCostsOn: costs.on,
    },
    capabilities: capabilitiesOf(dataLists, lawPages),
    prepare: (patience) => patience.take(kept.takeOver),
    jobs: jobsOf({ kept, costs, dataLists, lawPages }),
    metrics: metrics.registry,
    queues: [dataLists.queue, lawPages.queue],
    async close() {
      await upstreams.close();
      await lawPages.close();
      await costs.write();
    },
  };
}

/** What every request to the outside has in common. @param told what is told of each */
function askingOf(
  { pools, shop, version, nowMs }: House,
  acceptSandbox: boolean,
  told: Required<Pick<UpstreamParts, 'onCost' | 'onRequest'>>,
): UpstreamParts {
  const { contactEmail } = shop;
  return {
    userAgent: `farebox/${version}${contactEmail === null ? '' : ` (${contactEmail})`}`,
    acceptSandbox,
    nowMs,
    replicas: pools.replicas,
    onCost: told.onCost,
    onRequest(upstream, outcome, durationMs) {
      told.onRequest(upstream, outcome, durationMs);
      tracedBefore('upstream', durationMs, { upstream, outcome }, outcome === 'ok' ? undefined : 'failed');
    },
  };
}

/** The official pages of the rules that the catalogue comes with. */
function openLawPages(
  { pools, logger, nowMs }: House,
  at: ReturnType<typeof lawPagesAt>,
  site: UpstreamParts,
): LawPages {
  return createLawPages(pools.sql, {
    rules: RULES.map((rule) => ({ id: rule.id, url: followedPage(rule) })),
    rulesAsOf: RULES_AS_OF,
    at,
    site,
    nowMs,
    report({ url, outcome, reason }) {
      if (outcome === 'changed' || reason !== undefined)
        logger.warn({ url, outcome, reason }, 'official page');
      else logger.info({ url, outcome }, 'official page');
    },
  });
}

function capabilitiesOf({ lists, tokenLists }: DataLists, lawPages: LawPages): PartCapability[] {
  return [
    {
      name: 'lists',
      configured: lists.configured.includes('ofac-sdn'),
      setBy: 'UPSTREAM_OFAC_BASE_URL',
      forPayer: () => lists,
    },
    {
      name: 'tokenLists',
      configured: tokenLists.configured.length > 0,
      setBy: 'UPSTREAM_UNISWAPTOKENS_BASE_URL',
      forPayer: () => tokenLists,
    },
    {
      name: 'lawPages',
      configured: lawPages.isOn,
      setBy: 'LAW_PAGES_BASE_URL',
      forPayer: () => lawPages,
    },
  ];
}

function jobsOf({
  kept,
  costs,
  dataLists,
  lawPages,
}: {
  kept: KeptBudgets;
  costs: SourceCosts;
  dataLists: DataLists;
  lawPages: LawPages;
}): Job[] {
  return [
    { name: 'keep-source-budgets', intervalMs: 1_000, run: kept.keep },
    { name: 'write-source-costs', intervalMs: 10_000, run: costs.write },
    {
      name: 'fetch-data-lists',
      intervalMs: 30_000,
      run: async (stopping) => void (await dataLists.fetchDue(stopping)),
    },
    {
      name: 'read-law-pages',
      intervalMs: 10 * 60_000,
      run: async (stopping) => void (await lawPages.readDue(stopping)),
    },
  ];
}
