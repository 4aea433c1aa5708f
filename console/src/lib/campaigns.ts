// Reads campaigns, as the server lists and describes them.
import { call } from './api';
import type { Tone } from './jobs';
import type { Transfer } from './map';

export interface CampaignRegion {
  Region: string;
  Answers?: boolean;
  WhyNot?: string;
  Waiting?: number;
  Copying?: number;
  Running?: number;
  Completed?: number;
  Failed?: number;
  Stopped?: number;
  TriedAgain?: number;
  Hosts?: number;
  Gpus?: number;
  SamplesPerSecond?: number;
  Cost?: number;
  CopyCost?: number;
  BytesTotal?: number;
  BytesCopied?: number;
}

export interface CampaignRow {
  Number: number;
  Label?: string;
  DataRegion?: string;
  Region?: string;
  Why?: string;
  Data?: string;
  CopyTo?: string;
  State: string;
  Job?: string;
  Status?: string;
  Reason?: string;
  Attempts?: number;
  Metrics?: { Name: string; Value: number }[];
  Cost?: number;
  BytesTotal?: number;
  BytesCopied?: number;
}

export interface Campaign {
  CampaignName: string;
  Status: string;
  Standing?: boolean;
  CreationTime: number;
  EndTime?: number;
  Trouble?: string;
  StartedBy?: string;
  StopReason?: string;
  Currency?: string;
  BestMetric?: string;
  BestRow?: number;
  Regions?: CampaignRegion[];
  Rows?: CampaignRow[];
}

// Returns the campaigns, the newest first.
export async function listCampaigns(region: string): Promise<Campaign[]> {
  const { Campaigns } = await call<{ Campaigns?: Campaign[] }>(region, 'trainyard', 'ListCampaigns', {});
  return (Campaigns ?? []).sort((a, b) => b.CreationTime - a.CreationTime);
}

export function readCampaign(region: string, name: string): Promise<Campaign> {
  return call<Campaign>(region, 'trainyard', 'DescribeCampaign', { CampaignName: name });
}

export function toneOf(state: string): Tone {
  const tones: Record<string, Tone> = {
    inprogress: 'run',
    running: 'run',
    copying: 'run',
    submitting: 'run',
    stopping: 'warn',
    waiting: 'warn',
    ready: 'warn',
    completed: 'good',
    failed: 'bad',
  };
  const name = state.toLowerCase();
  return Object.hasOwn(tones, name) ? tones[name]! : 'idle';
}

// Formats a status: "InProgress" as "In progress", "waiting" as "Waiting".
export function stateText(state: string): string {
  if (state === 'InProgress') return 'In progress';
  return state.slice(0, 1).toUpperCase() + state.slice(1);
}

export interface Sums {
  rows: number;
  completed: number;
  failed: number;
  running: number;
  cost: number;
  bytesTotal: number;
  bytesCopied: number;
}

export function sumsOf(regions: readonly CampaignRegion[]): Sums {
  const sums: Sums = { rows: 0, completed: 0, failed: 0, running: 0, cost: 0, bytesTotal: 0, bytesCopied: 0 };
  for (const one of regions) {
    const [completed, failed, running] = [one.Completed ?? 0, one.Failed ?? 0, (one.Running ?? 0) + (one.Copying ?? 0)];
    sums.rows += completed + failed + running + (one.Waiting ?? 0) + (one.Stopped ?? 0);
    sums.completed += completed;
    sums.failed += failed;
    sums.running += running;
    sums.cost += (one.Cost ?? 0) + (one.CopyCost ?? 0);
    sums.bytesTotal += one.BytesTotal ?? 0;
    sums.bytesCopied += one.BytesCopied ?? 0;
  }
  return sums;
}

// Returns the copies between regions, complete and in progress. Rows that share a copy count once.
export function transfersOf(rows: readonly CampaignRow[]): Transfer[] {
  const found = new Map<string, Transfer>();
  const copies = new Set<string>();
  for (const row of rows) {
    const [from, to] = [row.DataRegion, row.Region];
    if (!from || !to || from === to || !row.BytesTotal) continue;
    const key = `${from} ${to}`; // names of regions have no space
    const one = found.get(key) ?? { from, to, bytesTotal: 0, bytesCopied: 0, rows: 0 };
    found.set(key, one);
    one.rows++;
    const copy = JSON.stringify([from, to, row.Data, row.CopyTo]);
    if (row.Data && copies.has(copy)) continue;
    copies.add(copy);
    one.bytesTotal += row.BytesTotal;
    one.bytesCopied += Math.min(row.BytesCopied ?? 0, row.BytesTotal);
  }
  return [...found.values()].sort((a, b) => b.bytesTotal - a.bytesTotal || a.from.localeCompare(b.from));
}

// Adds up the transfers of several campaigns.
export function summed(lists: readonly (readonly Transfer[])[]): Transfer[] {
  const found = new Map<string, Transfer>();
  for (const one of lists.flat()) {
    const key = `${one.from} ${one.to}`;
    const sum = found.get(key);
    if (!sum) found.set(key, { ...one });
    else {
      sum.bytesTotal += one.bytesTotal;
      sum.bytesCopied += one.bytesCopied;
      sum.rows += one.rows;
    }
  }
  return [...found.values()].sort((a, b) => b.bytesTotal - a.bytesTotal || a.from.localeCompare(b.from));
}
