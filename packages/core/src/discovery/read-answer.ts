/** How a program reads what it bought. */
import type { Service } from '../service/define.ts';

export function answersJson({ mediaType }: Service): boolean {
  return mediaType === 'application/json';
}

/** Lines of JavaScript that read `answer` from `response`, or throw. */
export function readAnswerOf(service: Service): string {
  return answersJson(service)
    ? `const answer = await response.json();
if (!response.ok) throw new Error(\`\${response.status} \${answer.error}: \${answer.message}\`);`
    : `if (!response.ok) throw new Error(\`\${response.status} \${await response.text()}\`);
const answer = ${service.mediaType.startsWith('text/') ? 'await response.text()' : 'new Uint8Array(await response.arrayBuffer())'};`;
}
