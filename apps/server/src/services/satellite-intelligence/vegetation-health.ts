import type { Service } from '../define.ts';
import vegetation from './vegetation.ts';

/** `vegetation` by the name under which other clients know it. */
const vegetationHealth: Service = {
  ...vegetation,
  path: 'vegetation-health',
  name: 'Vegetation Health (by its other name)',
  summary:
    'The same as vegetation: NDVI and EVI of the 250 m pixel at a point, its quality, its last months and its change.',
};

export default vegetationHealth;
