/** Whether a database is spread, as it is known now. Mutable, as its pools are made before anybody can ask. */
export interface DistributionNote {
  isDistributed: boolean;
}
