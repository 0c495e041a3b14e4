/** Recognises a process again, also after the server has restarted, and is not deceived by a pid that is used anew. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessIdentity {
  readonly pid: number;
  /** Changes with each process that has the pid: boot and time of start. */
  readonly started: string;
}

const HAS_PROC = process.platform === 'linux';

/** null when there is no such process, or only its zombie. */
export function identify(pid: number): ProcessIdentity | null {
  const started = HAS_PROC ? startedFromProc(pid) : startedFromPs(pid);
  return started === null ? null : { pid, started };
}

export function isAlive(identity: ProcessIdentity): boolean {
  return identify(identity.pid)?.started === identity.started;
}

/**
 * Signals all processes of the session that the given process leads or led. Does nothing when the pid belongs to another
 * process by now (a session's id is not given to a new process while the session has members).
 */
export function signalSession(leader: ProcessIdentity, signal: NodeJS.Signals): void {
  const current = identify(leader.pid);
  if (current !== null && current.started !== leader.started) return;
  if (HAS_PROC && !leader.started.startsWith(bootId())) return;
  for (const pid of HAS_PROC ? sessionMembers(leader.pid) : [-leader.pid]) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** @throws {SyntaxError} when the text is no identity */
export function parseIdentity(text: string): ProcessIdentity {
  const value: unknown = JSON.parse(text);
  if (typeof value === 'object' && value !== null && 'pid' in value && 'started' in value) {
    const { pid, started } = value;
    if (typeof pid === 'number' && typeof started === 'string') return { pid, started };
  }
  throw new SyntaxError(`not the identity of a process: ${text}`);
}

function sessionMembers(session: number): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && statOf(pid)?.session === session);
}

function startedFromProc(pid: number): string | null {
  const stat = statOf(pid);
  return stat === null || stat.state === 'Z' || stat.state === 'X' ? null : `${bootId()}:${stat.startTicks}`;
}

/** Fields of `/proc/<pid>/stat` (proc(5)): state, session, start time in clock ticks since boot. */
function statOf(pid: number): { state: string | undefined; session: number; startTicks: string | undefined } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in parentheses, may hold anything; the fields after it begin with number 3.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0], session: Number(fields[3]), startTicks: fields[19] };
  } catch {
    return null;
  }
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

function startedFromPs(pid: number): string | null {
  try {
    const text = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    const [state = '', ...started] = text.split(/\s+/);
    return state === '' || state.startsWith('Z') ? null : started.join(' ');
  } catch {
    return null;
  }
}
