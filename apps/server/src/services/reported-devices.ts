/** What services may ask of devices that report to this server, as far as whoever pays may read them. */

/** A device as its readers may see it. */
export interface ReportingDevice {
  deviceId: string;
  name: string | null;
  fleetId: string | null;
  /** The unit of each sensor. */
  sensors: Readonly<Record<string, string>>;
  /** Where it stands, by its owner's word; null for one that moves, or where nobody said. */
  place: { lat: number; lon: number } | null;
  /** Its readings are made up, by its owner's own word. */
  simulated: boolean;
}

/** What a device reported at one moment. */
export interface DeviceReading {
  /** When it was measured, by the device's clock. */
  atMs: number;
  receivedAtMs: number;
  /** Its number among the device's readings, in the order in which they were stored. */
  seq: number;
  /** By sensor, in its unit. */
  values: Readonly<Record<string, number>>;
  position: { lat: number; lon: number } | null;
}

export const EXPORT_FORMATS = ['json', 'csv', 'parquet'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** A file that was made of readings, and can be fetched until it expires. */
export interface ReadingsExport {
  exportId: string;
  downloadUrl: string;
  sizeBytes: number;
  /** In hex, of the file's bytes. */
  sha256: string;
  expiresAtMs: number;
}

/** Every device that is asked for by name is refused alike when there is none and when the payer may not read it. */
export interface ReportingDevices {
  /**
   * The device, for a call that is about to be sold: its owner gets a share of the price with the capture.
   *
   * @throws notFound
   */
  forCall(callId: string, deviceId: string): Promise<ReportingDevice>;
  /** The same for all devices of a fleet that the payer may read, by name, so many at most. @throws notFound when there are none */
  fleetForCall(callId: string, fleetId: string, limit: number): Promise<ReportingDevice[]>;
  /** The latest reading that has one of these sensors. @param sensors empty: any */
  last(deviceId: string, sensors: readonly string[]): Promise<DeviceReading | null>;
  /** The latest reading that has a position. */
  lastPosition(deviceId: string): Promise<DeviceReading | null>;
  /**
   * Readings measured in a span of time, oldest first, so many at most.
   *
   * @param span.sensor only those that have it; null: all
   * @param span.positions only those that have a position
   */
  range(
    deviceId: string,
    span: { fromMs: number; toMs: number; sensor: string | null; positions?: true; limit: number },
  ): Promise<DeviceReading[]>;
  /** Readings with a number above `seq`, in the order of their numbers, so many at most. */
  after(deviceId: string, seq: number, limit: number): Promise<DeviceReading[]>;
  /** The number of its latest reading; 0 when it has never reported. */
  lastSeq(deviceId: string): Promise<number>;
  /** Makes a file of readings. */
  exportAs(
    format: ExportFormat,
    device: ReportingDevice,
    readings: readonly DeviceReading[],
    sensors: readonly string[],
  ): Promise<ReadingsExport>;
  /** For how long readings are kept. */
  readonly retentionDays: number;
}
