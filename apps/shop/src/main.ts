/** The process of this shop. */
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { loadServices } from '@farebox/catalogue/services/registry';
import { ABOUT_TAGS } from '@farebox/catalogue/services/tags';
import { readConfig } from '@farebox/core/config';
import { serve } from '@farebox/core/serve';
import { configuredShop } from '@farebox/proxy/configured';
import { PROXY } from '@farebox/proxy/part';
import { createApp, DECLARED } from './app.ts';

const { version }: { version: string } = createRequire(import.meta.url)('../package.json');
const environment = { ...process.env };
const [, given] = /--config[= ](.+)/.exec(process.argv.slice(2).join(' ')) ?? [];
if (given !== undefined) environment.FAREBOX_CONFIG = resolve(environment.INIT_CWD ?? '.', given);

const file = () => readConfig(environment, [PROXY], { all: false }).proxy.settings.file;
const nowMs = () => performance.timeOrigin + performance.now();
const configured = configuredShop({ file, environment, version, nowMs });

serve(
  {
    declared: DECLARED,
    createApp: (needs) => createApp({ ...needs, routes: configured.routes() }),
    services: async () => configured.services(await loadServices()),
    withheld: configured.withheld,
    tags: () => ({ ...ABOUT_TAGS, ...configured.tags() }),
    version,
  },
  environment,
);
