/** The process of this shop. */
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { loadServices } from '@farebox/catalogue/services/registry';
import { ABOUT_TAGS } from '@farebox/catalogue/services/tags';
import { readConfig } from '@farebox/core/config';
import { serve } from '@farebox/core/serve';
import { StartError } from '@farebox/process/start-error';
import { configuredShop } from '@farebox/proxy/configured';
import { PROXY } from '@farebox/proxy/part';
import { createApp, DECLARED } from './app.ts';

const { version }: { version: string } = createRequire(import.meta.url)('../package.json');
const environment = process.env;
const nowMs = () => performance.timeOrigin + performance.now();
const configured = configuredShop({ file: configFile, environment, version, nowMs });

/** The file of `--config`, from where npm was called, or else of `FAREBOX_CONFIG`. */
function configFile(): string | null {
  const { values } = parseArgs({ options: { config: { type: 'string' } }, strict: false });
  const { config } = values;
  if (config === undefined) return readConfig(environment, [PROXY], { all: false }).proxy.settings.file;
  if (typeof config !== 'string') throw new StartError('--config needs the path of a file');
  return resolve(environment.INIT_CWD ?? '.', config);
}

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
