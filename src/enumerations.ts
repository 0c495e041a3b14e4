/** The values that fields of several subjects can take, by the name of their component in the API description. */
import { STATUSES } from './instances/status.ts';

export const DELETION_STATUSES: readonly string[] = ['inactive', 'pending', 'failed'];

export const ENUMERATIONS: Readonly<Record<string, readonly string[]>> = {
  DeletionStatusEnum: DELETION_STATUSES,
  PermissionEnum: ['r', 'w'],
  PluginInstanceStatus: STATUSES,
  PluginParameterType: ['string', 'float', 'boolean', 'integer', 'path', 'unextpath'],
  PluginType: ['ds', 'fs', 'ts'],
};
