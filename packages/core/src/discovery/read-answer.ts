/** How a program reads what it bought. */
import type { Service } from '../service/define.ts';

/** Whether an answer is JSON with the house's own fields. What a seller's API answers is what it sent. */
export function answersJson({ mediaType, route }: Service): boolean {
  return mediaType === 'application/json' && route === null;
}

/** Lines of JavaScript that read `answer` from `response`, or throw. */
export function readAnswerOf(service: Service): string {
  return answersJson(service)
    ? `const answer = await response.json();
if (!response.ok) throw new Error(\`\${response.status} \${answer.error}: \${answer.message}\`);`
    : `if (!response.ok) throw new Error(\`\${response.status} \${await response.text()}\`);
const answer = ${service.mediaType === 'application/json' ? 'await response.json()' : service.mediaType.startsWith('text/') ? 'await response.text()' : 'new Uint8Array(await response.arrayBuffer())'};`;
}
