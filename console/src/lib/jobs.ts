// Jobs as the server describes them (ListJobs, DescribeJob, DescribeTrainingJob), and values that
// pages derive from them. Times are seconds since 1970.

export interface Cost {
  Currency: string;
  Amount: string;
  OnDemandAmount: string;
  Unpriced?: string[];
}

export interface Host {
  Name: string;
  InstanceType: string;
  Machine?: string;
  State: string;
  StateSince?: number;
  ExitCode?: number;
  FailureReason?: string;
  Cpus?: number;
  MemoryInBytes?: number;
  Gpus?: number;
  Utilization?: { MetricName: string; Values: number[] }[];
  SecondsSinceOutput?: number;
  Faults?: { Fault: string; Rank: number; PeerRank?: number; Message: string }[];
}

export interface Progress {
  Host: string;
  What: string;
  DoneBytes: number;
  TotalBytes?: number;
  Finished?: boolean;
}

export interface Job {
  Name: string;
  DisplayName?: string;
  Arn: string;
  Status: string;
  SecondaryStatus: string;
  CreationTime: number;
  TrainingStartTime?: number;
  TrainingEndTime?: number;
  InstanceGroups: { Name: string; InstanceType: string; InstanceCount: number }[];
  TrainingTimeInSeconds: number;
  BillableTimeInSeconds: number;
  Spot?: boolean;
  Attempts: number;
  WaitReason?: string;
  FailureReason?: string;
  StatusReason?: string;
  Note?: string;
  Notes?: string[];
  User?: string;
  Cost?: Cost;
  Tags?: { Key: string; Value: string }[];
  Metrics?: { Name: string; Value: number; At: number }[];
  Hosts?: Host[];
  Progress?: Progress[];
  Array?: { Size: number; Running: number; Succeeded: number; Failed: number };
}

export interface Transition {
  Status: string;
  StartTime: number;
  EndTime?: number;
  StatusMessage?: string;
}

// The members of DescribeTrainingJob that pages read. Other members are only copied into the request
// that repeats the job.
export interface TrainingJob {
  [member: string]: unknown;
  TrainingJobName: string;
  HyperParameters?: Record<string, string>;
  AlgorithmSpecification?: {
    TrainingImage?: string;
    MetricDefinitions?: { Name: string; Regex: string }[];
  };
  SecondaryStatusTransitions?: Transition[];
  InputDataConfig?: Channel[];
  OutputDataConfig?: { S3OutputPath?: string };
  ModelArtifacts?: { S3ModelArtifacts?: string };
  CheckpointConfig?: { S3Uri?: string };
  TensorBoardOutputConfig?: { S3OutputPath?: string };
  StoppingCondition?: { MaxRuntimeInSeconds?: number };
}

export interface Channel {
  ChannelName: string;
  DataSource: {
    S3DataSource?: { S3Uri: string };
    FileSystemDataSource?: { FileSystemId: string; DirectoryPath: string };
  };
}

export const METRICS_NAMESPACE = '/aws/sagemaker/TrainingJobs';
export const STATUSES = ['InProgress', 'Completed', 'Failed', 'Stopping', 'Stopped'] as const;

export function isOver(job: Job): boolean {
  return !['InProgress', 'Stopping'].includes(job.Status);
}

export function isWaiting(job: Job): boolean {
  return job.Status === 'InProgress' && !!job.WaitReason;
}

export function ofBatch(job: Job): boolean {
  return job.Arn.includes(':batch:');
}

export type Tone = 'run' | 'good' | 'bad' | 'warn' | 'idle';

// Returns the short text of a status, and the tone of its colour.
export function statusOf(job: Job): { text: string; tone: Tone } {
  if (isWaiting(job)) return { text: 'Waiting', tone: 'warn' };
  if (job.Status === 'InProgress') return { text: 'Running', tone: 'run' };
  if (job.Status === 'Completed') return { text: 'Completed', tone: 'good' };
  if (job.Status === 'Failed') return { text: 'Failed', tone: 'bad' };
  return { text: job.Status, tone: 'idle' };
}

export function instances(job: Job): string {
  return job.InstanceGroups.map((group) => `${group.InstanceCount} × ${group.InstanceType}`).join(
    ', ',
  );
}

// Returns the seconds since the job began to run, or since its creation if it has not.
export function elapsed(job: Job, now: number): number {
  const start = job.TrainingStartTime ?? job.CreationTime;
  return Math.max(0, (job.TrainingEndTime ?? (isOver(job) ? start : now)) - start);
}
