/** The readings of devices that report to this server, for services and as far as the payer may read them. */

/** A device as its readers may see it. */
export interface ReportingDevice {
  deviceId: string;
  name: string | null;
  fleetId: string | null;
  /** The unit of each sensor. */
  sensors: Readonly<Record<string, string>>;
  /** Its place as its owner states it; null for a device that moves, or when none is stated. */
  place: { lat: number; lon: number } | null;
  /** Whether its owner declared its readings to be simulated. */
  simulated: boolean;
}

/** A reading that a device reported at one moment. */
export interface DeviceReading {
  /** When it was measured, by the device's clock. */
  atMs: number;
  receivedAtMs: number;
  /** Its number among the device's readings, in the order of storing. */
  seq: number;
  /** The values by sensor, each in its unit. */
  values: Readonly<Record<string, number>>;
  position: { lat: number; lon: number } | null;
}

export const EXPORT_FORMATS = ['json', 'csv', 'parquet'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** A file made of readings, which can be fetched until it expires. */
export interface ReadingsExport {
  exportId: string;
  downloadUrl: string;
  sizeBytes: number;
  /** In hex, of the file's bytes. */
  sha256: string;
  expiresAtMs: number;
}

export interface DevicesToChooseFrom {
  /** The payer's own first. `devices`: how many of each were found, in a look that is bounded. */
  fleets: readonly { fleetId: string; devices: number; isOwn: boolean }[];
  /** Ids of devices of the payer's own that are in no fleet. */
  alone: readonly string[];
}

/** A device that does not exist and one that the payer may not read are refused in the same way. */
export interface ReportingDevices {
  /**
   * The device, for a call that is about to be sold. Its owner gets a share of the price with the capture.
   *
   * @throws notFound when there is none, or the payer may not read it
   */
  forCall(callId: string, deviceId: string): Promise<ReportingDevice>;
  /**
   * The same for the devices of a fleet that the payer may read, by name, at most `limit`. @throws notFound when there
   * are none
   */
  fleetForCall(callId: string, fleetId: string, limit: number): Promise<ReportingDevice[]>;
  /**
   * Lists the devices that the payer may ask for by name: devices of its own account, and those that are sold to everybody. Others that it may read
   * are left out, because their owners offered them to it one by one.
   */
  toChooseFrom(limit: number): Promise<DevicesToChooseFrom>;
  /** The latest reading that has one of these sensors. @param sensors empty: any */
  last(deviceId: string, sensors: readonly string[]): Promise<DeviceReading | null>;
  /** The latest reading that has a position. */
  lastPosition(deviceId: string): Promise<DeviceReading | null>;
  /**
   * Readings measured in a span of time, oldest first, with an upper limit.
   *
   * @param span.sensor only readings with this sensor; null: all
   * @param span.positions only readings with a position
   */
  range(
    deviceId: string,
    span: { fromMs: number; toMs: number; sensor: string | null; positions?: true; limit: number },
  ): Promise<DeviceReading[]>;
  /** Readings with a number above `seq`, in the order of their numbers, at most `limit`. */
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
  /** The days for which readings are kept. */
  readonly retentionDays: number;
}
