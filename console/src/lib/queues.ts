// Reads job queues with Batch's operations, with the jobs that wait in them.
import { call, callPages } from './api';
import { isWaiting, ofBatch, type Job } from './jobs';

export interface Usage {
  capacityUnit: string;
  quantity: number;
}

interface JobQueue {
  jobQueueName: string;
  jobQueueArn: string;
  state: string;
  status: string;
  statusReason?: string;
  priority: number;
  schedulingPolicyArn?: string;
  computeEnvironmentOrder?: { order: number; computeEnvironment: string }[];
  serviceEnvironmentOrder?: { order: number; serviceEnvironment: string }[];
}

interface Snapshot {
  frontOfQueue?: { jobs?: { jobArn: string; earliestTimeAtPosition: number }[] };
  queueUtilization?: {
    totalCapacityUsage?: Usage[];
    fairshareUtilization?: {
      topCapacityUtilization?: { shareIdentifier: string; capacityUsage: Usage[] }[];
    };
    quotaShareUtilization?: {
      topCapacityUtilization?: { quotaShareName: string; capacityUsage: Usage[] }[];
    };
  };
}

interface Policy {
  arn: string;
  name: string;
  fairsharePolicy?: {
    shareDecaySeconds?: number;
    computeReservation?: number;
    shareDistribution?: Weight[];
  };
}

export interface Weight {
  shareIdentifier: string; // "ann", or "team*" for all that begin so
  weightFactor?: number; // 1 when absent; half of it gives twice as much
}

interface QuotaShare {
  quotaShareName: string;
  state?: string;
  capacityLimits?: { maxCapacity: number; capacityUnit: string }[];
}

export interface Environment {
  name: string;
  limits: Usage[]; // of simultaneous usage
  enabled: boolean;
}

export interface Waiting {
  job?: Job; // undefined: older than the jobs that were read, or no longer waiting
  name: string; // in addresses
  since?: number; // at this position
}

export interface Share {
  name: string;
  used: number; // part of what all shares of the queue use, from 0 to 1
  due?: number; // by its weight, among those that use something
  limits: { unit: string; used: number; most: number }[]; // of a quota share
}

export interface Queue {
  name: string;
  enabled: boolean;
  problem: string; // why it is not valid
  priority: number;
  policy: string;
  usage: Usage[];
  environments: Environment[];
  waiting: Waiting[]; // the next one first
  shares: Share[];
}

const PAGE = 100;
const ITEMS_MAX = 1000; // of a list
export const QUEUES_MAX = 50; // whose jobs are read

export async function jobsInProgress(region: string): Promise<Job[]> {
  return (await callPages<Job>(region, 'trainyard', 'ListJobs', { StatusEquals: 'InProgress', MaxResults: PAGE }, ['Jobs'], ITEMS_MAX)).items;
}

async function batchList<Item>(region: string, operation: string, member: string, input: object = {}): Promise<Item[]> {
  return (await callPages<Item>(region, 'batch', operation, { ...input, maxResults: PAGE }, [member], ITEMS_MAX, 'nextToken')).items;
}

export function nameInArn(arn: string): string {
  return arn.slice(arn.lastIndexOf('/') + 1);
}

// Finds the weight of a share. "UserA*" matches every share with that prefix; the longest match is used.
export function weightOf(share: string, weights: readonly Weight[]): number {
  let found: Weight | undefined;
  for (const weight of weights) {
    const name = weight.shareIdentifier;
    const fits = name.endsWith('*') ? share.startsWith(name.slice(0, -1)) : name === share;
    if (fits && (!found || name.length > found.shareIdentifier.length)) found = weight;
  }
  return found?.weightFactor || 1;
}

function sum(usage: readonly Usage[]): number {
  return usage.reduce((whole, { quantity }) => whole + quantity, 0);
}

export function fairShares(
  used: readonly { shareIdentifier: string; capacityUsage: Usage[] }[],
  weights: readonly Weight[],
): Share[] {
  const named = weights
    .map((weight) => weight.shareIdentifier)
    .filter((name) => !name.endsWith('*') && !used.some((one) => one.shareIdentifier === name));
  const whole = used.reduce((all, one) => all + sum(one.capacityUsage), 0);
  const due = used.reduce((all, one) => all + 1 / weightOf(one.shareIdentifier, weights), 0);
  return [
    ...used.map((one) => ({
      name: one.shareIdentifier,
      used: whole ? sum(one.capacityUsage) / whole : 0,
      due: due ? 1 / weightOf(one.shareIdentifier, weights) / due : 0,
      limits: [],
    })),
    ...named.map((name) => ({ name, used: 0, limits: [] })),
  ];
}

export function quotaShares(
  used: readonly { quotaShareName: string; capacityUsage: Usage[] }[],
  shares: readonly QuotaShare[],
): Share[] {
  const whole = used.reduce((all, one) => all + sum(one.capacityUsage), 0);
  return shares.map((share) => {
    const usage = used.find((one) => one.quotaShareName === share.quotaShareName)?.capacityUsage ?? [];
    return {
      name: share.quotaShareName,
      used: whole ? sum(usage) / whole : 0,
      limits: (share.capacityLimits ?? []).map((limit) => ({
        unit: limit.capacityUnit,
        used: usage.find((one) => one.capacityUnit === limit.capacityUnit)?.quantity ?? 0,
        most: limit.maxCapacity,
      })),
    };
  });
}

// Returns the environments that a queue names, in its order.
function environmentsOf(queue: JobQueue, known: ReadonlyMap<string, Environment>): Environment[] {
  return [
    ...(queue.computeEnvironmentOrder ?? []).map((one) => ({ order: one.order, name: one.computeEnvironment })),
    ...(queue.serviceEnvironmentOrder ?? []).map((one) => ({ order: one.order, name: one.serviceEnvironment })),
  ]
    .sort((a, b) => a.order - b.order)
    .map(({ name }) => known.get(nameInArn(name)) ?? { name: nameInArn(name), limits: [], enabled: true });
}

async function readEnvironments(region: string): Promise<Map<string, Environment>> {
  interface Compute {
    computeEnvironmentName: string;
    state?: string;
    computeResources?: { maxvCpus?: number };
  }
  interface Service {
    serviceEnvironmentName: string;
    state?: string;
    capacityLimits?: { maxCapacity: number; capacityUnit: string }[];
  }
  const [compute, service] = await Promise.all([
    batchList<Compute>(region, 'DescribeComputeEnvironments', 'computeEnvironments').catch(() => []),
    batchList<Service>(region, 'DescribeServiceEnvironments', 'serviceEnvironments').catch(() => []),
  ]);
  const known = new Map<string, Environment>();
  for (const one of compute) {
    const most = one.computeResources?.maxvCpus;
    known.set(one.computeEnvironmentName, {
      name: one.computeEnvironmentName,
      limits: most === undefined ? [] : [{ capacityUnit: 'VCPU', quantity: most }],
      enabled: one.state !== 'DISABLED',
    });
  }
  for (const one of service)
    known.set(one.serviceEnvironmentName, {
      name: one.serviceEnvironmentName,
      limits: (one.capacityLimits ?? []).map((limit) => ({ capacityUnit: limit.capacityUnit, quantity: limit.maxCapacity })),
      enabled: one.state !== 'DISABLED',
    });
  return known;
}

async function readPolicies(region: string, queues: readonly JobQueue[]): Promise<Map<string, Policy>> {
  const arns = [...new Set(queues.flatMap((queue) => queue.schedulingPolicyArn ?? []))].slice(0, PAGE);
  if (!arns.length) return new Map();
  const answer = await call<{ schedulingPolicies?: Policy[] }>(region, 'batch', 'DescribeSchedulingPolicies', { arns }).catch(() => undefined);
  return new Map((answer?.schedulingPolicies ?? []).map((policy) => [policy.arn, policy]));
}

async function sharesOf(region: string, queue: JobQueue, snapshot: Snapshot, policy: Policy | undefined): Promise<Share[]> {
  const { fairshareUtilization, quotaShareUtilization } = snapshot.queueUtilization ?? {};
  if (fairshareUtilization)
    return fairShares(fairshareUtilization.topCapacityUtilization ?? [], policy?.fairsharePolicy?.shareDistribution ?? []);
  if (!quotaShareUtilization) return [];
  const shares = await batchList<QuotaShare>(region, 'ListQuotaShares', 'quotaShares', { jobQueue: queue.jobQueueName }).catch(() => []);
  return quotaShares(quotaShareUtilization.topCapacityUtilization ?? [], shares);
}

// Parts of a queue that the principal may not see are left out; the list must be readable.
export async function readQueues(region: string, jobs: readonly Job[]): Promise<Queue[]> {
  const listed = (await batchList<JobQueue>(region, 'DescribeJobQueues', 'jobQueues')).slice(0, QUEUES_MAX);
  const [environments, policies] = await Promise.all([readEnvironments(region), readPolicies(region, listed)]);
  // Training jobs in queues have an ARN of Batch in the queue's list, with their name, and a different one
  // elsewhere.
  const known = new Map(jobs.map((job) => [job.Name, job]));
  return Promise.all(
    listed.map(async (queue): Promise<Queue> => {
      const snapshot = await call<Snapshot>(region, 'batch', 'GetJobQueueSnapshot', { jobQueue: queue.jobQueueName }).catch((): Snapshot => ({}));
      const policy = policies.get(queue.schedulingPolicyArn ?? '');
      return {
        name: queue.jobQueueName,
        enabled: queue.state === 'ENABLED',
        problem: queue.status === 'INVALID' ? (queue.statusReason ?? 'It is not valid.') : '',
        priority: queue.priority,
        policy: policy?.name ?? '',
        usage: snapshot.queueUtilization?.totalCapacityUsage ?? [],
        environments: environmentsOf(queue, environments),
        waiting: (snapshot.frontOfQueue?.jobs ?? []).map((one) => {
          const name = nameInArn(one.jobArn);
          return { job: known.get(name), name, since: one.earliestTimeAtPosition / 1000 };
        }),
        shares: await sharesOf(region, queue, snapshot, policy),
      };
    }),
  );
}

// Returns the training jobs that wait in no queue, in the order of their creation.
export function waitingOutside(jobs: readonly Job[]): Waiting[] {
  return jobs
    .filter((job) => isWaiting(job) && !ofBatch(job) && !job.DisplayName)
    .sort((a, b) => a.CreationTime - b.CreationTime)
    .map((job) => ({ job, name: job.Name, since: job.CreationTime }));
}

export interface InstanceQuota {
  type: string;
  most: number;
  used: number;
}

interface ServiceQuota {
  QuotaName: string;
  Value: number;
}

const OF_TRAINING = / for training job usage$/;

// `user`: the caller's, as in jobs: "user/ann".
export async function readQuotas(region: string, jobs: readonly Job[], user: string): Promise<InstanceQuota[]> {
  const input = { ServiceCode: 'sagemaker', MaxResults: PAGE };
  const quotas = (await callPages<ServiceQuota>(region, 'service-quotas', 'ListServiceQuotas', input, ['Quotas'], ITEMS_MAX)).items;
  return quotas
    .filter((quota) => OF_TRAINING.test(quota.QuotaName))
    .map((quota) => {
      const type = quota.QuotaName.replace(OF_TRAINING, '');
      const groups = jobs
        .filter((job) => job.User === user && !isWaiting(job))
        .flatMap((job) => job.InstanceGroups)
        .filter((group) => group.InstanceType === type);
      return { type, most: quota.Value, used: groups.reduce((all, group) => all + group.InstanceCount, 0) };
    });
}

export function unitText(unit: string, quantity: number): string {
  const text = Number.isInteger(quantity) ? String(quantity) : quantity.toFixed(2);
  return unit === 'VCPU' ? `${text} vCPU` : unit === 'NUM_INSTANCES' ? `${text} instances` : `${text} × ${unit}`;
}
