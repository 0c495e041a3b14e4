/** A file's content is not what its kind asks for; the message says how, without the file's name. */
export class DamagedFile extends Error {
  override readonly name = 'DamagedFile';
}

/** The pixels are fine as far as one can tell, but this program cannot read them; the message names the form. */
export class UnsupportedPixels extends Error {
  override readonly name = 'UnsupportedPixels';
}
