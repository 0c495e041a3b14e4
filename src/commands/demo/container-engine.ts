/** Finds a container engine on this machine by its socket. */
import { stat } from 'node:fs/promises';
import Docker from 'dockerode';

export interface ContainerEngine {
  readonly socketPath: string;
  readonly docker: Docker;
}

/** The first engine that answers, or null. Engines on other machines do not see the demo's files and are left out. */
export async function findContainerEngine(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<ContainerEngine | null> {
  for (const socketPath of socketPaths(environment)) {
    const isSocket = await stat(socketPath).then(
      (status) => status.isSocket(),
      () => false,
    );
    if (!isSocket) continue;
    const docker = new Docker({ socketPath, timeout: 5000 });
    const answers = await docker.ping().then(
      () => true,
      () => false,
    );
    if (answers) return { socketPath, docker: new Docker({ socketPath }) };
  }
  return null;
}

/** Removes the containers, running or not, that have files below a folder mounted. */
export async function removeContainersOf(folder: string, { docker }: ContainerEngine): Promise<void> {
  for (const { Id, Mounts } of await docker.listContainers({ all: true })) {
    if (!Mounts.some(({ Source }) => Source.startsWith(`${folder}/`))) continue;
    try {
      await docker.getContainer(Id).remove({ force: true, v: true });
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
}

/** 404: it ended and was removed meanwhile; 409: somebody else is removing it. */
function isGone(error: unknown): boolean {
  return error instanceof Error && 'statusCode' in error && (error.statusCode === 404 || error.statusCode === 409);
}

function socketPaths({ DOCKER_HOST, XDG_RUNTIME_DIR }: Readonly<Record<string, string | undefined>>): string[] {
  const named = DOCKER_HOST?.startsWith('unix://') ? [DOCKER_HOST.slice('unix://'.length)] : [];
  const own = XDG_RUNTIME_DIR ? [`${XDG_RUNTIME_DIR}/docker.sock`, `${XDG_RUNTIME_DIR}/podman/podman.sock`] : [];
  return [...named, '/var/run/docker.sock', ...own, '/run/podman/podman.sock', '/run/podman.sock'];
}
