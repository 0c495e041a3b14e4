/** Large uploads and downloads, and the memory that they take. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { inTurn, median } from './load.ts';
import type { World } from './processes.ts';
import type { Row } from './report.ts';
import { signUp } from './seed.ts';

const MEBIBYTE = 2 ** 20;
const FILE_BYTES = Number(process.env.BENCH_FILE_BYTES ?? 1024 * MEBIBYTE);
const PIECE = Buffer.alloc(MEBIBYTE, 'medical images compress badly, hashes do not care ');
const BOUNDARY = 'boundary-of-the-benchmark';
const USERNAME = 'sender';
const MEMORY_AIM = '< 250 MB';

/** Sends a file of `FILE_BYTES` as a multipart form. @returns the answer and the seconds until it came */
async function upload(url: string, authorization: string, path: string): Promise<{ answer: string; seconds: number }> {
  const part = (disposition: string): string =>
    `--${BOUNDARY}\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n`;
  const head = Buffer.from(`${part('name="upload_path"')}${path}\r\n${part('name="fname"; filename="large"')}`);
  const tail = Buffer.from(`\r\n--${BOUNDARY}--\r\n`);
  const began = performance.now();
  const outgoing = request(url, {
    method: 'POST',
    headers: {
      authorization,
      accept: 'application/json',
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      'content-length': head.length + FILE_BYTES + tail.length,
    },
  });
  const answered = responseOf(outgoing);
  outgoing.write(head);
  for (let rest = FILE_BYTES; rest > 0; rest -= PIECE.length) {
    if (!outgoing.write(PIECE.subarray(0, rest))) await Promise.race([once(outgoing, 'drain'), answered]);
  }
  outgoing.end(tail);
  const answer = await text(await answered);
  return { answer, seconds: (performance.now() - began) / 1000 };
}

function responseOf(outgoing: ReturnType<typeof request>): Promise<IncomingMessage> {
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.once('response', (response) => {
      const { statusCode = 0 } = response;
      if (statusCode < 300) return resolve(response);
      text(response).then((content) => reject(new Error(`status ${statusCode}: ${content.slice(0, 300)}`)), reject);
    });
    outgoing.once('error', reject);
  });
  return answered;
}

/** Reads a file to its end. @returns seconds */
async function download(url: string, authorization: string): Promise<number> {
  const began = performance.now();
  const response = await responseOf(request(url, { headers: { authorization } }).end());
  let sizeBytes = 0;
  response.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length;
  });
  await once(response, 'end');
  if (sizeBytes !== FILE_BYTES) throw new Error(`${url}: ${sizeBytes} of ${FILE_BYTES} bytes came`);
  return (performance.now() - began) / 1000;
}

function speedRow(what: string, seconds: { ours: number[]; bare: number[] }, aim: string): Row {
  const words = (values: readonly number[]): string => `${Math.round(FILE_BYTES / 1e6 / median(values))} MB/s`;
  return {
    what: `${what} of ${Math.round(FILE_BYTES / MEBIBYTE)} MiB`,
    ours: words(seconds.ours),
    bare: words(seconds.bare),
    result: (median(seconds.bare) / median(seconds.ours)).toFixed(2),
    aim,
  };
}

export async function measureTransfers({ server, bare }: World): Promise<Row[]> {
  const { authorization } = await signUp(server.url, USERNAME);
  await server.resetPeakMemory();
  const folder = `home/${USERNAME}/uploads`;
  const links: string[] = [];
  const uploads = await inTurn(
    async () => {
      const { answer, seconds } = await upload(
        `${server.url}/api/v1/userfiles/`,
        authorization,
        `${folder}/${links.length}`,
      );
      const { file_resource: link }: { file_resource: string } = JSON.parse(answer);
      links.push(link);
      return seconds;
    },
    async () => (await upload(`${bare.url}/upload`, authorization, folder)).seconds,
  );
  const [link = ''] = links;
  const downloads = await inTurn(
    () => download(link, authorization),
    () => download(`${bare.url}/download`, authorization),
  );
  const peak = await server.peakMemoryBytes();
  return [
    speedRow('upload', uploads, '≥ 0.80'),
    speedRow('download', downloads, '≥ 0.90'),
    {
      what: 'peak memory of the server during both',
      ours: peak === null ? 'not told by the system' : `${Math.round(peak / 1e6)} MB`,
      bare: '–',
      result: peak === null ? '–' : `${Math.round(peak / 1e6)} MB`,
      aim: MEMORY_AIM,
    },
  ];
}
