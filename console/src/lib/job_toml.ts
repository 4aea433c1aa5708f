// Formats a job file for `trainyard submit` as TOML: in the short form where possible, else as members of
// CreateTrainingJob. Parsing the file gives the same request.
import { isPlainNumber, SCRIPT_MEMBERS } from './job_form';
import type { Request } from './repeat';

// Formats a basic string. JSON escapes the same characters, except for DEL.
function text(value: string): string {
  return JSON.stringify(value).replaceAll('\u007f', '\\u007F');
}

function key(name: string): string {
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : text(name);
}

function inline(value: unknown): string {
  if (typeof value === 'string') return text(value);
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`;
  if (value !== null && typeof value === 'object')
    return `{${Object.entries(value)
      .map(([name, item]) => `${key(name)} = ${inline(item)}`)
      .join(', ')}}`;
  return String(value); // a number or a boolean
}

const isObject = (value: unknown): value is Request =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

// Removes and returns a member of a part of the request. Removes the part once it is empty.
function take(request: Request, path: readonly string[]): unknown {
  const [name, ...deeper] = path;
  if (name === undefined) return undefined;
  if (!deeper.length) {
    const value = request[name];
    delete request[name];
    return value;
  }
  const part = request[name];
  if (!isObject(part)) return undefined;
  const value = take(part, deeper);
  if (!Object.keys(part).length) delete request[name];
  return value;
}

const SCALARS: [string, ...string[]][] = [
  ['name', 'TrainingJobName'],
  ['role', 'RoleArn'],
  ['image', 'AlgorithmSpecification', 'TrainingImage'],
  ['input_mode', 'AlgorithmSpecification', 'TrainingInputMode'],
  ['instance_type', 'ResourceConfig', 'InstanceType'],
  ['instance_count', 'ResourceConfig', 'InstanceCount'],
  ['volume_gib', 'ResourceConfig', 'VolumeSizeInGB'],
  ['output', 'OutputDataConfig', 'S3OutputPath'],
  ['max_runtime_seconds', 'StoppingCondition', 'MaxRuntimeInSeconds'],
  ['max_wait_seconds', 'StoppingCondition', 'MaxWaitTimeInSeconds'],
  ['spot', 'EnableManagedSpotTraining'],
  ['checkpoints', 'CheckpointConfig', 'S3Uri'],
];

// Formats a shell command as a text with blanks, and other words as a list.
function commandLines(request: Request): string[] {
  const lines: string[] = [];
  const words = take(request, ['AlgorithmSpecification', 'ContainerEntrypoint']);
  if (Array.isArray(words)) {
    const [shell, option, command] = words as unknown[];
    const short = words.length === 3 && shell === '/bin/sh' && option === '-c' && /[ \t\n]/.test(String(command));
    lines.push(`command = ${inline(short ? command : words)}`);
  }
  const more = take(request, ['AlgorithmSpecification', 'ContainerArguments']);
  if (Array.isArray(more)) lines.push(`arguments = ${inline(more)}`);
  return lines;
}

function valueOf(value: string, plain: boolean): string {
  return plain && (isPlainNumber(value) || value === 'true' || value === 'false') ? value : text(value);
}

function table(name: string, values: Record<string, string>, plain = true): string[] {
  const lines = Object.entries(values).map(([each, value]) => `${key(each)} = ${valueOf(value, plain)}`);
  return lines.length ? ['', `[${name}]`, ...lines] : [];
}

// Returns undefined if a channel has members that the short form lacks.
function channelLines(channels: readonly unknown[]): string[] | undefined {
  const lines: string[] = [];
  let before = '';
  for (const channel of channels) {
    const left = JSON.parse(JSON.stringify(channel)) as Request;
    const name = String(take(left, ['ChannelName']));
    const uri = take(left, ['DataSource', 'S3DataSource', 'S3Uri']);
    const type = take(left, ['DataSource', 'S3DataSource', 'S3DataType']);
    const distribution = take(left, ['DataSource', 'S3DataSource', 'S3DataDistributionType']);
    const content = take(left, ['ContentType']);
    const mode = take(left, ['InputMode']);
    // `trainyard submit` would upload a path that is not an S3 URI. Names are keys, in their order.
    const short = typeof uri === 'string' && uri.startsWith('s3://') && type === 'S3Prefix' && name > before;
    if (!short || Object.keys(left).length) return undefined;
    before = name;
    const sharded = distribution === 'ShardedByS3Key';
    lines.push(
      sharded || content || mode
        ? `${key(name)} = ${inline({
            from: uri,
            ...(sharded && { sharded }),
            ...(content ? { content_type: content } : {}),
            ...(mode ? { mode } : {}),
          })}`
        : `${key(name)} = ${text(uri)}`,
    );
  }
  return ['', '[channels]', ...lines];
}

// Returns the text of a JSON string, in the form that `trainyard submit` writes.
function unquotedText(json: string): string | undefined {
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'string' && JSON.stringify(value) === json ? value : undefined;
  } catch {
    return undefined;
  }
}

function isTexts(value: unknown): value is Record<string, string> {
  return isObject(value) && Object.values(value).every((one) => typeof one === 'string');
}

// Returns [code] and the hyperparameters of a script, whose values are JSON; undefined if the short
// form cannot describe the script.
function scriptLines(hyperparameters: Record<string, string>): string[] | undefined {
  const left = { ...hyperparameters };
  const quoted = (name: string) => unquotedText(left[name] ?? '');
  const entry = quoted('sagemaker_program');
  const code = quoted('sagemaker_submit_directory');
  const fits =
    typeof entry === 'string' &&
    typeof code === 'string' &&
    /^s3:\/\/.*\.tar\.gz$/.test(code) &&
    entry !== '' &&
    !/^(\/|\.\.\/)/.test(entry) &&
    left.sagemaker_container_log_level === '20' &&
    typeof quoted('sagemaker_region') === 'string';
  if (!fits) return undefined;
  const own = Object.entries(left).filter(([name]) => !SCRIPT_MEMBERS.includes(name));
  const known = own.every(
    ([, json]) => isPlainNumber(json) || json === 'true' || json === 'false' || typeof unquotedText(json) === 'string',
  );
  if (!known) return undefined;
  const lines = own.map(([name, json]) => {
    return `${key(name)} = ${json.startsWith('"') ? text(String(unquotedText(json))) : json}`;
  });
  return [
    '',
    '[code]',
    `directory = ${text(code)}`,
    `entry = ${text(entry)}`,
    ...(lines.length ? ['', '[hyperparameters]', ...lines] : []),
  ];
}

function hyperparameterLines(request: Request): string[] {
  const hyperparameters = request.HyperParameters;
  if (!isTexts(hyperparameters)) return [];
  delete request.HyperParameters;
  const script = 'sagemaker_program' in hyperparameters ? scriptLines(hyperparameters) : undefined;
  return script ?? table('hyperparameters', hyperparameters);
}

export function tomlOf(request: Request): string {
  const left = JSON.parse(JSON.stringify(request)) as Request;
  const scalars: string[] = [];
  for (const [short, ...path] of SCALARS) {
    const value = take(left, path);
    if (value !== undefined) scalars.push(`${short} = ${inline(value)}`);
    if (short === 'input_mode') scalars.push(...commandLines(left));
  }
  const tables: string[] = [];
  const channels = Array.isArray(left.InputDataConfig) ? channelLines(left.InputDataConfig) : undefined;
  if (channels) {
    tables.push(...channels);
    delete left.InputDataConfig;
  }
  tables.push(...hyperparameterLines(left));
  if (isTexts(left.Environment)) {
    tables.push(...table('environment', left.Environment));
    delete left.Environment;
  }
  if (Array.isArray(left.Tags)) {
    const tags = left.Tags as { Key: string; Value: string }[];
    tables.push(...table('tags', Object.fromEntries(tags.map((tag) => [tag.Key, tag.Value]))));
    delete left.Tags;
  }
  const others = Object.entries(left).map(([name, value]) => `${key(name)} = ${inline(value)}`);
  return [...scalars, ...others, ...tables].join('\n') + '\n';
}

// Returns the commands that write the file and submit it.
export function submitOf(request: Request): string {
  const file = `${String(request.TrainingJobName).replace(/[^A-Za-z0-9-]/g, '') || 'job'}.toml`;
  const toml = tomlOf(request);
  let end = 'JOB';
  while (toml.split('\n').includes(end)) end += '_';
  return `cat > ${file} <<'${end}'\n${toml}${end}\ntrainyard submit ${file} --follow`;
}
