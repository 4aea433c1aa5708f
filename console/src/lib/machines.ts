// Reads machines with ListMachines, and computes what the map of machines shows.
import { callPages } from './api';

export interface MachineHost {
  JobName?: string; // nothing: the principal may not see the job
  JobDisplayName?: string;
  JobRegion?: string;
  Host?: string;
  InstanceType?: string;
  State: string;
  StateSince?: number;
  Cpus: number;
  MemoryInBytes: number;
  Gpus: number;
}

export interface Machine {
  Name: string;
  Topology?: string;
  Cpus?: number; // undefined: the machine was removed, but hosts are left
  MemoryInBytes?: number;
  Gpus?: number;
  CpusUsed: number;
  MemoryUsedInBytes: number;
  GpusUsed: number;
  Hosts: MachineHost[];
}

// Distinguishes jobs of all regions; '' for those that the principal may not see.
export function jobKey(host: MachineHost): string {
  return host.JobName ? `${host.JobRegion} ${host.JobName}` : '';
}

const PAGE = 100;
export const MACHINES_MAX = 2000; // read at once

export async function listMachines(region: string): Promise<{ machines: Machine[]; more: boolean }> {
  const { items, more } = await callPages<Machine>(region, 'trainyard', 'ListMachines', { MaxResults: PAGE }, ['Machines'], MACHINES_MAX);
  return { machines: items, more };
}

export interface Resource {
  name: string;
  used: number;
  total: number;
  free: number;
  largest: number; // free on one machine
  machines: number; // with something free
  full: boolean;
}

function resourceOf(
  name: string,
  machines: readonly Machine[],
  total: (machine: Machine) => number | undefined,
  used: (machine: Machine) => number,
): Resource {
  const out = { name, used: 0, total: 0, free: 0, largest: 0, machines: 0, full: false };
  for (const machine of machines) {
    const whole = total(machine);
    if (whole === undefined) continue;
    // Hosts may use more than the capacity of a machine that was made smaller.
    const left = Math.max(0, whole - used(machine));
    out.total += whole;
    out.used += used(machine);
    out.free += left;
    out.largest = Math.max(out.largest, left);
    if (left > 0) out.machines++;
  }
  out.full = out.total > 0 && out.free <= 0;
  return out;
}

// Returns CPUs, memory and, if there are any, GPUs.
export function resourcesOf(machines: readonly Machine[]): Resource[] {
  return [
    resourceOf('CPUs', machines, (one) => one.Cpus, (one) => one.CpusUsed),
    resourceOf('Memory', machines, (one) => one.MemoryInBytes, (one) => one.MemoryUsedInBytes),
    resourceOf('GPUs', machines, (one) => one.Gpus, (one) => one.GpusUsed),
  ].filter((one) => one.total > 0);
}

export interface Gang {
  job: string; // its name; "": jobs that the principal may not see
  title: string;
  region: string;
  hosts: number;
  machines: string[];
  cpus: number;
  memory: number;
  gpus: number;
  since: number; // the first of its hosts is there
}

// Returns the jobs that use machines, the largest first.
export function gangsOf(machines: readonly Machine[]): Gang[] {
  const gangs = new Map<string, Gang>();
  for (const machine of machines)
    for (const host of machine.Hosts) {
      const key = jobKey(host);
      const gang = gangs.get(key) ?? {
        job: host.JobName ?? '',
        title: host.JobDisplayName || host.JobName || 'Other jobs',
        region: host.JobRegion ?? '',
        hosts: 0,
        machines: [],
        cpus: 0,
        memory: 0,
        gpus: 0,
        since: Infinity,
      };
      gangs.set(key, gang);
      gang.hosts++;
      if (!gang.machines.includes(machine.Name)) gang.machines.push(machine.Name);
      gang.cpus += host.Cpus;
      gang.memory += host.MemoryInBytes;
      gang.gpus += host.Gpus;
      gang.since = Math.min(gang.since, host.StateSince ?? Infinity);
    }
  return [...gangs.values()].sort(
    (a, b) => b.gpus - a.gpus || b.cpus - a.cpus || a.title.localeCompare(b.title),
  );
}

// Groups machines by rack; those without a topology are first.
export function racksOf(machines: readonly Machine[]): { rack: string; machines: Machine[] }[] {
  const racks = new Map<string, Machine[]>();
  for (const machine of machines) {
    const rack = machine.Topology ?? '';
    racks.set(rack, [...(racks.get(rack) ?? []), machine]);
  }
  return [...racks.entries()]
    .map(([rack, members]) => ({
      rack,
      machines: members.sort((a, b) => a.Name.localeCompare(b.Name, undefined, { numeric: true })),
    }))
    .sort((a, b) => a.rack.localeCompare(b.rack, undefined, { numeric: true }));
}

// Returns a colour for each job. It usually stays the same when other jobs begin or end; colours repeat
// only after all are in use.
export function coloursOf(machines: readonly Machine[], colours: number): Map<string, number> {
  const keys = new Set(machines.flatMap((machine) => machine.Hosts.map(jobKey)).filter((key) => key));
  const given = new Map<string, number>();
  const uses = new Array<number>(colours).fill(0);
  for (const key of [...keys].sort()) {
    let colour = 0;
    for (const character of key) colour = (colour * 31 + character.codePointAt(0)!) % 0x7fffffff;
    colour %= colours;
    const least = Math.min(...uses);
    while (uses[colour]! > least) colour = (colour + 1) % colours;
    uses[colour]!++;
    given.set(key, colour);
  }
  return given;
}
