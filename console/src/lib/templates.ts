// Reads the job templates that the server stores for a region.
import { callPages } from './api';

export interface JobTemplate {
  TemplateName: string;
  Description?: string;
  TrainingJobRequest: string; // JSON
  SecretEnvironment?: string[];
  SavedBy: string; // an ARN
  SaveTime: number;
}

const TEMPLATES_MAX = 500; // the server's limit for a region

export async function listTemplates(region: string): Promise<JobTemplate[]> {
  return (await callPages<JobTemplate>(region, 'trainyard', 'ListJobTemplates', {}, ['Templates'], TEMPLATES_MAX)).items;
}
