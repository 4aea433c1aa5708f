// Formats the commands that start a training job: with the AWS CLI, with boto3, and with `trainyard
// submit`. For an existing job, they start a copy under a new name.
import type { TrainingJob } from './jobs';

// The request of CreateTrainingJob.
export type Request = Record<string, unknown>;

// The members of CreateTrainingJob. DescribeTrainingJob returns them, and others.
const MEMBERS = [
  'HyperParameters',
  'AlgorithmSpecification',
  'RoleArn',
  'InputDataConfig',
  'OutputDataConfig',
  'ResourceConfig',
  'VpcConfig',
  'StoppingCondition',
  'EnableNetworkIsolation',
  'EnableInterContainerTrafficEncryption',
  'EnableManagedSpotTraining',
  'CheckpointConfig',
  'TensorBoardOutputConfig',
  'Environment',
  'RetryStrategy',
] as const;

// Returns false for values that Describe adds to the request: empty ones and defaults.
function isSet(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return false;
  if (Array.isArray(value)) return value.length > 0;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

export function requestOf(job: TrainingJob): Request {
  const name = job.TrainingJobName.slice(0, 57).replace(/-?again-?\d*$/, '');
  const request: Request = { TrainingJobName: `${name}-again` };
  for (const member of MEMBERS) if (isSet(job[member])) request[member] = job[member];
  return request;
}

// Quotes a text for a POSIX shell.
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

export function cliOf(request: Request, region: string): string {
  const json = JSON.stringify(request, null, 2);
  return `aws sagemaker create-training-job --region ${region} \\\n  --cli-input-json ${quoted(json)}`;
}

export function cliCall(job: TrainingJob, region: string): string {
  return cliOf(requestOf(job), region);
}

function python(value: unknown, indent: string): string {
  const deeper = indent + '    ';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (value === null || value === undefined) return 'None';
  if (Array.isArray(value))
    return value.length
      ? `[\n${value.map((item) => deeper + python(item, deeper) + ',\n').join('')}${indent}]`
      : '[]';
  if (typeof value === 'object')
    return `{\n${Object.entries(value)
      .map(([key, item]) => `${deeper}${JSON.stringify(key)}: ${python(item, deeper)},\n`)
      .join('')}${indent}}`;
  return JSON.stringify(value);
}

export function sdkOf(request: Request, region: string): string {
  const members = Object.entries(request)
    .map(([name, value]) => `    ${name}=${python(value, '    ')},\n`)
    .join('');
  return `import boto3\n\nsagemaker = boto3.client("sagemaker", region_name=${JSON.stringify(region)})\nsagemaker.create_training_job(\n${members})`;
}

export function sdkCall(job: TrainingJob, region: string): string {
  return sdkOf(requestOf(job), region);
}

export function submitCall(job: TrainingJob): string {
  const request = requestOf(job);
  const file = `${String(request.TrainingJobName)}.json`;
  const json = JSON.stringify(request, null, 2);
  return `cat > ${file} <<'JOB'\n${json}\nJOB\ntrainyard submit ${file} --follow`;
}
