/** DICOM transfer syntaxes (PS3.6 annex A) by UID: the names that people know, and which of them hold plain pixels. */
const plain: Readonly<Record<string, string>> = {
  '1.2.840.10008.1.2': 'Implicit VR Little Endian',
  '1.2.840.10008.1.2.1': 'Explicit VR Little Endian',
  '1.2.840.10008.1.2.1.99': 'Deflated Explicit VR Little Endian',
  '1.2.840.10008.1.2.2': 'Explicit VR Big Endian',
};

const compressed: Readonly<Record<string, string>> = {
  '1.2.840.10008.1.2.4.50': 'JPEG',
  '1.2.840.10008.1.2.4.51': 'JPEG, 12 bit',
  '1.2.840.10008.1.2.4.57': 'JPEG lossless',
  '1.2.840.10008.1.2.4.70': 'JPEG lossless',
  '1.2.840.10008.1.2.4.80': 'JPEG-LS lossless',
  '1.2.840.10008.1.2.4.81': 'JPEG-LS',
  '1.2.840.10008.1.2.4.90': 'JPEG 2000 lossless',
  '1.2.840.10008.1.2.4.91': 'JPEG 2000',
  '1.2.840.10008.1.2.4.92': 'JPEG 2000 multi-component lossless',
  '1.2.840.10008.1.2.4.93': 'JPEG 2000 multi-component',
  '1.2.840.10008.1.2.4.100': 'MPEG-2',
  '1.2.840.10008.1.2.4.101': 'MPEG-2',
  '1.2.840.10008.1.2.4.102': 'MPEG-4',
  '1.2.840.10008.1.2.4.103': 'MPEG-4',
  '1.2.840.10008.1.2.4.201': 'High-Throughput JPEG 2000 lossless',
  '1.2.840.10008.1.2.4.202': 'High-Throughput JPEG 2000 lossless',
  '1.2.840.10008.1.2.4.203': 'High-Throughput JPEG 2000',
  '1.2.840.10008.1.2.5': 'RLE',
};

export const IMPLICIT_LITTLE_ENDIAN = '1.2.840.10008.1.2';
export const EXPLICIT_LITTLE_ENDIAN = '1.2.840.10008.1.2.1';
export const EXPLICIT_BIG_ENDIAN = '1.2.840.10008.1.2.2';

export function transferSyntaxName(uid: string): string {
  return plain[uid] ?? compressed[uid] ?? uid;
}

export function holdsPlainPixels(uid: string): boolean {
  return plain[uid] !== undefined;
}
