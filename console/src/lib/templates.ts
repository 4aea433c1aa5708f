// Templates of jobs, as the server keeps them for a region.
import { call } from './api';

export interface JobTemplate {
  TemplateName: string;
  Description?: string;
  TrainingJobRequest: string; // JSON
  SecretEnvironment?: string[];
  SavedBy: string; // an ARN
  SaveTime: number;
}

const TEMPLATES_MAX = 500; // as the server

export async function listTemplates(region: string): Promise<JobTemplate[]> {
  const found: JobTemplate[] = [];
  let token: string | undefined;
  do {
    const page: { Templates: JobTemplate[]; NextToken?: string } = await call(region, 'trainyard', 'ListJobTemplates', {
      ...(token && { NextToken: token }),
    });
    found.push(...page.Templates);
    token = page.NextToken;
  } while (token && found.length < TEMPLATES_MAX);
  return found;
}
