/** What Node answers before there is a request that a route could see: broken HTTP, endless headers, expectations. */
import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { SECURITY_HEADERS } from './security-headers.ts';

interface Refusal {
  readonly status: number;
  readonly detail: string;
}

/** The codes are those of Node's HTTP parser (llhttp) and server. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { status: 431, detail: 'The address and headers of a request may have 16 KiB together.' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, detail: 'The headers of the request did not arrive in time.' },
  HPE_INVALID_METHOD: { status: 400, detail: 'The method of the request is none that HTTP knows.' },
  HPE_INVALID_CONTENT_LENGTH: { status: 400, detail: 'The header Content-Length must be one number of bytes.' },
  HPE_INVALID_TRANSFER_ENCODING: {
    status: 400,
    detail: 'Send either Content-Length or "Transfer-Encoding: chunked", not both.',
  },
};

const NOT_HTTP: Refusal = { status: 400, detail: 'This is not a request of HTTP/1.1: a line of it cannot be read.' };

/** For `clientErrorHandler`: nothing but the connection is left to answer on. */
export function refuseBrokenRequest(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const { status, detail } = REFUSALS[error.code ?? ''] ?? NOT_HTTP;
  const body = JSON.stringify({ detail });
  const headers = {
    ...SECURITY_HEADERS,
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  if (socket.writable) socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
  else socket.destroy(error);
}

/** An `Expect` that nobody understands may be ignored (RFC 9110, 10.1.1): the request is answered like any other. */
export function ignoreUnknownExpectations(server: Server): void {
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
}
