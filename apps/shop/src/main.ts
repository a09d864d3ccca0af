#!/usr/bin/env node
/** The process of this shop. */
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { loadServices } from '@farebox/catalogue/services/registry';
import { ABOUT_TAGS } from '@farebox/catalogue/services/tags';
import { readConfig } from '@farebox/core/config';
import { serve } from '@farebox/core/serve';
import type { Service } from '@farebox/core/service/define';
import { StartError } from '@farebox/process/start-error';
import { type ConfiguredShop, configuredShop } from '@farebox/proxy/configured';
import { PROXY } from '@farebox/proxy/part';
import { createApp, DECLARED } from './app.ts';

const { version }: { version: string } = createRequire(import.meta.url)('../package.json');
const environment = process.env;
const nowMs = () => performance.timeOrigin + performance.now();
let configured: ConfiguredShop | null = null;
let reload: ((why: string) => Promise<void>) | null = null;

/** The file of `--config`, from where npm was called, or else of `FAREBOX_CONFIG`. */
function configFile(): string | null {
  const { values } = parseArgs({ options: { config: { type: 'string' } }, strict: false });
  const { config } = values;
  if (config === undefined) return readConfig(environment, [PROXY], { all: false }).proxy.settings.file;
  if (typeof config !== 'string') throw new StartError('--config needs the path of a file');
  return resolve(environment.INIT_CWD ?? '.', config);
}

async function services(): Promise<readonly Service[]> {
  const file = configFile();
  const own = await loadServices();
  const tags = ABOUT_TAGS;
  configured = await configuredShop({ file, own, tags, environment, version, nowMs });
  // Without a file the signal ends the process, as when its terminal is closed.
  if (file !== null) process.on('SIGHUP', () => void reload?.('SIGHUP'));
  return configured.services;
}

function loaded(): ConfiguredShop {
  if (configured === null) throw new Error('the services are not loaded yet');
  return configured;
}

serve(
  {
    declared: DECLARED,
    createApp(needs) {
      const { routes, source } = loaded();
      const app = createApp({ ...needs, routes, source: source(needs.config.house.services) });
      reload = app.reload;
      return app;
    },
    services,
    withheld: () => loaded().withheld,
    tags: () => loaded().tags,
    version,
  },
  environment,
);
