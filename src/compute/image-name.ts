/** Container image references: `[registry/][folder/]name[:tag][@digest]`. */

/** The last component without tag and digest: `localhost/fnndsc/pl-dircopy:2.1.3` → `pl-dircopy`. */
export function programName(image: string): string {
  const [withoutDigest = ''] = image.split('@');
  const last = withoutDigest.slice(withoutDigest.lastIndexOf('/') + 1);
  return last.split(':')[0] ?? '';
}

/** The reference with `:latest` where it names no version; without one an engine would fetch every version there is. */
export function withVersion(image: string): string {
  const last = image.slice(image.lastIndexOf('/') + 1);
  return last.includes(':') || last.includes('@') ? image : `${image}:latest`;
}
