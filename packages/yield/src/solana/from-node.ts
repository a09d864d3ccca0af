/** Passes on the node's answer, or the 503 of a chain that cannot be read. */
import { chainUnavailable, isOutage } from './node.ts';

/** @throws Problem 503 while the node is silent */
export async function fromNode<Value>(asked: Promise<Value>): Promise<Value> {
  try {
    return await asked;
  } catch (error) {
    throw isOutage(error) ? chainUnavailable(error) : error;
  }
}
