import type { Service } from '@farebox/core/service/define';
import vegetation from './vegetation.ts';

/** `vegetation` under the name that other clients know. */
const vegetationHealth: Service = {
  ...vegetation,
  path: 'vegetation-health',
  aliasOf: vegetation.path,
  name: 'Vegetation Health (by its other name)',
  summary:
    'The same as vegetation: NDVI and EVI of the 250 m pixel at a point, its quality, its last months and its change.',
};

export default vegetationHealth;
