// Converts between the form of a new training job and its request, so that a job, a template or a link can
// prefill the form. Members without a field are kept in `rest`.
//
// Requests may come from links: any JSON gives a valid form, and its values are not trusted.
import type { Request } from './repeat';

export interface Pair {
  name: string;
  value: string;
  secret?: boolean; // of the environment: stays out of links, templates and the shown calls
}

export interface ChannelRow {
  name: string;
  uri: string;
  sharded: boolean;
  contentType: string;
  rest: Request; // its other members
}

export type Runs = 'image' | 'command' | 'script';

export interface JobForm {
  name: string;
  image: string;
  runs: Runs;
  command: string; // of a shell
  code: string; // s3://BUCKET/KEY.tar.gz
  entry: string; // the script in it
  role: string;
  inputMode: string;
  channels: ChannelRow[];
  output: string;
  checkpoints: string;
  instanceType: string;
  instanceCount: number | null;
  volume: number | null; // GiB
  runtime: number | null; // in units
  runtimeUnit: number; // seconds
  spot: boolean;
  wait: number | null; // for spot: the longest time from creation to end, in units
  waitUnit: number;
  hyperparameters: Pair[];
  environment: Pair[];
  tags: Pair[];
  rest: Request;
}

export const UNITS = [
  [60, 'minutes'],
  [3600, 'hours'],
  [86400, 'days'],
] as const;

export function emptyForm(account: string, region: string, now: Date): JobForm {
  const stamp = now.toISOString().slice(0, 19).replace(/[-:]/g, '').toLowerCase();
  return {
    name: `job-${stamp}`,
    image: 'trainyard/host',
    runs: 'command',
    command: '',
    code: '',
    entry: 'train.py',
    role: account && `arn:aws:iam::${account}:role/trainer`,
    inputMode: 'File',
    channels: [],
    output: `s3://trainyard-${region}/jobs`, // as trainyard submit
    checkpoints: '',
    instanceType: 'ml.m5.large',
    instanceCount: 1,
    volume: 30,
    runtime: 1,
    runtimeUnit: 86400,
    spot: false,
    wait: 2,
    waitUnit: 86400,
    hyperparameters: [],
    environment: [],
    tags: [],
    rest: {},
  };
}

// -- from a form to a request

export const SCRIPT_MEMBERS = [
  'sagemaker_program',
  'sagemaker_submit_directory',
  'sagemaker_container_log_level',
  'sagemaker_region',
];
const CONTAINER_LOG_LEVEL = '20'; // INFO, as the SDK

// Matches numbers that every client formats in the same way: 3, -0.25; not 1e-3, 007, 0.10.
export function isPlainNumber(text: string): boolean {
  if (!/^-?(0|[1-9]\d{0,14})(\.\d{0,9}[1-9])?$/.test(text) || text === '-0') return false;
  const value = Math.abs(Number(text));
  return value === 0 || value >= 1e-3;
}

// Converts a script's hyperparameter to JSON, as the SDK does: numbers unchanged, texts in quotes.
function scriptValue(text: string): string {
  return isPlainNumber(text) || text === 'true' || text === 'false' ? text : JSON.stringify(text);
}

const named = (pairs: readonly Pair[]) => pairs.filter((pair) => pair.name !== '');

function textsOf(pairs: readonly Pair[], hidden = (pair: Pair) => pair.value): Record<string, string> {
  return Object.fromEntries(named(pairs).map((pair) => [pair.name, hidden(pair)]));
}

function channelOf(row: ChannelRow): Request {
  const source = objectIn(objectIn(row.rest, 'DataSource'), 'S3DataSource');
  return {
    ...row.rest,
    ChannelName: row.name,
    ...(row.contentType && { ContentType: row.contentType }),
    DataSource: {
      S3DataSource: {
        S3DataType: 'S3Prefix',
        ...source,
        S3Uri: row.uri,
        S3DataDistributionType: row.sharded ? 'ShardedByS3Key' : 'FullyReplicated',
      },
    },
  };
}

// Sorted, so that every client sends them in the same order.
function channelsOf(form: JobForm): Request[] {
  const kept = listIn(form.rest, 'InputDataConfig').map(objectOf);
  return [...kept, ...form.channels.map(channelOf)].sort((a, b) =>
    String(a.ChannelName) < String(b.ChannelName) ? -1 : 1,
  );
}

function algorithmOf(form: JobForm): Request {
  return {
    ...objectIn(form.rest, 'AlgorithmSpecification'),
    TrainingImage: form.image,
    TrainingInputMode: form.inputMode,
    ...(form.runs === 'command' &&
      form.command !== '' && { ContainerEntrypoint: ['/bin/sh', '-c', form.command] }),
  };
}

function hyperparametersOf(form: JobForm, region: string): Record<string, string> {
  if (form.runs !== 'script') return textsOf(form.hyperparameters);
  return {
    ...textsOf(form.hyperparameters, (pair) => scriptValue(pair.value)),
    sagemaker_program: JSON.stringify(form.entry),
    sagemaker_submit_directory: JSON.stringify(form.code),
    sagemaker_container_log_level: CONTAINER_LOG_LEVEL,
    sagemaker_region: JSON.stringify(region),
  };
}

const seconds = (value: number | null, unit: number) =>
  value === null ? undefined : Math.round(value * unit);

// `hidden` returns the text that is shown in place of a secret; the request that is sent has the secret.
export function requestOfForm(
  form: JobForm,
  region: string,
  hidden: (pair: Pair) => string = (pair) => pair.value,
): Request {
  const channels = channelsOf(form);
  const hyperparameters = hyperparametersOf(form, region);
  const environment = textsOf(form.environment, (pair) => (pair.secret ? hidden(pair) : pair.value));
  const tags = named(form.tags).map((pair) => ({ Key: pair.name, Value: pair.value }));
  const { InputDataConfig, ...rest } = form.rest;
  void InputDataConfig;
  const request: Request = {
    ...rest,
    TrainingJobName: form.name,
    ...(form.role && { RoleArn: form.role }),
    AlgorithmSpecification: algorithmOf(form),
    ...(channels.length && { InputDataConfig: channels }),
    OutputDataConfig: { ...objectIn(rest, 'OutputDataConfig'), S3OutputPath: form.output },
    ResourceConfig: resourcesOf(form),
    StoppingCondition: {
      ...objectIn(rest, 'StoppingCondition'),
      MaxRuntimeInSeconds: seconds(form.runtime, form.runtimeUnit),
      ...(form.spot && { MaxWaitTimeInSeconds: seconds(form.wait, form.waitUnit) }),
    },
    ...(form.spot && { EnableManagedSpotTraining: true }),
    ...(form.checkpoints && {
      CheckpointConfig: { ...objectIn(rest, 'CheckpointConfig'), S3Uri: form.checkpoints },
    }),
    ...(Object.keys(hyperparameters).length && { HyperParameters: hyperparameters }),
    ...(Object.keys(environment).length && { Environment: environment }),
    ...(tags.length && { Tags: tags }),
  };
  return JSON.parse(JSON.stringify(request)) as Request; // without members that are undefined
}

function resourcesOf(form: JobForm): Request {
  const kept = objectIn(form.rest, 'ResourceConfig');
  return {
    ...kept,
    ...(!hasGroups(form) && {
      InstanceType: form.instanceType,
      InstanceCount: form.instanceCount ?? undefined,
    }),
    VolumeSizeInGB: form.volume ?? undefined,
  };
}

// Instance groups and preferences have no fields and stay unchanged.
export function hasGroups(form: JobForm): boolean {
  const kept = objectIn(form.rest, 'ResourceConfig');
  return 'InstanceGroups' in kept || 'InstancePreferences' in kept;
}

// Finds two rows of the same name, which would be one member of the request.
export function repeated(pairs: readonly Pair[]): string[] {
  const names = named(pairs).map((pair) => pair.name);
  return [...new Set(names.filter((name, at) => names.indexOf(name) !== at))];
}

// -- from a request to a form

function objectOf(value: unknown): Request {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Request) : {};
}
function objectIn(parent: Request, name: string): Request {
  return objectOf(parent[name]);
}
function listIn(parent: Request, name: string): unknown[] {
  const value = parent[name];
  return Array.isArray(value) ? value : [];
}
function textIn(parent: Request, name: string, otherwise = ''): string {
  const value = parent[name];
  return typeof value === 'string' ? value : otherwise;
}
function numberIn(parent: Request, name: string, otherwise: number): number {
  const value = parent[name];
  return typeof value === 'number' && Number.isFinite(value) ? value : otherwise;
}
function pairsIn(parent: Request, name: string): Pair[] {
  return Object.entries(objectIn(parent, name))
    .filter((entry): entry is [string, string] => typeof entry[1] === 'string')
    .map(([key, value]) => ({ name: key, value }));
}
function without(parent: Request, ...names: string[]): Request {
  return Object.fromEntries(Object.entries(parent).filter(([name]) => !names.includes(name)));
}

function inUnits(total: number): [number, number] {
  const unit = [86400, 3600, 60].find((one) => total >= one && total % one === 0) ?? 60;
  return [total / unit, unit];
}

const SHELLS = ['/bin/sh', '/bin/bash', 'sh', 'bash'];

// Returns the shell command of a request, which has all words in the entry point, or the command as an
// argument. undefined: the container runs no shell command.
function shellCommand(algorithm: Request): string | undefined {
  const words = [...listIn(algorithm, 'ContainerEntrypoint'), ...listIn(algorithm, 'ContainerArguments')];
  const [shell, option, command] = words;
  const known = words.length === 3 && SHELLS.includes(String(shell)) && option === '-c';
  return known && typeof command === 'string' ? command : undefined;
}

function unquoted(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? value : text;
  } catch {
    return text;
  }
}

function rowOf(channel: Request): ChannelRow {
  const source = objectIn(objectIn(channel, 'DataSource'), 'S3DataSource');
  const others = without(source, 'S3Uri', 'S3DataDistributionType');
  if (others.S3DataType === 'S3Prefix') delete others.S3DataType;
  const rest = without(channel, 'ChannelName', 'ContentType', 'DataSource');
  // Describe adds these.
  for (const name of ['CompressionType', 'RecordWrapperType']) if (rest[name] === 'None') delete rest[name];
  return {
    name: textIn(channel, 'ChannelName'),
    uri: textIn(source, 'S3Uri'),
    sharded: source.S3DataDistributionType === 'ShardedByS3Key',
    contentType: textIn(channel, 'ContentType'),
    rest: Object.keys(others).length ? { ...rest, DataSource: { S3DataSource: others } } : rest,
  };
}

const HANDLED = [
  'TrainingJobName',
  'RoleArn',
  'HyperParameters',
  'Environment',
  'Tags',
  'EnableManagedSpotTraining',
  'InputDataConfig',
];

// Returns the members of a part of the request that have no field, under the part's name.
function leftOf(request: Request, part: string, ...fields: string[]): Request {
  const left = without(objectIn(request, part), ...fields);
  return Object.keys(left).length ? { [part]: left } : {};
}

// Converts a request to a form. `base`: the form with the values that the request lacks.
export function formOf(request: Request, base: JobForm, secrets: readonly string[] = []): JobForm {
  const algorithm = objectIn(request, 'AlgorithmSpecification');
  const resources = objectIn(request, 'ResourceConfig');
  const stopping = objectIn(request, 'StoppingCondition');
  const hyperparameters = pairsIn(request, 'HyperParameters');
  const script = hyperparameters.some((pair) => pair.name === 'sagemaker_program');
  const command = shellCommand(algorithm);
  const runs: Runs = script ? 'script' : command === undefined ? 'image' : 'command';
  const value = (name: string) => unquoted(hyperparameters.find((pair) => pair.name === name)?.value ?? '');
  const channels = listIn(request, 'InputDataConfig').map(objectOf);
  const ofS3 = (channel: Request) => 'S3DataSource' in objectIn(channel, 'DataSource');
  const others = channels.filter((channel) => !ofS3(channel));
  const [runtime, runtimeUnit] = inUnits(
    numberIn(stopping, 'MaxRuntimeInSeconds', (base.runtime ?? 1) * base.runtimeUnit),
  );
  const [wait, waitUnit] = inUnits(
    numberIn(stopping, 'MaxWaitTimeInSeconds', (base.wait ?? 2) * base.waitUnit),
  );
  const environment: Pair[] = pairsIn(request, 'Environment').map((pair) =>
    secrets.includes(pair.name) || namesSecret(pair.name) ? { ...pair, secret: true } : pair,
  );
  for (const name of secrets)
    if (!environment.some((pair) => pair.name === name)) environment.push({ name, value: '', secret: true });
  return {
    name: textIn(request, 'TrainingJobName', base.name),
    image: textIn(algorithm, 'TrainingImage', base.image),
    runs,
    command: command ?? '',
    code: script ? value('sagemaker_submit_directory') : '',
    entry: script ? value('sagemaker_program') : base.entry,
    role: textIn(request, 'RoleArn', base.role),
    inputMode: textIn(algorithm, 'TrainingInputMode', base.inputMode),
    channels: channels.filter(ofS3).map(rowOf),
    output: textIn(objectIn(request, 'OutputDataConfig'), 'S3OutputPath', base.output),
    checkpoints: textIn(objectIn(request, 'CheckpointConfig'), 'S3Uri'),
    instanceType: textIn(resources, 'InstanceType', base.instanceType),
    instanceCount: numberIn(resources, 'InstanceCount', base.instanceCount ?? 1),
    volume: numberIn(resources, 'VolumeSizeInGB', base.volume ?? 30),
    runtime,
    runtimeUnit,
    spot: request.EnableManagedSpotTraining === true,
    wait,
    waitUnit,
    hyperparameters: hyperparameters
      .filter((pair) => !script || !SCRIPT_MEMBERS.includes(pair.name))
      .map((pair) => (script ? { ...pair, value: unquoted(pair.value) } : pair)),
    environment,
    tags: listIn(request, 'Tags')
      .map(objectOf)
      .map((tag) => ({ name: textIn(tag, 'Key'), value: textIn(tag, 'Value') })),
    rest: {
      ...without(
        request,
        ...HANDLED,
        'AlgorithmSpecification',
        'ResourceConfig',
        'StoppingCondition',
        'OutputDataConfig',
        'CheckpointConfig',
      ),
      ...leftOf(
        request,
        'AlgorithmSpecification',
        'TrainingImage',
        'TrainingInputMode',
        ...(command === undefined ? [] : ['ContainerEntrypoint', 'ContainerArguments']),
      ),
      ...leftOf(
        request,
        'ResourceConfig',
        'VolumeSizeInGB',
        ...('InstanceGroups' in resources || 'InstancePreferences' in resources
          ? []
          : ['InstanceType', 'InstanceCount']),
      ),
      ...leftOf(request, 'StoppingCondition', 'MaxRuntimeInSeconds', 'MaxWaitTimeInSeconds'),
      ...leftOf(request, 'OutputDataConfig', 'S3OutputPath'),
      ...leftOf(request, 'CheckpointConfig', 'S3Uri'),
      ...(others.length ? { InputDataConfig: others } : {}),
    },
  };
}

// Removes what Describe adds to the request of a job: empty values and defaults.
export function withoutDefaults(request: Request): Request {
  const out = { ...request };
  for (const part of ['AlgorithmSpecification', 'OutputDataConfig']) {
    const given = Object.entries(objectIn(request, part)).filter(
      ([name, value]) => value !== '' && value !== false && !(name === 'CompressionType' && value === 'GZIP'),
    );
    if (given.length) out[part] = Object.fromEntries(given);
  }
  return out;
}

// Lists the members without a field: "VpcConfig", "OutputDataConfig.CompressionType".
export function otherMembers(form: JobForm): string[] {
  const parts = ['AlgorithmSpecification', 'ResourceConfig', 'StoppingCondition', 'OutputDataConfig', 'CheckpointConfig'];
  return Object.keys(form.rest).flatMap((name) =>
    parts.includes(name) ? Object.keys(objectIn(form.rest, name)).map((each) => `${name}.${each}`) : [name],
  );
}

// -- secrets

const SECRET_ENDS = ['password', 'passwd', 'passphrase', 'secret', 'token', 'credential', 'credentials', 'apikey'];
const KINDS_OF_KEYS = ['api', 'access', 'private', 'secret', 'signing'];

// Matches the values that the server rejects in templates (job_template.cpp).
export function namesSecret(name: string): boolean {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word);
  const last = words[words.length - 1] ?? '';
  if (SECRET_ENDS.includes(last)) return true;
  return last === 'key' && KINDS_OF_KEYS.includes(words[words.length - 2] ?? '');
}

export function secretsOf(form: JobForm): string[] {
  return named(form.environment)
    .filter((pair) => pair.secret)
    .map((pair) => pair.name);
}

// Returns the request without the values of secrets, for templates and links.
export function requestWithoutSecrets(form: JobForm, region: string): Request {
  const open = {
    ...form,
    environment: form.environment.filter((pair) => !pair.secret),
    hyperparameters: form.hyperparameters.filter((pair) => !namesSecret(pair.name)),
  };
  return requestOfForm(open, region);
}

// -- links

const LINK_BYTES_MAX = 16_000; // longer addresses are cut by mail programs and chats
const LINK = '#form=';

interface Linked {
  request: Request;
  secrets: string[];
}

// Returns the fragment of the URL, which browsers do not send; '': the form is too long for a link.
export function fragmentOf(form: JobForm, region: string): string {
  const linked: Linked = { request: requestWithoutSecrets(form, region), secrets: secretsOf(form) };
  const bytes = new TextEncoder().encode(JSON.stringify(linked));
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  const text = btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '');
  return text.length > LINK_BYTES_MAX ? '' : LINK + text;
}

export function formOfFragment(fragment: string, base: JobForm): JobForm | undefined {
  if (!fragment.startsWith(LINK) || fragment.length > LINK_BYTES_MAX + LINK.length) return undefined;
  try {
    const binary = atob(fragment.slice(LINK.length).replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(binary, (c) => c.charCodeAt(0));
    const linked = objectOf(JSON.parse(new TextDecoder().decode(bytes)));
    const secrets = listIn(linked, 'secrets').filter((name): name is string => typeof name === 'string');
    return formOf(objectIn(linked, 'request'), base, secrets);
  } catch {
    return undefined;
  }
}
