/** Which user a container's program runs as: never root where it can be avoided. */

export interface ContainerUser {
  /** For the engine: `uid:gid`; null leaves the user that the image names. */
  readonly user: string | null;
  /** Who must be able to write to the output folder; null when only the image knows. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
  /** Podman without root: maps the server's user to the same ids in the container. */
  readonly keepId: boolean;
}

export interface UserFacts {
  /** `''` (choose), `image`, or `uid:gid`. */
  readonly setting: string;
  readonly server: { readonly uid: number; readonly gid: number };
  /** USER of the image, perhaps empty. */
  readonly imageUser: string;
  readonly rootless: boolean;
  readonly podman: boolean;
}

const NOBODY = 65534;

export function chooseContainerUser(facts: UserFacts): ContainerUser {
  const { setting, server, imageUser, rootless, podman } = facts;
  if (setting === 'image') return { user: null, owner: numericOwner(imageUser, server.gid), keepId: false };
  if (setting !== '') return asUser(numericOwner(setting, server.gid) ?? { uid: NOBODY, gid: NOBODY });
  if (rootless) {
    // Without root the engine's root is the server's own user outside, and all other ids are foreign to it.
    return podman ? { ...asUser(server), keepId: true } : { user: '0:0', owner: server, keepId: false };
  }
  if (server.uid !== 0) return asUser(server);
  const [imageUserName = ''] = imageUser.split(':');
  const imageIsRoot = ['', '0', 'root'].includes(imageUserName);
  return imageIsRoot
    ? asUser({ uid: NOBODY, gid: NOBODY })
    : { user: null, owner: numericOwner(imageUser, server.gid), keepId: false };
}

function asUser(owner: { uid: number; gid: number }): ContainerUser {
  return { user: `${owner.uid}:${owner.gid}`, owner, keepId: false };
}

function numericOwner(user: string, otherwiseGid: number): { uid: number; gid: number } | null {
  const match = /^(\d+)(?::(\d+))?$/.exec(user);
  return match ? { uid: Number(match[1]), gid: match[2] === undefined ? otherwiseGid : Number(match[2]) } : null;
}
