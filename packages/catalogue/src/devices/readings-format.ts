/** Files of readings: the contents to write, and the formats. */
import type { DeviceReading, ExportFormat } from '../services/reported-devices.ts';

export interface FileTask {
  format: ExportFormat;
  deviceId: string;
  simulated: boolean;
  /** In the order of the columns, with their units. */
  sensors: readonly { name: string; unit: string }[];
  readings: readonly DeviceReading[];
}

export const MEDIA_TYPES: Readonly<Record<ExportFormat, string>> = {
  json: 'application/json; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  parquet: 'application/vnd.apache.parquet',
};
