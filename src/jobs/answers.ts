/** What is kept of an engine's last answer: shown as `raw` and in `summary` on the wire. */
import { deflateSync, inflateSync } from 'node:zlib';
import { type JobState, LOG_LIMIT_BYTES } from '../compute/engine.ts';

/** Characters of the log in `job_logs`. */
const LOG_TAIL_CHARACTERS = 1800;

export interface AnswerColumns {
  /** Base64 of zlib-compressed JSON `{"compute": {jid, image, cmd, status, message, timestamp, logs}}` (compute protocol, section 4). */
  readonly raw: string;
  readonly job_status: string;
  readonly job_logs: string;
}

interface ComputeAnswer {
  readonly jid: string;
  readonly image: string;
  readonly cmd: string;
  readonly status: string;
  readonly message: string;
  readonly timestamp: string;
  readonly logs: string;
}

export function answerColumns(jobId: string, state: JobState): AnswerColumns {
  return columnsOf({
    jid: jobId,
    image: state.image,
    cmd: state.command,
    status: state.status,
    message: state.message,
    timestamp: state.timestamp,
    logs: state.logs,
  });
}

/** The last answer with the reason why the machinery failed put below the program's log. */
export function withFailure(jobId: string, raw: string, code: string, reason: string): AnswerColumns {
  const last = raw === '' ? null : readAnswer(raw);
  const line = code === '' ? reason : `${code}: ${reason}`;
  const logs = last === null || last.logs === '' ? line : `${last.logs.trimEnd()}\n${line}`;
  const none = { jid: jobId, image: '', cmd: '', status: '', timestamp: '' };
  return columnsOf({ ...(last ?? none), message: reason, logs });
}

function columnsOf(answer: ComputeAnswer): AnswerColumns {
  // PostgreSQL cannot keep NUL in a text.
  const logs = answer.logs.replaceAll('\0', '\uFFFD').slice(-LOG_LIMIT_BYTES);
  const text = JSON.stringify({ compute: { ...answer, logs } });
  return {
    raw: deflateSync(text).toString('base64'),
    job_status: answer.status,
    job_logs: logs.slice(-LOG_TAIL_CHARACTERS),
  };
}

function readAnswer(raw: string): ComputeAnswer {
  const { compute }: { compute: ComputeAnswer } = JSON.parse(inflateSync(Buffer.from(raw, 'base64')).toString());
  return compute;
}
