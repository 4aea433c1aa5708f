// Reads the users of the account with their keys, groups and policies, with IAM's operations.
import { call, callPages, type PageCall } from './api';
import { plain } from './format';

export interface User {
  UserName: string;
  Arn: string;
  CreateDate: number;
}

export interface Role {
  RoleName: string;
  Arn: string;
  CreateDate: number;
  Description?: string;
}

export interface AccessKey {
  AccessKeyId: string;
  Status: string; // "Active", "Inactive"
  CreateDate?: number; // not of keys in the configuration
  used?: { at: number; service: string }; // nothing: never, or not known
}

export interface AttachedPolicy {
  PolicyName: string;
  PolicyArn: string;
}

// A policy that applies to a user.
export interface UserPolicy {
  name: string;
  arn: string; // '': inline
  group: string; // '': of the user
}

export const USERS_MAX = 1000;
const POLICIES_MAX = 200; // offered for attachment

async function readAll<Item>(region: string, operation: string, member: string, input: object, max: number): Promise<Item[]> {
  return (await callPages<Item>(region, 'iam', operation, input, [member], max, 'Marker')).items;
}

export function listUsers(region: string): Promise<User[]> {
  return readAll(region, 'ListUsers', 'Users', {}, USERS_MAX);
}

export function listRoles(region: string): Promise<Role[]> {
  return readAll(region, 'ListRoles', 'Roles', {}, USERS_MAX);
}

export async function readUser(region: string, name: string): Promise<User> {
  return (await call<{ User: User }>(region, 'iam', 'GetUser', { UserName: name })).User;
}

export async function listKeys(region: string, user: string): Promise<AccessKey[]> {
  const keys = await readAll<AccessKey>(region, 'ListAccessKeys', 'AccessKeyMetadata', { UserName: user }, 100);
  return Promise.all(
    keys.map(async (key) => {
      const input = { AccessKeyId: key.AccessKeyId };
      // The operation needs a different permission.
      const answer = await call<{ AccessKeyLastUsed?: { LastUsedDate?: number; ServiceName?: string } }>(region, 'iam', 'GetAccessKeyLastUsed', input).catch(
        () => undefined,
      );
      const { LastUsedDate, ServiceName } = answer?.AccessKeyLastUsed ?? {};
      return LastUsedDate === undefined ? key : { ...key, used: { at: LastUsedDate, service: ServiceName ?? '' } };
    }),
  );
}

export async function listGroups(region: string, user: string): Promise<string[]> {
  const groups = await readAll<{ GroupName: string }>(region, 'ListGroupsForUser', 'Groups', { UserName: user }, 100);
  return groups.map((group) => group.GroupName);
}

// Reads the policies of a user or of a group; those that may not be listed are left out.
async function policiesOf(region: string, kind: 'User' | 'Group', name: string): Promise<UserPolicy[]> {
  const input = { [`${kind}Name`]: name };
  const group = kind === 'Group' ? name : '';
  const [attached, inline] = await Promise.all([
    readAll<AttachedPolicy>(region, `ListAttached${kind}Policies`, 'AttachedPolicies', input, 100).catch(() => []),
    readAll<string>(region, `List${kind}Policies`, 'PolicyNames', input, 100).catch(() => []),
  ]);
  return [
    ...attached.map((one) => ({ name: one.PolicyName, arn: one.PolicyArn, group })),
    ...inline.map((one) => ({ name: one, arn: '', group })),
  ];
}

// Reads the policies of a user, including those of the user's groups.
export async function listPolicies(region: string, user: string, groups: readonly string[]): Promise<UserPolicy[]> {
  const lists = await Promise.all([
    policiesOf(region, 'User', user),
    ...groups.map((group) => policiesOf(region, 'Group', group)),
  ]);
  return lists.flat();
}

// Reads the policies that can be attached.
export function listManagedPolicies(region: string): Promise<{ PolicyName: string; Arn: string }[]> {
  return readAll(region, 'ListPolicies', 'Policies', {}, POLICIES_MAX);
}

// Decodes the document of a policy, which IAM encodes as in a URL.
export async function readDocument(region: string, user: string, policy: UserPolicy): Promise<string> {
  if (policy.arn) {
    const { Policy } = await call<{ Policy: { DefaultVersionId: string } }>(region, 'iam', 'GetPolicy', { PolicyArn: policy.arn });
    const version = { PolicyArn: policy.arn, VersionId: Policy.DefaultVersionId };
    const answer = await call<{ PolicyVersion: { Document: string } }>(region, 'iam', 'GetPolicyVersion', version);
    return decoded(answer.PolicyVersion.Document);
  }
  const owner = policy.group ? { GroupName: policy.group } : { UserName: user };
  const operation = policy.group ? 'GetGroupPolicy' : 'GetUserPolicy';
  const answer = await call<{ PolicyDocument: string }>(region, 'iam', operation, { ...owner, PolicyName: policy.name });
  return decoded(answer.PolicyDocument);
}

export function decoded(document: string): string {
  try {
    return decodeURIComponent(document);
  } catch {
    return document;
  }
}

// Returns a policy's document as indented JSON; a document that is not JSON is returned unchanged.
export function readable(document: string): string {
  let text = document;
  try {
    text = JSON.stringify(JSON.parse(document), null, 2);
  } catch {
    // returned unchanged
  }
  return text.split('\n').map(plain).join('\n');
}

export interface Simulated {
  EvalDecision: string; // "allowed", "explicitDeny", "implicitDeny"
  MatchedStatements?: { SourcePolicyId?: string }[];
  MissingContextValues?: string[];
}

export interface Verdict {
  tone: 'good' | 'bad';
  text: string;
}

// Explains the result of a simulation.
export function verdictOf(result: Simulated): Verdict {
  const policies = [...new Set((result.MatchedStatements ?? []).map((one) => one.SourcePolicyId ?? ''))].filter((name) => name);
  const by = policies.length ? `, by ${policies.map(plain).join(', ')}` : '';
  const missing = result.MissingContextValues?.length
    ? ` Conditions that were not given: ${result.MissingContextValues.map(plain).join(', ')}.`
    : '';
  if (result.EvalDecision === 'allowed') return { tone: 'good', text: `Allowed${by}.${missing}` };
  if (result.EvalDecision === 'explicitDeny') return { tone: 'bad', text: `Denied${by}.${missing}` };
  return { tone: 'bad', text: `Not allowed: no policy allows it.${missing}` };
}

export async function simulate(region: string, arn: string, action: string, resource: string): Promise<Verdict> {
  const answer = await call<{ EvaluationResults?: Simulated[] }>(region, 'iam', 'SimulatePrincipalPolicy', {
    PolicySourceArn: arn,
    ActionNames: [action],
    ResourceArns: [resource || '*'],
  });
  const [result] = answer.EvaluationResults ?? [];
  return result ? verdictOf(result) : { tone: 'bad', text: 'The server gave no result.' };
}

// Returns the calls with which a page changes a user, for mayMake().
const ANY_KEY = 'AKIA0000000000000000';

export function callsOn(user: User): PageCall[] {
  const UserName = user.UserName;
  return [
    { Service: 'iam', Operation: 'CreateAccessKey', Input: { UserName } },
    { Service: 'iam', Operation: 'UpdateAccessKey', Input: { UserName, AccessKeyId: ANY_KEY, Status: 'Inactive' } },
    { Service: 'iam', Operation: 'DeleteAccessKey', Input: { UserName, AccessKeyId: ANY_KEY } },
    { Service: 'iam', Operation: 'SimulatePrincipalPolicy', Input: { PolicySourceArn: user.Arn, ActionNames: ['iam:GetUser'] } },
  ];
}

export function callsOnPolicies(operation: 'AttachUserPolicy' | 'DetachUserPolicy', user: User, arns: readonly string[]): PageCall[] {
  return arns.map((PolicyArn) => ({ Service: 'iam', Operation: operation, Input: { UserName: user.UserName, PolicyArn } }));
}
