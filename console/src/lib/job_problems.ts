// Finds the field of the form to which an error of the server applies, by the member that it names.

export interface Problem {
  field: string; // '': none of them
  text: string;
}

// The first match is used. The server names members as the API does (RoleArn), or as in violated
// constraints (roleArn).
const FIELDS: [RegExp, string][] = [
  [/trainingJobName|Job name/i, 'name'],
  [/trainingImage|oci:|containers-storage:|\bimage\b/i, 'image'],
  [/containerEntrypoint|containerArguments/i, 'command'],
  [/RoleArn|iam:PassRole|assume role/i, 'role'],
  [/^Channel |inputDataConfig|at channel/i, 'channels'],
  [/sagemaker_submit_directory|sagemaker_program/i, 'code'],
  [/S3OutputPath|outputDataConfig/i, 'output'],
  [/checkpointConfig/i, 'checkpoints'],
  [/volumeSizeInGB/i, 'volume'],
  [/MaxWaitTime/i, 'wait'],
  [/MaxRuntime/i, 'runtime'],
  [/instanceCount|\bhosts\b/i, 'instances'],
  [/instance ?type|instanceGroups|resourceConfig/i, 'type'],
  [/spot/i, 'spot'],
  [/hyperParameters/i, 'hyperparameters'],
  [/environment/i, 'environment'],
  [/\btags?\b/i, 'tags'],
];

function fieldOf(text: string): string {
  // A violated constraint names its member; its value may have any text.
  const at = /' at '([^']+)' failed to satisfy constraint/.exec(text);
  const about = at ? at[1]! : text;
  return FIELDS.find(([pattern]) => pattern.test(about))?.[1] ?? '';
}

export function problemsOf(message: string): Problem[] {
  const violations = /^\d+ validation errors? detected: (.*)$/s.exec(message);
  const texts = violations ? violations[1]!.split(/; (?=Value )/) : [message];
  return texts.map((text) => ({ field: fieldOf(text), text }));
}

// Returns the text for the field, without the name that its label shows.
export function shortText(text: string): string {
  const constraint = /failed to satisfy constraint: (.*)$/s.exec(text);
  return constraint ? constraint[1]! : text;
}
