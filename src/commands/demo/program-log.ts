import { inflateSync } from 'node:zlib';

/**
 * What a program wrote, from the member `raw` of its instance: base64 of zlib-compressed JSON `{compute: {logs, …}}`.
 * Empty when there is nothing.
 */
export function programLog(raw: string): string {
  if (raw === '') return '';
  const answer: { compute?: { logs?: string } } = JSON.parse(inflateSync(Buffer.from(raw, 'base64')).toString('utf8'));
  return answer.compute?.logs ?? '';
}
