import { Counter, Gauge, Registry } from 'prom-client';

/** The metrics of devices that report. */
export function createDeviceMetrics(of: { connected(): number; waiting(): number }) {
  const registry = new Registry();
  const readings = new Counter({
    name: 'farebox_device_readings_total',
    help: 'Readings that were stored or known before, and reports that were refused or could not be stored',
    labelNames: ['outcome'],
    registers: [registry],
  });
  new Gauge({
    name: 'farebox_device_connections',
    help: 'Devices that are connected by MQTT',
    registers: [registry],
    collect() {
      this.set(of.connected());
    },
  });
  new Gauge({
    name: 'farebox_device_reports_waiting',
    help: 'Reports that wait for the database',
    registers: [registry],
    collect() {
      this.set(of.waiting());
    },
  });
  return {
    registry,
    report: (outcome: string, count: number) => readings.inc({ outcome }, count),
  };
}
