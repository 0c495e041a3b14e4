/** The environment variables that tell a plugin's program about its run (names: compute protocol, section 4). */

export interface WorkflowOfJob {
  readonly workflowId: number;
  readonly pipelineId: number;
  /** All instances of the workflow, in its order. */
  readonly instances: readonly { readonly title: string; readonly instanceId: number }[];
}

export interface EnvironmentFacts {
  readonly jobId: string;
  readonly instanceId: number;
  readonly owner: { readonly username: string; readonly email: string; readonly token: string };
  /** The parent; null for an `fs` instance. */
  readonly previous: { readonly jobId: string; readonly instanceId: number } | null;
  /** The workflow that the instance belongs to; null for none. */
  readonly workflow: WorkflowOfJob | null;
}

/** Holds the owner's token: never log it. */
export function buildEnvironment(facts: EnvironmentFacts): Record<string, string> {
  const { previous, workflow } = facts;
  return {
    CHRIS_JID: facts.jobId,
    CHRIS_PLG_INST_ID: String(facts.instanceId),
    CHRIS_USER_USERNAME: facts.owner.username,
    CHRIS_USER_EMAIL: facts.owner.email,
    CHRIS_USER_TOKEN: facts.owner.token,
    ...(previous && { CHRIS_PREV_PLG_INST_ID: String(previous.instanceId), CHRIS_PREV_JID: previous.jobId }),
    ...(workflow && {
      CHRIS_WORKFLOW_ID: String(workflow.workflowId),
      CHRIS_PIPELINE_ID: String(workflow.pipelineId),
      CHRIS_WORKFLOW_PLG_INSTANCES: workflow.instances
        .map(({ title, instanceId }) => `${title}:${instanceId}`)
        .join(','),
    }),
  };
}
