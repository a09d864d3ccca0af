/** How the two versions of A2A write what is the same: tasks, statuses, parts and events. https://a2a-protocol.org */

export type Version = '0.3' | '1.0';

export type ShownState = 'input-required' | 'working' | 'completed' | 'failed' | 'canceled';

export type Part =
  | { text: string }
  /** `metadata` of the part: which of its texts outsiders wrote. */
  | { data: unknown; metadata?: Readonly<Record<string, unknown>> }
  /** Bytes in base64. */
  | { raw: string; mediaType: string };

/** A task as it is shown, in neither version's spelling. */
export interface ShownTask {
  id: string;
  contextId: string;
  state: ShownState;
  atMs: number;
  parts: readonly Part[];
  /** The metadata of the status's message. */
  metadata: Readonly<Record<string, unknown>>;
  artifacts: readonly ShownArtifact[];
}

export interface ShownArtifact {
  id: string;
  name: string;
  parts: readonly Part[];
}

/** How one version writes. */
export interface Wire {
  version: Version;
  task(task: ShownTask): Record<string, unknown>;
  /** The result of a message that was sent. */
  sent(task: ShownTask): Record<string, unknown>;
  /** Events of a stream. */
  taskEvent(task: ShownTask): Record<string, unknown>;
  statusEvent(task: ShownTask): Record<string, unknown>;
  /** @param piece one of several that are appended to each other; absent: the artifact is whole */
  artifactEvent(
    task: Pick<ShownTask, 'id' | 'contextId'>,
    artifact: ShownArtifact,
    piece?: { isFirst: boolean; isLast: boolean },
  ): Record<string, unknown>;
  state(state: ShownState): string;
}

/** Whether nothing more happens to a task by itself. */
export function isAtRest({ state }: Pick<ShownTask, 'state'>): boolean {
  return state !== 'working';
}

/** Whether a task has ended for good. */
export function isTerminal({ state }: Pick<ShownTask, 'state'>): boolean {
  return state === 'completed' || state === 'failed' || state === 'canceled';
}

const aboutPart = ({ metadata }: { metadata?: Readonly<Record<string, unknown>> }) =>
  metadata === undefined ? {} : { metadata };

function partOf03(part: Part): Record<string, unknown> {
  if ('text' in part) return { kind: 'text', text: part.text };
  if ('data' in part) return { kind: 'data', data: part.data, ...aboutPart(part) };
  return { kind: 'file', file: { bytes: part.raw, mimeType: part.mediaType } };
}

function partOf10(part: Part): Record<string, unknown> {
  if ('text' in part) return { text: part.text, mediaType: 'text/plain' };
  if ('data' in part) return { data: part.data, mediaType: 'application/json', ...aboutPart(part) };
  return { raw: part.raw, mediaType: part.mediaType };
}

/** A status has at most one message, so the message's id follows from the task's and the time. */
const messageIdOf = ({ id, atMs }: ShownTask) => `${id}-${atMs}`;

const v03: Wire = {
  version: '0.3',
  task: (task) => ({
    kind: 'task',
    id: task.id,
    contextId: task.contextId,
    status: statusOf03(task),
    ...(task.artifacts.length === 0
      ? {}
      : { artifacts: task.artifacts.map((artifact) => artifactOf(artifact, partOf03)) }),
  }),
  sent: (task) => v03.task(task),
  taskEvent: (task) => v03.task(task),
  statusEvent: (task) => ({
    kind: 'status-update',
    taskId: task.id,
    contextId: task.contextId,
    status: statusOf03(task),
    final: isAtRest(task),
  }),
  artifactEvent: ({ id, contextId }, artifact, piece) => ({
    kind: 'artifact-update',
    taskId: id,
    contextId,
    artifact: artifactOf(artifact, partOf03),
    append: piece !== undefined && !piece.isFirst,
    lastChunk: piece?.isLast ?? true,
  }),
  state: (state) => state,
};

function statusOf03(task: ShownTask) {
  const { id: taskId, contextId, parts, metadata, state } = task;
  const message = {
    kind: 'message',
    messageId: messageIdOf(task),
    role: 'agent',
    taskId,
    contextId,
    parts: parts.map(partOf03),
    metadata,
  };
  return { state, timestamp: new Date(task.atMs).toISOString(), message };
}

const v10: Wire = {
  version: '1.0',
  task: (task) => ({
    id: task.id,
    contextId: task.contextId,
    status: statusOf10(task),
    ...(task.artifacts.length === 0
      ? {}
      : { artifacts: task.artifacts.map((artifact) => artifactOf(artifact, partOf10)) }),
  }),
  sent: (task) => ({ task: v10.task(task) }),
  taskEvent: (task) => ({ task: v10.task(task) }),
  statusEvent: (task) => ({
    statusUpdate: { taskId: task.id, contextId: task.contextId, status: statusOf10(task) },
  }),
  artifactEvent: ({ id, contextId }, artifact, piece) => ({
    artifactUpdate: {
      taskId: id,
      contextId,
      artifact: artifactOf(artifact, partOf10),
      append: piece !== undefined && !piece.isFirst,
      lastChunk: piece?.isLast ?? true,
    },
  }),
  state: (state) => `TASK_STATE_${state.replaceAll('-', '_').toUpperCase()}`,
};

function statusOf10(task: ShownTask) {
  const { id: taskId, contextId, parts, metadata, state } = task;
  const message = {
    messageId: messageIdOf(task),
    role: 'ROLE_AGENT',
    taskId,
    contextId,
    parts: parts.map(partOf10),
    metadata,
  };
  return { state: v10.state(state), timestamp: new Date(task.atMs).toISOString(), message };
}

function artifactOf({ id, name, parts }: ShownArtifact, partOf: (part: Part) => Record<string, unknown>) {
  return { artifactId: id, name, parts: parts.map(partOf) };
}

/** The wire of 0.3's HTTP+JSON binding: the JSON of its protocol buffers, not that of its JSON-RPC. */
const v03OverHttp: Wire = {
  version: '0.3',
  task: (task) => ({
    id: task.id,
    contextId: task.contextId,
    status: statusOf03OverHttp(task),
    ...(task.artifacts.length === 0
      ? {}
      : { artifacts: task.artifacts.map((artifact) => artifactOf(artifact, partOf03OverHttp)) }),
  }),
  sent: (task) => ({ task: v03OverHttp.task(task) }),
  taskEvent: (task) => ({ task: v03OverHttp.task(task) }),
  statusEvent: (task) => ({
    statusUpdate: {
      taskId: task.id,
      contextId: task.contextId,
      status: statusOf03OverHttp(task),
      final: isAtRest(task),
    },
  }),
  artifactEvent: ({ id, contextId }, artifact, piece) => ({
    artifactUpdate: {
      taskId: id,
      contextId,
      artifact: artifactOf(artifact, partOf03OverHttp),
      append: piece !== undefined && !piece.isFirst,
      lastChunk: piece?.isLast ?? true,
    },
  }),
  // The protocol buffers of 0.3 spell one state otherwise than those of 1.0.
  state: (state) => v10.state(state).replace(/CANCELED$/, 'CANCELLED'),
};

function partOf03OverHttp(part: Part): Record<string, unknown> {
  if ('text' in part) return { text: part.text };
  if ('data' in part) return { data: { data: part.data }, ...aboutPart(part) };
  return { file: { fileWithBytes: part.raw, mimeType: part.mediaType } };
}

function statusOf03OverHttp(task: ShownTask) {
  const { id: taskId, contextId, parts, metadata, state } = task;
  const message = {
    messageId: messageIdOf(task),
    role: 'ROLE_AGENT',
    taskId,
    contextId,
    content: parts.map(partOf03OverHttp),
    metadata,
  };
  return { state: v03OverHttp.state(state), timestamp: new Date(task.atMs).toISOString(), message };
}

/** The wires of JSON-RPC, by version. */
export const WIRES: Readonly<Record<Version, Wire>> = { '0.3': v03, '1.0': v10 };

/** The wires of the HTTP+JSON binding, by version. */
export const HTTP_WIRES: Readonly<Record<Version, Wire>> = { '0.3': v03OverHttp, '1.0': v10 };
