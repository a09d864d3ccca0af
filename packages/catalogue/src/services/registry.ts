import { readdirSync } from 'node:fs';
import { extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Service } from '@farebox/core/service/define';
import { dashedTag } from '@farebox/core/service/tag-words';
import { TAGS } from './tags.ts';

/** The folder below `services/` for code that several services share; it contains no services. */
const SHARED_FOLDER = 'shared';

/** As this file ends: compiled packages hold JavaScript. */
const CODE = extname(import.meta.filename);

/**
 * Loads every service: each `services/<tag>/<path>.ts`. To add a service, add its file; there is no list to keep.
 *
 * @param root the folder that holds a folder for each tag
 * @returns the services in catalog order: by tag, then by price, then by path
 * @throws when a file of a tag's folder is no service, is in the folder of another tag, or contradicts itself, and when
 *   two share a path
 */
export async function loadServices(root = import.meta.dirname): Promise<readonly Service[]> {
  const services: Service[] = [];
  for (const folder of readdirSync(root, { withFileTypes: true })) {
    if (!folder.isDirectory() || folder.name === SHARED_FOLDER) continue;
    for (const file of readdirSync(join(root, folder.name))) {
      if (!file.endsWith(CODE) || /\.(test|fixture|d)\.ts$/.test(file)) continue;
      const module: { default?: unknown } = await import(pathToFileURL(join(root, folder.name, file)).href);
      services.push(checkedService(module.default, folder.name, file));
    }
  }
  const paths = new Set<string>();
  for (const { path } of services) {
    if (paths.has(path)) throw new Error(`two services have the path ${path}`);
    paths.add(path);
  }
  return services.sort(
    (a, b) =>
      TAGS.indexOf(a.tag) - TAGS.indexOf(b.tag) ||
      Number(a.priceUsd) - Number(b.priceUsd) ||
      a.path.localeCompare(b.path),
  );
}

function isService(value: unknown): value is Service {
  return (
    typeof value === 'object' && value !== null && 'path' in value && 'run' in value && 'priceUsd' in value
  );
}

function checkedService(service: unknown, folder: string, file: string): Service {
  const wrong = (what: string) => new Error(`services/${folder}/${file}: ${what}`);
  if (!isService(service))
    throw wrong(`its default export must be a service; what several services need goes to ${SHARED_FOLDER}/`);
  if (!TAGS.includes(service.tag)) throw wrong(`${service.tag} is no tag: services/tags.ts has them`);
  if (folder !== dashedTag(service.tag))
    throw wrong(`services with the tag ${service.tag} stand in ${dashedTag(service.tag)}/`);
  if (file !== service.path + CODE)
    throw wrong(`the file of ${service.path} must be named ${service.path}${CODE}`);
  if (!/^[a-z0-9]+(-[a-z0-9]+)*$/.test(service.path))
    throw wrong('the path must be lower-case words and dashes');
  if (!/^\d+\.\d{2,6}$/.test(service.priceUsd)) throw wrong('priceUsd must look like "0.25"');
  if (service.summary.length > 200) throw wrong('the summary must be at most 200 characters');
  const example = service.input.safeParse(service.example);
  if (!example.success) throw wrong(`the example does not fit the input: ${example.error.message}`);
  for (const field of Object.values(service.aliases)) {
    if (!(field in service.input.shape)) throw wrong(`an alias points to ${field}, which is not an input`);
  }
  return service;
}
