import type { Job } from '@farebox/core/jobs/schedule';
import type { House, Part, PartCapability } from '@farebox/core/part';
import type { MeasuredCost, SourceHealth } from '@farebox/core/service/sources';
import { tracedBefore } from '@farebox/core/tracing/traced';
import { SOURCES, TERMS, termsOfSources, upstreamsOf } from '../upstreams/declared.ts';
import type { UpstreamConfig } from '../upstreams/http.ts';
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
  sourceTerms(): readonly object[];
  sourceCosts(): Promise<readonly MeasuredCost[]>;
  sourceCostsOn(day: string): Promise<readonly MeasuredCost[]>;
}

/** The outside's data: sources that are asked with a call, and lists that are fetched by a job. */
export function openSources(
  { pools, version, shop, logger, nowMs }: House,
  settings: {
    upstreams: Readonly<Record<UpstreamName, UpstreamConfig>>;
    /** False in production: a reply of a sandbox part is then a failure. */
    acceptSandbox: boolean;
  },
): Part & {
  upstreams: ConnectedUpstreams;
  nowMs(): number;
  dataLists: DataLists;
  forOperator: ShownToOperator;
} {
  const { contactEmail } = shop;
  const costs = createSourceCosts(pools.sql, { nowMs });
  const upstreams = connectUpstreams(settings.upstreams, {
    userAgent: `farebox/${version}${contactEmail === null ? '' : ` (${contactEmail})`}`,
    acceptSandbox: settings.acceptSandbox,
    nowMs,
    replicas: pools.replicas,
    onCost: costs.spent,
    onRequest(upstream, outcome, durationMs) {
      metrics.upstreamRequest(upstream, outcome, durationMs);
      tracedBefore('upstream', durationMs, { upstream, outcome }, outcome === 'ok' ? undefined : 'failed');
    },
  });
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
    forOperator: {
      upstreamHealth: health,
      dataLists: dataLists.states,
      sourceTerms: () => terms,
      sourceCosts: costs.recent,
      sourceCostsOn: costs.on,
    },
    capabilities: capabilitiesOf(dataLists),
    prepare: (patience) => patience.take(kept.takeOver),
    jobs: jobsOf({ kept, costs, dataLists }),
    metrics: metrics.registry,
    queues: [dataLists.queue],
    async close() {
      await upstreams.close();
      await costs.write();
    },
  };
}

function capabilitiesOf({ lists, tokenLists }: DataLists): PartCapability[] {
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
  ];
}

function jobsOf({
  kept,
  costs,
  dataLists,
}: {
  kept: KeptBudgets;
  costs: SourceCosts;
  dataLists: DataLists;
}): Job[] {
  return [
    { name: 'keep-source-budgets', intervalMs: 1_000, run: kept.keep },
    { name: 'write-source-costs', intervalMs: 10_000, run: costs.write },
    {
      name: 'fetch-data-lists',
      intervalMs: 30_000,
      run: async (stopping) => void (await dataLists.fetchDue(stopping)),
    },
  ];
}
