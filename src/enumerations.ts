/** The values that fields of several subjects can take, by the name of their component in the API description. */
import { STATUSES } from './instances/status.ts';

export const ENUMERATIONS: Readonly<Record<string, readonly string[]>> = {
  DeletionStatusEnum: ['inactive', 'pending', 'failed'],
  PermissionEnum: ['r', 'w'],
  PluginInstanceStatus: STATUSES,
  PluginParameterType: ['string', 'float', 'boolean', 'integer', 'path', 'unextpath'],
  PluginType: ['ds', 'fs', 'ts'],
};
