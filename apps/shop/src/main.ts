/** The process of this shop. */
import { createRequire } from 'node:module';
import { loadServices } from '@farebox/catalogue/services/registry';
import { ABOUT_TAGS } from '@farebox/catalogue/services/tags';
import { serve } from '@farebox/core/serve';
import { createApp, DECLARED } from './app.ts';

const { version }: { version: string } = createRequire(import.meta.url)('../package.json');

serve({ declared: DECLARED, createApp, services: loadServices, tags: ABOUT_TAGS, version }, process.env);
